package demo

import (
	"crypto/sha256"
	_ "embed" // the page is part of the program
	"encoding/base64"
	"net/http"
	"strings"
)

// page is all of the page: it asks nobody but the board's API.
//
//go:embed page.html
var page string

// pagePolicy lets the page run the one script and the one style that are in it,
// and ask its own host. Its icon is empty data, so that no browser asks for one.
var pagePolicy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"script-src " + hashOf("script") + "; style-src " + hashOf("style")

// hashOf is the source, as a policy has it, of what stands in the page's element.
func hashOf(element string) string {
	_, rest, _ := strings.Cut(page, "<"+element+">")
	text, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func servePage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(page))
}

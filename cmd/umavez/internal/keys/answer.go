package keys

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// MaxBody is the largest body of an answer that a key is settled with, in bytes:
// as much as serve keeps by default.
const MaxBody = 1 << 20

// answer is the stored form of the answer that happened.
func (c *Change) answer() ([]byte, error) {
	switch {
	case c.Status == 0:
		return nil, faultf(CodeUsage, "--status is missing: it is what every attempt gets from now on")
	case c.Status < 200 || c.Status > 599 || c.Status == http.StatusPartialContent || c.Status == http.StatusNotModified:
		return nil, faultf(CodeUsage, "--status %d: must be from 200 to 599, and not 206 or 304, which are parts of something", c.Status)
	case len(c.Body) > MaxBody:
		return nil, faultf(CodeUsage, "--body: has %d bytes, at most %d", len(c.Body), MaxBody)
	case c.Status == http.StatusNoContent && len(c.Body) > 0:
		return nil, faultf(CodeUsage, "--status 204: goes without --body")
	}
	header := http.Header{}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch {
		case !ok || !wire.IsToken(name) || strings.ContainsFunc(value, control):
			return nil, faultf(CodeUsage, "--header %q: must be 'Name: value'", line)
		case !umavezhttp.Storable(name):
			return nil, faultf(CodeUsage, "--header %q: is about one connection, moment or caller, and is not replayed", name)
		}
		header.Add(name, value)
	}
	if len(c.Body) > 0 && header.Get("Content-Type") == "" {
		header.Set("Content-Type", typeOf(c.Body))
	}
	a := umavezhttp.Answer{Status: c.Status, Header: header, Body: c.Body}
	stored, err := a.MarshalBinary()
	if err != nil {
		return nil, faultf(CodeUsage, "%s", said(err))
	}
	return stored, nil
}

func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// typeOf is what a body says of itself, where nobody says it in a header.
func typeOf(body []byte) string {
	switch {
	case json.Valid(body):
		return "application/json"
	case utf8.Valid(body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

package browsertest

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// update has the pictures written, and not only looked at.
var update = flag.Bool("update", false, "write the pictures of docs/img anew")

// pictures are where the documents have them.
var pictures = filepath.Join("..", "..", "docs", "img")

// maxPicture bounds a picture, in bytes: a page with some of them still loads fast.
const maxPicture = 200_000

// picture writes the window's picture with -update. Without it, it looks whether
// the documents have one of this screen.
func (p *page) picture(t *testing.T, name string) {
	t.Helper()
	name = filepath.Join(pictures, name)
	if *update {
		if err := os.WriteFile(name, p.shot(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if len(text) > maxPicture {
		t.Errorf("%s has %d bytes, at most %d", name, len(text), maxPicture)
	}
	size, err := png.DecodeConfig(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	width, height := int(float64(p.screen.width)*p.screen.scale), int(float64(p.screen.height)*p.screen.scale)
	if size.Width != width || size.Height != height {
		t.Errorf("%s is %d by %d, and the screen %d by %d: go test -update writes it anew",
			name, size.Width, size.Height, width, height)
	}
}

// shot is a picture of the window, from the top of the page, without scroll bars
// and without the focus.
func (p *page) shot(t *testing.T) []byte {
	t.Helper()
	hidden := emulation.SetScrollbarsHiddenParams{Hidden: true}
	if _, err := chromedp.Call(p.ctx, emulation.SetScrollbarsHidden, hidden); err != nil {
		t.Fatal(err)
	}
	ask[chromedp.Void](t, p, `document.activeElement.blur(), scrollTo({ top: 0, behavior: "instant" })`)
	return result(t, p, chromedp.CaptureScreenshot())
}

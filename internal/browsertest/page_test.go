package browsertest

import (
	"context"
	_ "embed" // the script that reads the page
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// page is the demo's page in a browser.
type page struct {
	ctx    context.Context
	demo   *demo
	screen screen
}

// shown is what a person reads on the page.
type shown struct {
	Lang     string            `json:"lang"`
	Status   string            `json:"status"`
	Numbers  map[string]string `json:"numbers"` // by side
	Alive    map[string]string `json:"alive"`   // by side
	Switched bool              `json:"switched"`
	Payments []shownPayment    `json:"payments"` // the latest first
}

// shownPayment is the card of a payment.
type shownPayment struct {
	Title string `json:"title"`
	// Sides are the lines of each side: how often it was charged, and then what
	// came of each attempt.
	Sides map[string][]string `json:"sides"`
	State string              `json:"state"`
	Says  string              `json:"says"`
	// Buttons are the names of those that can be pressed.
	Buttons []string `json:"buttons"`
}

// readPage is an expression of JavaScript that is what shown is.
//
//go:embed testdata/read.js
var readPage string

// stepTime is how long one step on a page may take: it holds a lease that must
// run out, and a client's longest wait. Only a hang ever waits for it.
const stepTime = time.Minute

// do does something in the browser.
func (p *page) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	result(t, p, chromedp.Steps(actions...))
}

// ask evaluates an expression in the page.
func ask[T any](t *testing.T, p *page, expression string) T {
	t.Helper()
	return result(t, p, chromedp.Evaluate[T](expression))
}

func result[T any](t *testing.T, p *page, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, stepTime)
	defer cancel()
	got, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// read is what the page shows now.
func (p *page) read(t *testing.T) shown {
	t.Helper()
	return ask[shown](t, p, "("+readPage+")()")
}

// until is a promise of the first time that an expression is true of what the
// page shows, s. It looks when the page changes, and at no other time.
const until = `new Promise(done => {
	const read = %s;
	const look = () => {
		const s = read();
		if (!(%s)) return;
		watcher.disconnect();
		done(s);
	};
	const watcher = new MutationObserver(look);
	watcher.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
	look();
})`

// waitFor waits until an expression of JavaScript is true of what the page shows.
func (p *page) waitFor(t *testing.T, so string) shown {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, stepTime)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[shown](fmt.Sprintf(until, readPage, so), chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("the page was to show %s: %v; it shows\n%s", so, err, p.describe(t))
	}
	return s
}

// waitReady waits until nothing is under way and so many payments are shown.
func (p *page) waitReady(t *testing.T, w *words, payments int) shown {
	t.Helper()
	s := p.waitFor(t, fmt.Sprintf("s.status !== %q && s.status !== %q && s.payments.length === %d",
		w.starting, w.busy, payments))
	if s.Status != w.ready {
		t.Fatalf("the page says %q:\n%s", s.Status, p.describe(t))
	}
	return s
}

// describe is what the page shows, for a message.
func (p *page) describe(t *testing.T) string {
	t.Helper()
	text, err := json.MarshalIndent(p.read(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// point is where something is that can be pressed, in the window.
type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// find brings something into view, and tells where its middle is. What lies over
// it would get the click, and fails the test.
const find = `(() => {
	const e = %s;
	if (!e) return null;
	e.scrollIntoView({ block: "center", behavior: "instant" });
	const r = e.getBoundingClientRect(), at = { x: r.x + r.width / 2, y: r.y + r.height / 2 };
	return e.contains(document.elementFromPoint(at.x, at.y)) ? at : null;
})()`

// press clicks what an expression of JavaScript finds, by a mouse or a finger.
func (p *page) press(t *testing.T, element string) {
	t.Helper()
	at := ask[*point](t, p, fmt.Sprintf(find, element))
	if at == nil {
		t.Fatalf("%s is not there to be pressed:\n%s", element, p.describe(t))
	}
	if p.screen.phone {
		p.do(t, chromedp.TapXY(at.X, at.Y))
		return
	}
	p.do(t, chromedp.MouseClickXY(at.X, at.Y))
}

// pressButton presses the first button, or switch, of a name.
func (p *page) pressButton(t *testing.T, name string) {
	t.Helper()
	p.press(t, fmt.Sprintf("[...document.querySelectorAll('button, label')].find(e => e.innerText.trim() === %q)", name))
}

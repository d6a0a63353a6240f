package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browsers are the names under which Chromium is installed, Debian's first.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// findBrowser finds Chromium. Where a change is judged, a machine without it is no
// excuse.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "there is no Chromium here, and the demo's page needs one to be looked at: " +
		"script/setup.sh test installs it on Debian"
	if os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	t.Fatal(missing)
	return ""
}

// screen is what a page is looked at on.
type screen struct {
	width, height int64
	// scale is how many pixels of the device are one of the page.
	scale float64
	phone bool
}

var (
	desktop = screen{width: 1280, height: 800, scale: 1}
	phone   = screen{width: 390, height: 844, scale: 1.5, phone: true}
)

// open starts a browser of its own, as people of a language have it, and opens the
// demo's page. What the page does that it must not fails the test.
func open(t *testing.T, s screen, language string) *page {
	t.Helper()
	path := findBrowser(t)
	program, err := umavez() // a build takes minutes on a new machine
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	d := startDemo(ctx, t, program)
	flags := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.Flag("headless", true),
		// What is looked at is ours, and root in a container has no sandbox.
		chromedp.Flag("no-sandbox", true),
		chromedp.Flag("disable-gpu", true),
		// The browser asks nobody for anything.
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("accept-lang", language),
	}
	// Without a folder in the flags each browser gets a new one, which goes with it.
	inBrowser, _ := chromedp.NewExecAllocator(ctx, flags...)
	var saw sight
	t.Cleanup(func() { saw.judge(t, d.address) })
	inTab, _ := chromedp.NewContext(inBrowser, chromedp.WithListener(saw.note))
	t.Cleanup(func() {
		if err := chromedp.Cancel(inTab); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the browser ended with %v", err)
		}
	})
	p := &page{ctx: inTab, demo: d, screen: s}
	options := []chromedp.EmulateViewportOption{chromedp.EmulateScale(s.scale)}
	if s.phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	// The first action starts the browser, which lives as long as its context.
	if err := chromedp.Do(inTab, chromedp.EmulateViewport(s.width, s.height, options...)); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(inTab, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(inTab, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	p.do(t, chromedp.Navigate("http://"+d.address+"/"))
	return p
}

// sight is what the browser tells of a page.
type sight struct {
	mu       sync.Mutex
	requests []string
	wrong    []string
}

func (s *sight) note(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent, ok := event.(*network.EventRequestWillBeSent); ok {
		s.requests = append(s.requests, sent.Request.URL)
	}
	if said := complaint(event); said != "" {
		s.wrong = append(s.wrong, said)
	}
}

// judge fails the test for every request to another host and for every error in
// the page's console.
func (s *sight) judge(t *testing.T, demo string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, address := range s.requests {
		if !ours(address, demo) {
			t.Errorf("the page asked %s", address)
		}
	}
	for _, what := range s.wrong {
		t.Errorf("the page %s", what)
	}
	if !slices.Contains(s.requests, "http://"+demo+"/api/events") {
		t.Errorf("of the page's requests only %q were seen: this test looks at the wrong thing", s.requests)
	}
}

// ours reports whether an address is the demo's, or no host's at all.
func ours(address, demo string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "data" || u.Scheme == "http" && u.Host == demo)
}

// complaint is what the browser holds against the page in an event, or "".
func complaint(event any) string {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			return "threw " + thrown.Description
		}
		return "threw " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			return fmt.Sprintf("wrote to the console: %+v", e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			return fmt.Sprintf("has in its console: %s %s", e.Entry.Text, e.Entry.URL)
		}
	}
	return ""
}

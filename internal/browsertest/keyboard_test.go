package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestDemoByKeyboard is the whole story by Tab, Enter and Space alone.
func TestDemoByKeyboard(t *testing.T) {
	p := open(t, desktop, "en")
	s := &story{page: p, words: english, press: p.typeAt}
	s.withKeys(t)
	s.withoutKeys(t)
	// The button that settled is gone; the focus went to the one beside it.
	if f := p.focus(t); f.Name != english.retry {
		t.Errorf("the focus ended on %q, want %q", f.Name, english.retry)
	}
}

// focused is what has the focus.
type focused struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Ring is how wide the line around it is, in pixels; 0 when none is drawn.
	Ring float64 `json:"ring"`
	// Seen: all of it is in the window, but for what is lost in rounding.
	Seen bool `json:"seen"`
}

// readFocus gives the window some frames to scroll to what has the focus.
const readFocus = `new Promise(done => {
	let frames = 300;
	const look = () => {
		const e = document.activeElement, style = getComputedStyle(e), r = e.getBoundingClientRect();
		const seen = r.top >= -1 && r.left >= -1 && r.bottom <= innerHeight + 1 && r.right <= innerWidth + 1;
		const none = e === document.body;
		if (!none && !seen && frames-- > 0) return requestAnimationFrame(look);
		const drawn = e.matches(":focus-visible") && style.outlineStyle !== "none";
		done({
			name: none ? "" : e.labels && e.labels.length ? e.labels[0].innerText.trim() : e.innerText.trim(),
			role: e.tagName,
			ring: drawn ? parseFloat(style.outlineWidth) : 0,
			seen,
		});
	};
	look();
})`

func (p *page) focus(t *testing.T) focused {
	t.Helper()
	return result(t, p, chromedp.Evaluate[focused](readFocus, chromedp.EvalAwaitPromise))
}

// maxTabs is more than the page has to stop at, twice.
const maxTabs = 60

// typeAt goes to what has a name, by Tab, and presses it. At each stop people must
// see where they are.
func (p *page) typeAt(t *testing.T, name string) {
	t.Helper()
	var stops []string
	for range maxTabs {
		f := p.focus(t)
		if f.Name == name {
			key := kb.Enter
			if f.Role == "INPUT" {
				key = " "
			}
			p.do(t, chromedp.KeyEvent(key))
			return
		}
		stops = append(stops, f.Name)
		p.do(t, chromedp.KeyEvent(kb.Tab))
		if f := p.focus(t); f.Name != "" && (f.Ring < 2 || !f.Seen) {
			t.Errorf("the focus on %q is not seen: %+v", f.Name, f)
		}
	}
	t.Fatalf("Tab does not come to %q, only to %q", name, stops)
}

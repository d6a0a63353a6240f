package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// wide names what lies beyond the right edge of a screen.
const wide = `[...document.querySelectorAll("body *")]
	.filter(e => e.getBoundingClientRect().right > %d + 0.5)
	.map(e => e.tagName + ": " + e.innerText)`

// fits: on no screen does anybody scroll sideways.
func (p *page) fits(t *testing.T) {
	t.Helper()
	width := ask[struct {
		Page   int64 `json:"page"`
		Window int64 `json:"window"`
	}](t, p, `({ page: document.scrollingElement.scrollWidth, window: innerWidth })`)
	if width.Page > p.screen.width || width.Window != p.screen.width {
		beyond := ask[[]string](t, p, fmt.Sprintf(wide, p.screen.width))
		t.Errorf("the page is %d wide in a window of %d, on a screen of %d; beyond it: %q",
			width.Page, width.Window, p.screen.width, beyond)
	}
}

// node is what assistive software is told of an element.
type node struct {
	role, name, live string
}

// nodes is what assistive software is told of the page.
func (p *page) nodes(t *testing.T) (all []node) {
	t.Helper()
	tree := result(t, p, func(ctx context.Context, tab *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		one := node{role: text(n.Role), name: text(n.Name)}
		for _, property := range n.Properties {
			if property.Name == accessibility.PropertyNameLive {
				one.live = text(property.Value)
			}
		}
		all = append(all, one)
	}
	return all
}

func text(v *accessibility.Value) (s string) {
	if v == nil || json.Unmarshal(v.Value, &s) != nil {
		return ""
	}
	return s
}

// accessible: everything that can be pressed has a name, and what happens is told.
func (p *page) accessible(t *testing.T) {
	t.Helper()
	pressable := ask[int](t, p, `document.querySelectorAll("button, input, select, a[href]").length`)
	named := 0
	all := p.nodes(t)
	for _, n := range all {
		if !slices.Contains([]string{"button", "switch", "checkbox", "link", "combobox", "textbox"}, n.role) {
			continue
		}
		if n.name == "" {
			t.Errorf("a %s has no name", n.role)
		}
		named++
	}
	if named != pressable || named == 0 {
		t.Errorf("assistive software is told of %d things to press, and the page has %d", named, pressable)
	}
	if !slices.ContainsFunc(all, func(n node) bool { return n.role == "status" && n.live == "polite" }) {
		t.Errorf("nothing tells assistive software what happens: %v", all)
	}
}

package demo

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPageAsksNobodyElse: nothing in the page leads to another host.
func TestPageAsksNobodyElse(t *testing.T) {
	for _, piece := range []string{"http:", "https:", "//cdn", "url(", "@import", "<link rel=\"stylesheet", "<img", "<iframe"} {
		if strings.Contains(page, piece) {
			t.Errorf("the page has %q", piece)
		}
	}
	for _, once := range []string{"<script>", "</script>", "<style>", "</style>"} {
		if strings.Count(page, once) != 1 {
			t.Errorf("the page has %q not once: the policy would not fit", once)
		}
	}
	if strings.Contains(page, "style=\"") || strings.Contains(page, "onclick=") {
		t.Error("the page has inline styles or handlers, which its policy forbids")
	}
}

// word is the name of a text of the page.
var word = regexp.MustCompile(`(?:^|[{,\s])(\w+):`)

// TestPageSpeaksBoth: what it says in one language it says in the other one.
func TestPageSpeaksBoth(t *testing.T) {
	_, rest, _ := strings.Cut(page, "\n  en: {")
	english, rest, _ := strings.Cut(rest, "\n  pt: {")
	portuguese, _, _ := strings.Cut(rest, "\n};")
	names := func(text string) (all []string) {
		plain := regexp.MustCompile("\"[^\"]*\"|`[^`]*`").ReplaceAllString(text, "")
		for _, m := range word.FindAllStringSubmatch(plain, -1) {
			all = append(all, m[1])
		}
		return all
	}
	a, b := names(english), names(portuguese)
	if len(a) < 40 || !slices.Equal(a, b) {
		t.Errorf("English has %d texts, Portuguese %d:\n%v\n%v", len(a), len(b), a, b)
	}
	for _, want := range []string{"vacant:", "running:", "lost:", "unknown:", "done:"} {
		if strings.Count(english, want) != 2 {
			t.Errorf("%s needs a name and a sentence", want)
		}
	}
}

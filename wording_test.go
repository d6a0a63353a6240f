package umavez_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unwantedText is a kind of text that no file may hold.
type unwantedText struct {
	name    string
	pattern *regexp.Regexp
	// pieces are plain text without one of which the pattern finds nothing:
	// looking for them first spares the pattern on nearly every file.
	pieces []string
	why    string
	// example is a line that the pattern must find.
	example string
}

func (u unwantedText) mayHold(text []byte) bool {
	return slices.ContainsFunc(u.pieces, func(piece string) bool { return bytes.Contains(text, []byte(piece)) })
}

// unwanted is text that no file of the tree may hold, and why. The patterns are
// put together from pieces so that this file does not find itself.
var unwanted = []unwantedText{
	{
		"a path of one machine",
		regexp.MustCompile(`(^|[^\w.])/(ho` + `me|Us` + `ers|ro` + `ot|wo` + `rk)/\w`),
		[]string{"/ho" + "me/", "/Us" + "ers/", "/ro" + "ot/", "/wo" + "rk/"},
		"it exists on the machine of whoever wrote it only; name files from the root of the tree",
		"see /ho" + "me/maria/umavez/key.go",
	},
	{
		"the host of a package registry",
		regexp.MustCompile(`(pro` + `xy|su` + `m)\.golang\.org|registry\.np` + `mjs\.org|(de` + `b|ft` + `p)\.debian\.org`),
		[]string{".golang.org", ".npmjs.org", ".debian.org"},
		"where packages come from is set up on each machine, often to a mirror",
		"GOPROXY=https://pro" + "xy.golang.org",
	},
	{
		"a mark of unfinished work",
		regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b|not imple` + `mented|unimple` + `mented`),
		[]string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "imple" + "mented"},
		"what is not there yet stands in the README, in words that a user understands",
		"// TO" + "DO: the other half",
	},
}

func TestNoUnwantedWords(t *testing.T) {
	err := walkTree(func(name string) error {
		if strings.Contains(name, "testdata/fuzz/") {
			return nil // inputs that a fuzzer drew; they say nothing
		}
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			return err // with a NUL early on it is not text
		}
		for _, u := range unwanted {
			if !u.mayHold(text) {
				continue
			}
			for i, line := range bytes.Split(text, []byte("\n")) {
				if found := u.pattern.Find(line); found != nil {
					t.Errorf("%s:%d: %q is %s: %s", name, i+1, found, u.name, u.why)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnwantedWordsAreFound: each pattern finds its example, and none of them
// finds plain words that look alike.
func TestUnwantedWordsAreFound(t *testing.T) {
	harmless := []string{
		"https://example.com/workshop/rooted", "the home page", "a todo list", "POST /pagamentos",
		"github.com/umavez/umavez/umavezhttp", "${dir}/roots/a", "the root folder",
	}
	for _, u := range unwanted {
		if !u.pattern.MatchString(u.example) || !u.mayHold([]byte(u.example)) {
			t.Errorf("%s is not found in %q", u.name, u.example)
		}
		for _, line := range harmless {
			if u.pattern.MatchString(line) {
				t.Errorf("%q is taken for %s", line, u.name)
			}
		}
	}
}

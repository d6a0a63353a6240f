package serve

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestFileErrorsNameTheLine holds the exact messages.
func TestFileErrorsNameTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown field":       {"upstream: http://a\nleese: 15s\n", `2: unknown field "leese"`},
		"unknown in a route":  {"routes:\n  - route: POST /a\n    requird: true\n", `3: unknown field "requird"`},
		"another case":        {"Upstream: http://a\n", `1: unknown field "Upstream"`},
		"the file's own name": {"config: other.yaml\n", `1: unknown field "config"`},
		"twice":               {"wait: 1s\nwait: 2s\n", `2: mapping key "wait" already defined at [1:1]`},
		"no duration":         {"\n\nlease: soon\n", `3: "soon" is not a duration such as 15s or 2m`},
		"duration, no unit":   {"lease: 15\n", `1: "15" is not a duration such as 15s or 2m`},
		"duration is a list":  {"lease: [1s]\n", `1: "[" is not a duration such as 15s or 2m`},
		"duration in a route": {"routes:\n  - route: POST /a\n    wait: 5\n", `3: "5" is not a duration such as 15s or 2m`},
		"no list":             {"upstream: http://a\ncors: https://a\n", `2: string was used where a list is expected: write [ ] around it`},
		"a number, no list":   {"release: 503\n", `1: int was used where a list is expected: write [ ] around it`},
		"no list in a route":  {"routes:\n  - route: POST /a\n    release: none\n", `3: string was used where a list is expected: write [ ] around it`},
		"no truth":            {"ignore-case: perhaps\n", `1: cannot unmarshal string into Go struct field Settings.IgnoreCase of type bool`},
		"no mapping":          {"- a\n", `1: sequence was used where mapping is expected`},
		"broken":              {"upstream: \"http\n", `1: could not find end character of double-quoted text`},
		"a second document":   {"wait: 1s\n---\nwait: 2s\n", `3: a second document; the settings are one`},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, "umavez.yaml", []byte(c.text))
			_, err := ReadFile(file)
			if _, usage := errors.AsType[*UsageError](err); !usage || err.Error() != "umavez: "+file+":"+c.want {
				t.Errorf("error %v, want umavez: %s:%s", err, file, c.want)
			}
		})
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"missing":   {"/does/not/exist.yaml", "umavez: --config /does/not/exist.yaml: "},
		"folder":    {t.TempDir(), "is a directory"},
		"too large": {writeFile(t, "big", []byte(strings.Repeat("#", maxFile+1))), "at most 1048576 are read"},
	} {
		_, err := ReadFile(c.file)
		if _, usage := errors.AsType[*UsageError](err); !usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want … %s …", name, err, c.want)
		}
	}
}

func TestEmptyFileSaysNothing(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "---\n"} {
		s, err := ReadFile(writeFile(t, "umavez.yaml", []byte(text)))
		if err != nil || s.Upstream != nil || s.Routes != nil {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
}

// TestUpperSourceWins: what a flag or a variable sets replaces the file's, an
// empty value too; a list is replaced as a whole.
func TestUpperSourceWins(t *testing.T) {
	file := writeFile(t, "umavez.yaml", []byte(
		"admin: 127.0.0.1:1\nlisten: 127.0.0.1:2\nwait: 1s\nretain: 2s\ncors: [https://a]\nrelease: ['404']\nroutes: [{route: POST /file}]\n"))
	off, zero := "", Duration(0)
	got, err := Load(Settings{Admin: &off, Wait: &zero, CORS: []string{"https://b"}, Route: []string{"POST /flag"}}, file)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case *got.Admin != "" || *got.Wait != 0:
		t.Errorf("an empty or zero flag lost against the file: %q, %v", *got.Admin, *got.Wait)
	case len(got.CORS) != 1 || got.CORS[0] != "https://b":
		t.Errorf("a list was joined: %v", got.CORS)
	case len(got.Routes) != 0 || len(got.Route) != 1:
		t.Errorf("--route did not replace the file's routes: %v %v", got.Route, got.Routes)
	case *got.Listen != "127.0.0.1:2" || time.Duration(*got.Retain) != 2*time.Second || got.Release[0] != "404":
		t.Errorf("what no flag sets was not taken from the file: %+v", got)
	}
}

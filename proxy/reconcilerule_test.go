package proxy

import (
	"strings"
	"testing"
)

// TestP12_Absent: only what could hold a value says that it is not there. Everything
// else is a failure, which leaves the outcome unknown, and says what is missing.
func TestP12_Absent(t *testing.T) {
	for _, c := range []struct {
		at, document string
		absent       bool
		fails        string // what the operator is told
	}{
		{"/data/0", `{"data":[]}`, true, ""},
		{"/data/1", `{"data":[{}]}`, true, ""},
		{"/data/0", `{"data":[{}]}`, false, ""},
		{"/data/0", `{"data":[null]}`, false, ""},
		{"/data/0", `{}`, false, `"/data/0" is absent: there is no array at "/data"`},
		{"/data/0", `{"data":{}}`, false, `no array at "/data"`},
		{"/data/0", `{"data":""}`, false, `no array at "/data"`},
		{"/data/0", `{"data":null}`, false, `no array at "/data"`},
		{"/data/0", `{"data":[],"data":[1]}`, false, `two members "data"`},
		{"/0", `[]`, true, ""},
		{"/0", `{}`, false, `no array at ""`},
		{"/0", `null`, false, `no array at ""`},
		// A name wants an object.
		{"/error", `{"data":[]}`, true, ""},
		{"/error", `{"error":null}`, false, ""},
		{"/error", `[]`, false, `no object at ""`},
		{"/error", `"ok"`, false, `no object at ""`},
		{"/error", `null`, false, `no object at ""`},
		{"/data/0/error", `{"data":[{}]}`, true, ""},
		{"/data/0/error", `{"data":[]}`, false, `no object at "/data/0"`},
		{"/data/id", `{"data":[]}`, false, `no object at "/data"`},
		{"/data/-", `{"data":[]}`, false, `no object at "/data"`},
		{"/data/01", `{"data":[]}`, false, `no object at "/data"`},
		{"/a~1b/0", `{"a/b":[]}`, true, ""},
		{"/a~1b/0", `{}`, false, `no array at "/a~1b"`},
		{"", `null`, false, ""}, // the document is always there
	} {
		cond, err := checkCondition(Condition{At: c.at, Absent: true})
		if err != nil {
			t.Fatal(err)
		}
		absent, err := cond.holds(&facts{response: []byte(c.document)})
		switch {
		case absent != c.absent, (err != nil) != (c.fails != ""):
			t.Errorf("%q in %s: absent %v (%v), want %v", c.at, c.document, absent, err, c.absent)
		case err != nil && !strings.Contains(err.Error(), c.fails):
			t.Errorf("%q in %s: says %q, want %q", c.at, c.document, err, c.fails)
		}
	}
}

// TestExists needs nothing around the value: where it is missing the rule is
// about other answers.
func TestExists(t *testing.T) {
	for document, want := range map[string]bool{
		`{"data":[null]}`: true, `{"data":[]}`: false, `{"data":null}`: false, `{}`: false, `"ok"`: false,
	} {
		cond, err := checkCondition(Condition{At: "/data/0", Exists: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := cond.holds(&facts{response: []byte(document)}); got != want || err != nil {
			t.Errorf("%s: %v (%v), want %v", document, got, err, want)
		}
	}
}

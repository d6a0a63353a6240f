package umavez

import (
	"strings"
	"testing"
)

// refID is an ID in which every digit occurs.
const refID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestRefIsReadAsItIsWritten(t *testing.T) {
	text := refID + ".1753000000000001"
	ref, err := ParseRef(text)
	if err != nil || ref.Fence != 1753000000000001 || ref.ID[0] != 0x01 || ref.ID[31] != 0xef {
		t.Fatalf("%+v, %v", ref, err)
	}
	if got := ref.String(); got != text {
		t.Errorf("written as %q, want %q", got, text)
	}
	listed := Listed{ID: ref.ID, Record: Record{Fence: ref.Fence}}
	if got := listed.Ref(); got != ref {
		t.Errorf("a listed record's name is %v, want %v", got, ref)
	}
}

// TestRefSaysWhatIsWrong: each of these is something that a person may paste.
func TestRefSaysWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"":                               "64 hexadecimal digits, this one 0",
		refID:                            "ends before its fence",
		refID[:63] + ".5":                "64 hexadecimal digits, this one 63",
		refID + "0.5":                    "64 hexadecimal digits, this one 65",
		strings.ToUpper(refID) + ".5":    "in lower case only",
		"g" + refID[1:] + ".5":           "in lower case only",
		" " + refID[1:] + ".5":           "in lower case only",
		refID + ".":                      "number from 1 up",
		refID + ".0":                     "number from 1 up",
		refID + ".-5":                    "number from 1 up",
		refID + ".+5":                    "number from 1 up",
		refID + ".05":                    "number from 1 up",
		refID + ".5\n":                   "number from 1 up",
		refID + ".5.5":                   "number from 1 up",
		refID + ".9223372036854775808":   "number from 1 up",
		strings.Repeat("\xff", 64) + ".": "in lower case only",
	} {
		ref, err := ParseRef(text)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "umavez: ") {
			t.Errorf("%q: %v, want an error with %q", text, err, says)
		}
		if ref != (Ref{}) {
			t.Errorf("%q: %v came with the error", text, ref)
		}
	}
}

// FuzzParseRef: what is read is written again byte for byte, so that a record
// has one name, and an error is short enough for a line.
func FuzzParseRef(f *testing.F) {
	for _, seed := range []string{"", refID, refID + ".1", refID + ".9223372036854775807", refID + ".01", refID + ".1e3", strings.Repeat("0", 64) + ".1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := ParseRef(text)
		switch {
		case err == nil && ref.String() != text:
			t.Errorf("%q is read as %v", text, ref)
		case err == nil && ref.Fence < 1:
			t.Errorf("%q has the fence %d", text, ref.Fence)
		case err != nil && len(err.Error()) > 512:
			t.Errorf("%q: an error of %d bytes", text, len(err.Error()))
		}
	})
}

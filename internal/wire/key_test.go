package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	full := strings.Repeat("k", MaxKey)
	for _, tc := range []struct{ value, key string }{
		{"8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"abc", "abc"},
		{`"abc"`, "abc"},
		{" \t abc\t ", "abc"},
		{` "abc" `, "abc"},
		{`"a b"`, "a b"},
		{`" a "`, " a "},
		{`"a\"b\\c"`, `a"b\c`},
		{`"\\\\"`, `\\`},
		{`"a,b;c"`, "a,b;c"},
		{"?1", "?1"},
		{":YQ==:", ":YQ==:"},
		{"'abc'", "'abc'"},
		{"Key", "Key"},
		{"k\u007e!", "k~!"},
		{full, full},
		{`"` + full + `"`, full},
		{`"` + strings.Repeat(`\"`, MaxKey) + `"`, strings.Repeat(`"`, MaxKey)},
		{`"abc";a`, "abc"},
		{`"abc"; a=1;b=-1.5;c="x\"y";d=tok/en:x;e=:YQ==:;f=?0;g=@-12;*h=%"f%c3%bc";i_-.*=*`, "abc"},
		{`"abc";   a`, "abc"},
	} {
		key, err := ParseKey(tc.value)
		if err != nil || key != tc.key {
			t.Errorf("ParseKey(%q) = %q, %v; want %q", tc.value, key, err, tc.key)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	for _, tc := range []struct {
		value string
		fault KeyFault
		at    int
	}{
		{"", KeyEmpty, 0},
		{"   \t", KeyEmpty, 0},
		{`""`, KeyEmpty, 0},
		{`"   "`, KeyEmpty, 0},
		{",", KeyBadByte, 0},
		{"a,b", KeyBadByte, 1},
		{"a b", KeyBadByte, 1},
		{"a\tb", KeyBadByte, 1},
		{"a;b=1", KeyBadByte, 1},
		{`a"b`, KeyBadByte, 1},
		{`a\b`, KeyBadByte, 1},
		{"chavé", KeyBadByte, 4},
		{"a\x00", KeyBadByte, 1},
		{"a\x7f", KeyBadByte, 1},
		{"\"a\tb\"", KeyBadByte, 2},
		{"\"\xff\"", KeyBadByte, 1},
		{`"a\nb"`, KeyBadByte, 3},
		{`"`, KeyUnclosed, 1},
		{`"abc`, KeyUnclosed, 4},
		{`"abc\"`, KeyUnclosed, 6},
		{`"abc\`, KeyUnclosed, 5},
		{`"a""b"`, KeyTrailing, 3},
		{`"a", "b"`, KeyTrailing, 3},
		{`"a" ;b`, KeyTrailing, 3},
		{`"a";`, KeyTrailing, 4},
		{`"a";B`, KeyTrailing, 4},
		{`"a";1`, KeyTrailing, 4},
		{`"a";b=`, KeyTrailing, 5},
		{`"a";b=""x`, KeyTrailing, 8},
		{`"a";b="x`, KeyTrailing, 5},
		{`"a";b="\x"`, KeyTrailing, 5},
		{`"a";b=1.`, KeyTrailing, 5},
		{`"a";b=-`, KeyTrailing, 5},
		{`"a";b=?2`, KeyTrailing, 5},
		{`"a";b=:é:`, KeyTrailing, 5},
		{`"a";b=:YQ`, KeyTrailing, 5},
		{`"a";b=%x`, KeyTrailing, 5},
		{`"a";b=%"x`, KeyTrailing, 5},
		{`"a";b=;c`, KeyTrailing, 5},
		{`"a";b, "c"`, KeyTrailing, 5},
		{strings.Repeat("k", MaxKey+1), KeyTooLong, MaxKey},
		{`"` + strings.Repeat("k", MaxKey+1) + `"`, KeyTooLong, 0},
	} {
		key, err := ParseKey(tc.value)
		ke, ok := errors.AsType[*KeyError](err)
		if !ok || ke.Fault != tc.fault || ke.At != tc.at {
			t.Errorf("ParseKey(%q) = %q, %+v; want fault %d at %d", tc.value, key, ke, tc.fault, tc.at)
		}
		if ok && strings.Contains(err.Error(), "no fault") {
			t.Errorf("ParseKey(%q): %v", tc.value, err)
		}
	}
}

func TestFormatKey(t *testing.T) {
	for _, tc := range []struct{ key, value string }{
		{"abc", "abc"},
		{"?1", "?1"},
		{"a b", `"a b"`},
		{"a,b", `"a,b"`},
		{"a;b", `"a;b"`},
		{`a"b\c`, `"a\"b\\c"`},
		{"", ""},
		{"  ", ""},
		{"chavé", ""},
		{"a\tb", ""},
		{strings.Repeat("k", MaxKey), strings.Repeat("k", MaxKey)},
		{strings.Repeat("k", MaxKey+1), ""},
	} {
		if got := FormatKey(tc.key); got != tc.value {
			t.Errorf("FormatKey(%q) = %q, want %q", tc.key, got, tc.value)
		}
	}
}

// TestKeyRoundTrip: every byte that a key may hold survives spelling and reading.
func TestKeyRoundTrip(t *testing.T) {
	for c := byte(0x20); c <= 0x7e; c++ {
		for _, key := range []string{"k" + string(rune(c)), string(rune(c)) + "k", "k" + string(rune(c)) + "k"} {
			if got, err := ParseKey(FormatKey(key)); err != nil || got != key {
				t.Errorf("ParseKey(FormatKey(%q)) = %q, %v", key, got, err)
			}
		}
	}
}

// TestParseKeyAllocates: the usual spellings cost nothing.
func TestParseKeyAllocates(t *testing.T) {
	for _, value := range []string{"8e03978e-40d5-43dd-bc93-6894a57f9324", `"8e03978e-40d5-43dd-bc93-6894a57f9324";v=1`} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := ParseKey(value); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("ParseKey(%q) allocates %v times", value, n)
		}
	}
}

// FuzzKey: what is read can be spelled and read again as the same key; a key
// keeps to its bounds; and what is refused is refused with a place in the value.
func FuzzKey(f *testing.F) {
	f.Fuzz(func(t *testing.T, value string) {
		key, err := ParseKey(value)
		if err != nil {
			ke, ok := errors.AsType[*KeyError](err)
			if !ok || ke.Fault == 0 || ke.At < 0 || ke.At > len(value) {
				t.Fatalf("ParseKey(%q): %#v", value, err)
			}
			return
		}
		if len(key) < 1 || len(key) > MaxKey || strings.Trim(key, " ") == "" {
			t.Fatalf("ParseKey(%q) = %q", value, key)
		}
		for i := 0; i < len(key); i++ {
			if key[i] < 0x20 || key[i] > 0x7e {
				t.Fatalf("ParseKey(%q) = %q", value, key)
			}
		}
		spelled := FormatKey(key)
		if again, err := ParseKey(spelled); err != nil || again != key {
			t.Fatalf("%q is read as %q, spelled %q, and read as %q, %v", value, key, spelled, again, err)
		}
		// A second key behind it is never swallowed.
		if got, err := ParseKey(value + `, "other"`); err == nil {
			t.Fatalf("ParseKey(%q and another one) = %q", value, got)
		}
	})
}

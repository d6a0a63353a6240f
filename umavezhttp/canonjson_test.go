package umavezhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func canonical(document string, exclude ...string) (string, bool) {
	var c canonJSON
	tree, err := parsePointers(exclude)
	if err != nil {
		panic(err)
	}
	out, ok := c.canonical([]byte(document), tree)
	return string(out), ok
}

func TestF4_CanonicalForm(t *testing.T) {
	for document, want := range map[string]string{
		`{"valor":100}`:       `{"valor":100}`,
		` { "b" : 1 , "a":2}`: `{"a":2,"b":1}`,
		"\t[ 1,\r\n2 ] \n":    `[1,2]`,
		`{}`:                  `{}`,
		` [ ] `:               `[]`,
		`{"a":{},"b":[]}`:     `{"a":{},"b":[]}`,
		`"a"`:                 `"a"`,
		`null`:                `null`,
		`[true,false,null]`:   `[true,false,null]`,
		`{"b":{"d":1,"c":2},"a":[{"f":1,"e":2}]}`: `{"a":[{"e":2,"f":1}],"b":{"c":2,"d":1}}`,
		`{"aa":1,"a":2,"":3,"b":4,"B":5}`:         `{"":3,"B":5,"a":2,"aa":1,"b":4}`,
		// Strings: the same characters, however they are escaped.
		`"\u0061\/\u002F\"\\"`:         `"a//\"\\"`,
		`"\u00e9é"`:                    `"éé"`,
		`"\ud83d\ude00😀"`:              `"😀😀"`,
		`"\b\f\n\r\t\u0008\u000a"`:     `"\b\f\n\r\t\b\n"`,
		`"\u0000\u001F\u007f"`:         "\"\\u0000\\u001f\x7f\"",
		`"\uFFFD\uffff"`:               "\"\ufffd\uffff\"",
		`"é\u0301 e\u0301"`:            "\"é\u0301 e\u0301\"", // not normalised
		`{"\u0062":1,"a":2}`:           `{"a":2,"b":1}`,
		`{"\"":1,"!":2,"\\":3,"\n":4}`: `{"!":2,"\"":1,"\\":3,"\n":4}`,
		// Numbers: their text, since nobody knows how the operation reads them.
		`[1,1.0,1e0,1E0,1e+0,-0,0,0.10,9007199254740992,9007199254740993]`: `[1,1.0,1e0,1E0,1e+0,-0,0,0.10,9007199254740992,9007199254740993]`,
	} {
		if got, ok := canonical(document); !ok || got != want {
			t.Errorf("%s has the form %s, %v; want %s", document, got, ok, want)
		}
	}
}

func TestF4_WhatHasNoCanonicalForm(t *testing.T) {
	deepest := strings.Repeat("[", maxJSONDepth+1) + strings.Repeat("]", maxJSONDepth+1)
	if _, ok := canonical(deepest); !ok {
		t.Errorf("%d levels have no form", maxJSONDepth+1)
	}
	for _, document := range []string{
		"", " ", "x", "{", "[", `"`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `[1,]`, `[,]`, `{,}`, `[1 2]`, `{"a" 1}`, `{"a":1 "b":2}`,
		`{a:1}`, `{'a':1}`, `{1:1}`, `[1]]`, `1 2`, `{}{}`, "[1]\x00", "\ufeff{}", "[1\u00a0]",
		`01`, `-`, `+1`, `1.`, `.1`, `1e`, `1e+`, `0x1`, `NaN`, `Infinity`, `--1`, `-01`,
		`tru`, `True`, `nul`, `nullx`, `falsey`,
		`"\x"`, `"\u12"`, `"\u12G4"`, `"\`, `"\"`, "\"a\nb\"", "\"\x00\"", "\"\x1f\"", `"\'"`, `"\U0041"`,
		// Two equal names: one reader takes the first, another the last.
		`{"a":1,"a":1}`, `{"a":1,"b":2,"a":3}`, `{"b":1,"a":2,"b":3}`, `{"a":1,"\u0061":2}`, `[{"x":{"a":1,"a":2}}]`,
		// No characters: encoding/json makes U+FFFD of every one of them.
		`"\ud800"`, `"\ud801"`, `"\udc00"`, `"\ud800\ud800"`, `"\ud800x"`, `"\ud800\n"`, `"\ud800\u0041"`, `"\udc00\ud800"`, `"\udc00\udc00"`, `{"\ud800":1}`,
		"\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\xaf\"", "\"\xf4\x90\x80\x80\"", "{\"\xff\":1}",
		"[" + deepest + "]", strings.Repeat(`{"a":`, 100_000),
	} {
		if got, ok := canonical(document); ok {
			t.Errorf("%.60q has the form %.60q", document, got)
		}
	}
}

func TestF8_ExcludedFields(t *testing.T) {
	for _, tc := range []struct {
		exclude        []string
		document, want string
	}{
		{[]string{"/enviado"}, `{"valor":1,"enviado":"10:00"}`, `{"valor":1}`},
		{[]string{"/enviado"}, `{"enviado":"10:01","valor":1}`, `{"valor":1}`},
		{[]string{"/enviado"}, `{"valor":1}`, `{"valor":1}`},
		{[]string{"/enviado"}, `{"enviado":{"a":[1,{"b":2}]}}`, `{}`},
		{[]string{"/enviado"}, `{"x":{"enviado":1}}`, `{"x":{"enviado":1}}`},
		{[]string{"/enviado"}, `[{"enviado":1}]`, `[{"enviado":1}]`},
		{[]string{"/cartao/cvv", "/cartao/senha"}, `{"cartao":{"senha":1,"numero":2,"cvv":3},"valor":1}`, `{"cartao":{"numero":2},"valor":1}`},
		{[]string{"/cartao/cvv"}, `{"cartao":[1],"valor":1}`, `{"cartao":[1],"valor":1}`},
		{[]string{"/a", "/a/b"}, `{"a":{"b":1,"c":2}}`, `{}`},
		{[]string{"/a~1b", "/c~0d", "/~01"}, `{"a/b":1,"c~d":2,"~1":3,"e":4}`, `{"e":4}`},
		{[]string{"/"}, `{"":1,"a":2}`, `{"a":2}`},
		{[]string{`/"`, `/\`}, `{"\"":1,"\\":2,"a":3}`, `{"a":3}`},
		{[]string{"/é"}, `{"\u00e9":1,"e":2}`, `{"e":2}`},
		// An excluded element leaves a place that is like no value.
		{[]string{"/1"}, `[1,2,3]`, "[1,\x00,3]"},
		{[]string{"/0"}, `[{"a":1}]`, "[\x00]"},
		{[]string{"/1"}, `[1]`, "[1]"},
		{[]string{"/01", "/-"}, `[1,2,3]`, "[1,2,3]"},
		{[]string{"/itens/0/em", "/itens/1/em"}, `{"itens":[{"em":1,"n":1},{"n":2,"em":2},{"em":3}]}`, `{"itens":[{"n":1},{"n":2},{"em":3}]}`},
		{[]string{"/0"}, `{"0":1,"1":2}`, `{"1":2}`},
	} {
		if got, ok := canonical(tc.document, tc.exclude...); !ok || got != tc.want {
			t.Errorf("%s without %q has the form %q, %v; want %q", tc.document, tc.exclude, got, ok, tc.want)
		}
	}
	// What is excluded must still be JSON, and there once: else the whole body
	// counts as it is.
	for _, document := range []string{`{"a":1,"a":2}`, `{"a":}`, `{"a":"\ud800"}`, `{"b":1,"a":1,"a":1}`} {
		if got, ok := canonical(document, "/a"); ok {
			t.Errorf("%s has the form %s", document, got)
		}
	}
}

// TestCanonicalJSONIsNotQuadratic: what is nested as deep as allowed, and out of
// order at every level, is moved once for each level and no more.
func TestCanonicalJSONIsNotQuadratic(t *testing.T) {
	document := strings.Repeat(`{"b":0,"a":`, maxJSONDepth) + `"` + strings.Repeat("x", 100_000) + `"` + strings.Repeat("}", maxJSONDepth)
	if got, ok := canonical(document); !ok || len(got) != len(document) {
		t.Errorf("%d bytes of %d, %v", len(got), len(document), ok)
	}
}

func TestCanonicalJSONAllocates(t *testing.T) {
	var c canonJSON
	exclude, err := parsePointers([]string{"/c/0", "/d"})
	if err != nil {
		t.Fatal(err)
	}
	document := []byte(`{"b":"\u0061","a":1,"c":[1,{"y":1,"x":2}],"d":null}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := c.canonical(document, exclude); !ok {
			t.Fatal("no form")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCanonicalJSON: whatever the document, its form is JSON and its own form;
// it says what encoding/json reads; another order, other white space and other
// escapes leave it as it is; and one change of what it says changes it.
func FuzzCanonicalJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, document []byte, seed uint64) {
		form, ok := canonical(string(document))
		if !ok {
			// An independent opinion, as far as encoding/json has one: nothing
			// plain and valid is turned away.
			if json.Valid(document) && isPlain(document) {
				t.Fatalf("%q has no form", document)
			}
			return
		}
		if !json.Valid(document) || !json.Valid([]byte(form)) {
			t.Fatalf("%q is not JSON, and has the form %q", document, form)
		}
		if again, ok := canonical(form); !ok || again != form {
			t.Fatalf("the form %q has the form %q, %v", form, again, ok)
		}
		tree, original := parseTree(t, []byte(form)), parseTree(t, document)
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, from := range []*jsonNode{tree, original} {
			spelled := from.spell(nil, rng)
			if got, ok := canonical(string(spelled)); !ok || got != form {
				t.Fatalf("%q has the form %q; spelled %q it has %q, %v", document, form, spelled, got, ok)
			}
		}
		changed := tree.change(rng)
		spelled := changed.spell(nil, rng)
		if got, ok := canonical(string(spelled)); ok && got == form {
			t.Fatalf("%q and %q, which say different things, have one form: %q", form, spelled, got)
		}
	})
}

// isPlain: nothing in the document but what every reader agrees on.
func isPlain(document []byte) bool {
	if !utf8.Valid(document) || bytes.Contains(document, []byte(`\u`)) || bytes.Count(document, []byte(`"`)) > 2 {
		return false // surrogates; equal names
	}
	return bytes.Count(document, []byte("[")) <= maxJSONDepth/2 && bytes.Count(document, []byte("{")) <= maxJSONDepth/2
}

// jsonNode is a document as encoding/json reads it, with the order of members
// and the text of numbers.
type jsonNode struct {
	open  json.Delim // '{', '[', or 0
	names []string
	kids  []*jsonNode
	text  *string // a string
	word  string  // a number's text, or true, false, null
}

func parseTree(t *testing.T, document []byte) *jsonNode {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	node, err := readTree(d)
	if err != nil {
		t.Fatalf("%q: %v", document, err)
	}
	return node
}

func readTree(d *json.Decoder) (*jsonNode, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &jsonNode{}
	switch v := token.(type) {
	case json.Delim:
		n.open = v
		for d.More() {
			if v == '{' {
				name, err := d.Token()
				if err != nil {
					return nil, err
				}
				n.names = append(n.names, name.(string))
			}
			kid, err := readTree(d)
			if err != nil {
				return nil, err
			}
			n.kids = append(n.kids, kid)
		}
		_, err = d.Token()
		return n, err
	case string:
		n.text = &v
	case json.Number:
		n.word = string(v)
	default:
		b, err := json.Marshal(v)
		n.word = string(b)
		return n, err
	}
	return n, nil
}

// spell writes the document with members, white space and escapes at random.
func (n *jsonNode) spell(b []byte, rng *rand.Rand) []byte {
	space := func() { b = append(b, " \t\n\r"[:rng.IntN(5)]...) }
	space()
	switch {
	case n.open == '{':
		b = append(b, '{')
		for i, at := range rng.Perm(len(n.kids)) {
			if i > 0 {
				b = append(b, ',')
			}
			space()
			b = spellText(b, n.names[at], rng)
			space()
			b = append(b, ':')
			b = n.kids[at].spell(b, rng)
		}
		space()
		b = append(b, '}')
	case n.open == '[':
		b = append(b, '[')
		for i, kid := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = kid.spell(b, rng)
		}
		space()
		b = append(b, ']')
	case n.text != nil:
		b = spellText(b, *n.text, rng)
	default:
		b = append(b, n.word...)
	}
	space()
	return b
}

func spellText(b []byte, s string, rng *rand.Rand) []byte {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	b = append(b, '"')
	for _, r := range s {
		escape, ok := short[r]
		switch must := r < 0x20 || r == '"' || r == '\\'; {
		case ok && rng.IntN(2) == 0:
			b = append(b, escape...)
		case !must && rng.IntN(2) == 0:
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04X`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return append(b, '"')
}

// change returns the document with one thing changed, somewhere in it.
func (n *jsonNode) change(rng *rand.Rand) *jsonNode {
	changed := *n
	if len(n.kids) > 0 && rng.IntN(3) > 0 {
		at := rng.IntN(len(n.kids))
		changed.kids = slices.Clone(n.kids)
		changed.kids[at] = n.kids[at].change(rng)
		return &changed
	}
	kids := len(n.kids)
	switch kind := rng.IntN(6); {
	case kind == 0:
		return &jsonNode{open: '[', kids: []*jsonNode{n}} // nesting
	case kind == 1 && kids > 0:
		changed.kids = n.kids[:kids-1] // one less
		changed.names = n.names[:max(len(n.names)-1, 0)]
	case kind == 2 && n.open == '[':
		changed.kids = append(slices.Clone(n.kids), &jsonNode{word: "0"}) // one more
	case kind == 3 && n.open == '{' && kids > 0:
		changed.names = slices.Clone(n.names) // a name
		changed.names[rng.IntN(kids)] += "x"
	case kind == 4 && n.open == '[' && kids > 1:
		changed.kids = slices.Clone(n.kids) // the order of elements
		i, j := rng.IntN(kids), rng.IntN(kids)
		changed.kids[i], changed.kids[j] = n.kids[j], n.kids[i]
		if n.kids[i].equal(n.kids[j]) {
			changed.kids[i] = &jsonNode{open: '[', kids: []*jsonNode{n.kids[i]}}
		}
	case n.text != nil:
		text := *n.text + "x" // a value
		changed.text = &text
	case n.word == "true":
		changed.word = "false"
	case n.word == "false", n.word == "null":
		changed.word = "true"
	case n.open == 0 && strings.ContainsAny(n.word, ".eE"):
		changed.word += "0" // a number's text, but not its value
	case n.open == 0 && n.word != "" && n.word[len(n.word)-1] <= '9':
		changed.word += ".0"
	default:
		return &jsonNode{open: '[', kids: []*jsonNode{n}}
	}
	return &changed
}

func (n *jsonNode) equal(m *jsonNode) bool {
	if n.open != m.open || n.word != m.word || (n.text == nil) != (m.text == nil) || n.text != nil && *n.text != *m.text || len(n.kids) != len(m.kids) {
		return false
	}
	for i, kid := range n.kids {
		if len(n.names) > 0 && n.names[i] != m.names[i] || !kid.equal(m.kids[i]) {
			return false
		}
	}
	return true
}

package umavezhttp

import (
	"compress/gzip"
	"strings"
	"testing"
)

func TestF4_SameJSON(t *testing.T) {
	base := payment(`{"valor":100,"cartao":"\u0034111"}`)
	for _, body := range []string{`{"valor":100,"cartao":"4111"}`, ` { "cartao" : "4111" , "valor" : 100 } `, `{"c\u0061rtao":"4111","valor":100}`} {
		if payment(body) != base {
			t.Errorf("%s is another request", body)
		}
	}
	for _, pair := range [][2]string{
		{`{"valor":100,"cartao":"4111"}`, `{"valor":100.0,"cartao":"4111"}`},
		{`[9007199254740992]`, `[9007199254740993]`},
		{`"\ud800"`, `"\ud801"`},
		{`{"a":1,"a":2}`, `{"a":2,"a":1}`},
		{`{"a":1,"a":1}`, `{"a":1}`},
		{`{"a":1`, `{"a":1 `},
		{"\"\xff\"", "\"\xfe\""},
		{`{"a":1}`, `{"a":1}{"a":1}`},
		{`[1,2]`, `[2,1]`},
		{`[[1],2]`, `[1,[2]]`},
	} {
		if payment(pair[0]) == payment(pair[1]) {
			t.Errorf("%s and %s are the same request", pair[0], pair[1])
		}
	}
}

func TestF4_WhichTypesAreJSON(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{}))
	a, b := []byte(`{"a":1,"b":2}`), []byte(`{"b":2,"a":1}`)
	for contentType, same := range map[string]bool{
		"application/json":                  true,
		"Application/JSON ; charset=UTF-8":  true,
		"application/problem+json":          true,
		"application/vnd.api+json":          true,
		`application/json; charset="utf-8"`: true,
		"application/json;charset=us-ascii": true,
		"application/json;charset=utf-16":   false,
		"application/json;charset=latin1":   false,
		"application/jsonl":                 false,
		"application/x-ndjson":              false,
		"text/plain":                        false,
		"+json":                             false,
		"json":                              false,
		"":                                  false,
		"application/json, text/plain":      false,
	} {
		r := sent("POST", "/", contentType)
		if got := f.sum(&testKey, r, a) == f.sum(&testKey, r, b); got != same {
			t.Errorf("%q: another order of members is the same request: %v, want %v", contentType, got, same)
		}
	}
	twice := sent("POST", "/", jsonType, "Content-Type", jsonType)
	if f.sum(&testKey, twice, a) == f.sum(&testKey, twice, b) {
		t.Error("with two Content-Type lines the body is looked into")
	}
}

func TestF4_Raw(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{Raw: true}))
	r := sent("POST", "/", jsonType)
	if f.sum(&testKey, r, []byte(`{"a":1}`)) == f.sum(&testKey, r, []byte(`{"a": 1}`)) {
		t.Error("raw bodies are looked into")
	}
	zipped := sent("POST", "/", jsonType, "Content-Encoding", "gzip")
	if f.sum(&testKey, zipped, gzipped(t, "{}", gzip.BestSpeed)) == f.sum(&testKey, zipped, gzipped(t, "{}", gzip.NoCompression)) {
		t.Error("raw bodies are decoded")
	}
}

// TestF4_FormsAreNotConfused: bytes that are one body's canonical form are not
// the same request when they come as another body's own bytes.
func TestF4_FormsAreNotConfused(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{Exclude: []string{"/0"}}))
	for _, long := range []string{"", strings.Repeat("x", 2*mostInline)} {
		canonical, ok := appendMultipart(nil, []byte(part("b", valorHeader, long)+"--b--"), "b")
		if !ok {
			t.Fatal("no form")
		}
		multi := sent("POST", "/", "multipart/form-data; boundary=b")
		if f.sum(&testKey, multi, canonical) == f.sum(&testKey, multi, []byte(part("b", valorHeader, long)+"--b--")) {
			t.Error("a form and its canonical bytes are the same request")
		}
		r := sent("POST", "/", jsonType)
		if f.sum(&testKey, r, []byte(`["`+long+`"]`)) == f.sum(&testKey, r, []byte("[\x00]")) {
			t.Error("an excluded element and its placeholder are the same request")
		}
		// The digest of a long body, sent as a short one.
		sum := f.sum(&testKey, r, []byte(long))
		if f.sum(&testKey, r, sum.Sum[:]) == sum {
			t.Error("a body and its digest are the same request")
		}
	}
}

func TestF6_URLEncodedIsRaw(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{}))
	r := sent("POST", "/", "application/x-www-form-urlencoded")
	base := f.sum(&testKey, r, []byte("a=1&b=%20"))
	if f.sum(&testKey, r, []byte("a=1&b=%20")) != base {
		t.Error("the same bytes are another request")
	}
	for _, body := range []string{"b=%20&a=1", "a=1&b=+", "a=1&b=%20&"} {
		if f.sum(&testKey, r, []byte(body)) == base {
			t.Errorf("%s is the same request", body)
		}
	}
}

func TestF8_ExcludedFieldsDoNotCount(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{Exclude: []string{"/em", "/cartao/cvv"}}))
	r := sent("POST", "/", jsonType)
	base := f.sum(&testKey, r, []byte(`{"em":"10:00","cartao":{"numero":"4111","cvv":"123"}}`))
	for body, same := range map[string]bool{
		`{"em":"10:01","cartao":{"numero":"4111","cvv":"999"}}`:         true,
		`{"cartao":{"numero":"4111"}}`:                                  true,
		`{"em":"10:00","cartao":{"numero":"4112","cvv":"123"}}`:         false,
		`{"em":"10:00","cartao":{"numero":"4111","cvv":"123"},"cvv":1}`: false,
	} {
		if got := f.sum(&testKey, r, []byte(body)) == base; got != same {
			t.Errorf("%s is the same request: %v, want %v", body, got, same)
		}
	}
}

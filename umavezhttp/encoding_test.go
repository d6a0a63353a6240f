package umavezhttp

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"slices"
	"strings"
	"testing"

	"github.com/umavez/umavez"
)

func gzipped(t testing.TB, body string, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write([]byte(body)); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func deflated(t testing.TB, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestF7_DecodedContentCounts(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{}))
	for _, body := range []string{`{"valor":100,"a":1}`, `{"valor":100,"a":"` + strings.Repeat("xyz", 1000) + `"}`} {
		plain := f.sum(&testKey, sent("POST", "/", jsonType), []byte(body))
		spaced := strings.Replace(body, ":", " : ", 1)
		for name, tc := range map[string]struct {
			coding string
			body   []byte
		}{
			"gzip":                  {"gzip", gzipped(t, body, gzip.BestCompression)},
			"gzip, not compressed":  {"GZIP", gzipped(t, body, gzip.NoCompression)},
			"gzip, spelled another": {" x-gzip ", gzipped(t, spaced, gzip.BestSpeed)},
			"gzip in two members":   {"gzip", append(gzipped(t, body[:5], 1), gzipped(t, body[5:], 1)...)},
			"deflate":               {"deflate", deflated(t, spaced)},
			"identity":              {"identity", []byte(body)},
		} {
			got := f.sum(&testKey, sent("POST", "/", jsonType, "Content-Encoding", tc.coding), tc.body)
			if got != plain {
				t.Errorf("%s: %q differs", name, differs(plain, got))
			}
		}
	}
}

func TestF7_WhatCannotBeDecodedIsRaw(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{}))
	body := `{"valor":100,"a":1}`
	plain := f.sum(&testKey, sent("POST", "/", jsonType), []byte(body))
	zip, deflate := gzipped(t, body, 1), deflated(t, body)
	seen := map[umavez.Fingerprint]string{plain: "plain"}
	for name, tc := range map[string]struct {
		coding string
		body   []byte
	}{
		"a coding that is not known": {"br", zip},
		"two codings":                {"gzip, gzip", zip},
		"the wrong coding":           {"deflate", zip},
		"bare deflate":               {"deflate", deflate[2 : len(deflate)-4]},
		"not compressed at all":      {"gzip", []byte(body)},
		"empty":                      {"gzip", nil},
		"cut short":                  {"gzip", zip[:len(zip)-1]},
		"a wrong checksum":           {"gzip", append(slices.Clone(zip[:len(zip)-8]), 1, 2, 3, 4, 5, 6, 7, 8)},
		"bytes behind the end":       {"gzip", append(slices.Clone(zip), "x"...)},
		"zeros behind the end":       {"gzip", append(slices.Clone(zip), 0, 0)},
		"bytes behind deflate's end": {"deflate", append(slices.Clone(deflate), "x"...)},
		"deflate, cut short":         {"deflate", deflate[:len(deflate)-1]},
	} {
		r := sent("POST", "/", jsonType, "Content-Encoding", tc.coding)
		got := f.sum(&testKey, r, tc.body)
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s are the same request", name, other)
		}
		seen[got] = name
		if f.sum(&testKey, r, tc.body) != got {
			t.Errorf("%s: the same bytes are another request", name)
		}
	}
}

// TestF7_Bombs: beyond the caps the bytes count as they came, and little memory
// is spent to find out.
func TestF7_Bombs(t *testing.T) {
	plain := strings.Repeat("0", 10_000)
	zip := gzipped(t, plain, gzip.BestCompression)
	for name, tc := range map[string]struct {
		opt  fingerprintOptions
		same bool
	}{
		"within both caps": {fingerprintOptions{MaxDecoded: 10_000, MaxRatio: 10_000}, true},
		"over the size":    {fingerprintOptions{MaxDecoded: 9_999, MaxRatio: 10_000}, false},
		"over the ratio":   {fingerprintOptions{MaxDecoded: 10_000, MaxRatio: 10_000/len(zip) - 1}, false},
	} {
		f := mustPrints(t, tc.opt)
		got := f.sum(&testKey, sent("POST", "/", "text/plain", "Content-Encoding", "gzip"), zip)
		if same := got == f.sum(&testKey, sent("POST", "/", "text/plain"), []byte(plain)); same != tc.same {
			t.Errorf("%s: it is the same request as the decoded one: %v", name, same)
		}
	}
	var d decoder
	bomb := gzipped(t, strings.Repeat("0", 16<<20), gzip.BestSpeed)
	if _, ok := d.decode("gzip", bomb, defaultMaxBody); ok || cap(d.out) > 4*defaultMaxBody {
		t.Errorf("a bomb is decoded: %v, into %d bytes", ok, cap(d.out))
	}
	if d.forget(); d.out != nil {
		t.Error("its memory is kept")
	}
}

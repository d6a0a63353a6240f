package umavezhttp

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/umavez/umavez"
)

var testKey = [32]byte{1, 2, 3}

// limits are the defaults, which most tests do not care about.
func limits(opt fingerprintOptions) fingerprintOptions {
	opt.MaxDecoded = cmp.Or(opt.MaxDecoded, defaultMaxBody)
	opt.MaxRatio = cmp.Or(opt.MaxRatio, defaultMaxRatio)
	return opt
}

func mustPrints(t testing.TB, opt fingerprintOptions, formerly ...fingerprintOptions) *fingerprinter {
	t.Helper()
	f, err := newFingerprinter(opt, formerly...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sent is a request as a client sends it: its first line's target, its content
// type, and other headers as name and value pairs.
func sent(method, target, contentType string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

const jsonType = "application/json"

func payment(body string, headers ...string) umavez.Fingerprint {
	f, err := newFingerprinter(limits(fingerprintOptions{}))
	if err != nil {
		panic(err)
	}
	return f.sum(&testKey, sent("POST", "/pagamentos", jsonType, headers...), []byte(body))
}

func TestF3_WhatCounts(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{Headers: []string{"X-Conta"}, Host: true}))
	body := `{"valor": 100}`
	base := f.sum(&testKey, sent("POST", "/pagamentos?moeda=brl", jsonType), []byte(body))
	host := sent("POST", "/pagamentos?moeda=brl", jsonType)
	host.Host = "outra.example"
	for name, tc := range map[string]struct {
		r       *http.Request
		body    string
		differs []string
	}{
		"the method":           {sent("PATCH", "/pagamentos?moeda=brl", jsonType), body, []string{"method"}},
		"the path":             {sent("POST", "/pagamentos/7?moeda=brl", jsonType), body, []string{"path"}},
		"a slash":              {sent("POST", "/pagamentos/?moeda=brl", jsonType), body, []string{"path"}},
		"the path's case":      {sent("POST", "/Pagamentos?moeda=brl", jsonType), body, []string{"path"}},
		"the path's escapes":   {sent("POST", "/pagament%6Fs?moeda=brl", jsonType), body, []string{"path"}},
		"the query":            {sent("POST", "/pagamentos?moeda=usd", jsonType), body, []string{"query"}},
		"the query's order":    {sent("POST", "/pagamentos?moeda=brl&a", jsonType), body, []string{"query"}},
		"no query":             {sent("POST", "/pagamentos", jsonType), body, []string{"query"}},
		"the media type":       {sent("POST", "/pagamentos?moeda=brl", "application/x+json"), body, []string{"type"}},
		"the charset":          {sent("POST", "/pagamentos?moeda=brl", jsonType+";charset=utf-8"), body, []string{"type"}},
		"a value":              {sent("POST", "/pagamentos?moeda=brl", jsonType), `{"valor": 101}`, []string{"body"}},
		"no body":              {sent("POST", "/pagamentos?moeda=brl", jsonType), ``, []string{"body"}},
		"a named header":       {sent("POST", "/pagamentos?moeda=brl", jsonType, "X-Conta", "1"), body, []string{"headers"}},
		"the host":             {host, body, []string{"host"}},
		"the path and a value": {sent("POST", "/x?moeda=brl", jsonType), `{"valor": 101}`, []string{"path", "body"}},
	} {
		got := f.sum(&testKey, tc.r, []byte(tc.body))
		if got.Sum == base.Sum {
			t.Errorf("%s does not count", name)
		}
		if d := differs(base, got); !slices.Equal(d, tc.differs) {
			t.Errorf("%s: %q differs, want %q", name, d, tc.differs)
		}
	}
	for name, r := range map[string]*http.Request{
		"nothing":             sent("POST", "/pagamentos?moeda=brl", jsonType),
		"an unnamed header":   sent("POST", "/pagamentos?moeda=brl", jsonType, "User-Agent", "x", "Authorization", "Bearer new"),
		"the type's case":     sent("POST", "/pagamentos?moeda=brl", "Application/JSON"),
		"another parameter":   sent("POST", "/pagamentos?moeda=brl", jsonType+"; profile=x"),
		"the host's case":     sent("POST", "http://EXAMPLE.com/pagamentos?moeda=brl", jsonType),
		"the request's scope": sent("POST", "/pagamentos?moeda=brl", jsonType, "Idempotency-Key", "k"),
	} {
		got := f.sum(&testKey, r, []byte(body))
		if got != base {
			t.Errorf("%s counts: %q", name, differs(base, got))
		}
	}
}

func TestF3_PartsDoNotRunIntoEachOther(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{Headers: []string{"X-A", "X-B"}}))
	seen := map[umavez.Fingerprint]string{}
	for name, r := range map[string]*http.Request{
		"a, b":         sent("POST", "/", "", "X-A", "a", "X-B", "b"),
		"ab":           sent("POST", "/", "", "X-A", "ab"),
		", ab":         sent("POST", "/", "", "X-B", "ab"),
		"a b":          sent("POST", "/", "", "X-A", "a", "X-A", "b"),
		"b a":          sent("POST", "/", "", "X-A", "b", "X-A", "a"),
		"a, b joined":  sent("POST", "/", "", "X-A", "a, b"),
		"empty":        sent("POST", "/", "", "X-A", ""),
		"none":         sent("POST", "/", ""),
		"in the query": sent("POST", "/?ab", ""),
		"in the path":  sent("POST", "/ab", ""),
	} {
		got := f.sum(&testKey, r, nil)
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are the same request", name, other)
		}
		seen[got] = name
	}
}

// TestF3_HostDoesNotCountByDefault: a client that fails over to another address
// must get its replay.
func TestF3_HostDoesNotCountByDefault(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{}))
	a, b := sent("POST", "/", ""), sent("POST", "/", "")
	a.Host, b.Host = "10.0.0.1:8081", "10.0.0.2:8081"
	if f.sum(&testKey, a, nil) != f.sum(&testKey, b, nil) {
		t.Error("the host counts")
	}
}

// TestF3_PathAsReceived: what an outer handler does to r.URL changes nothing.
func TestF3_PathAsReceived(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{}))
	sumOf := func(target string) (fp umavez.Fingerprint) {
		h := http.StripPrefix("/v1", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fp = f.sum(&testKey, r, nil) }))
		mux := http.NewServeMux()
		mux.Handle("/v1/", h)
		mux.Handle("/v2/", http.StripPrefix("/v2", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fp = f.sum(&testKey, r, nil) })))
		mux.ServeHTTP(httptest.NewRecorder(), sent("POST", target, ""))
		return fp
	}
	direct := f.sum(&testKey, sent("POST", "/v1/pagamentos?a=1", ""), nil)
	if got := sumOf("/v1/pagamentos?a=1"); got != direct {
		t.Errorf("behind StripPrefix %q differs", differs(direct, got))
	}
	if sumOf("/v1/x") == sumOf("/v2/x") {
		t.Error("two operations have one path, once their prefix is stripped")
	}
	if f.sum(&testKey, sent("POST", "http://loja.example/v1/pagamentos?a=1", ""), nil) != direct {
		t.Error("the absolute form is another request")
	}
	byHand := sent("POST", "/v1/pagamentos?a=1", "")
	byHand.RequestURI = ""
	if f.sum(&testKey, byHand, nil) != direct {
		t.Error("a request made by hand is another request")
	}
}

func TestF3_SumIsKeyed(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{}))
	r := sent("POST", "/pagamentos", jsonType)
	for _, body := range []string{`{"cartao":"4111111111111111"}`, strings.Repeat("x", 1000)} {
		a := f.sum(&testKey, r, []byte(body))
		b := f.sum(&[32]byte{9}, r, []byte(body))
		if a.Sum == b.Sum {
			t.Error("the key does not count")
		}
		for i := range a.Parts {
			if a.Parts[i] != 0 && a.Parts[i] == b.Parts[i] {
				t.Errorf("the hint of part %d does not depend on the key", i)
			}
		}
		if again := f.sum(&testKey, r, []byte(body)); again != a {
			t.Error("after another key, the first one gives another sum")
		}
	}
}

// TestF3_SumByTheBook makes a fingerprint from its description, with nothing of
// ours: HMAC-SHA-256 over length-prefixed parts, under a key made for it.
func TestF3_SumByTheBook(t *testing.T) {
	derived := hmac.New(sha256.New, testKey[:])
	derived.Write([]byte("umavez request 1"))
	f := mustPrints(t, limits(fingerprintOptions{Headers: []string{"X-A"}}))
	for _, query := range []string{"", "a=1", strings.Repeat("q", 127), strings.Repeat("q", 128), strings.Repeat("q", 20_000)} {
		mac := hmac.New(sha256.New, derived.Sum(nil))
		for _, part := range []string{"POST", "/pagamentos", query, "application/json;utf-8", "j\x00\x00" + `{"a":1,"b":2}`, "\x01\x01x", ""} {
			mac.Write(binary.AppendUvarint(nil, uint64(len(part))))
			mac.Write([]byte(part))
		}
		got := f.sum(&testKey, sent("POST", "/pagamentos?"+query, `Application/JSON; Charset="UTF-8"`, "X-A", "x"), []byte(` {"b":2, "a":1}`))
		if !bytes.Equal(got.Sum[:], mac.Sum(nil)) {
			t.Errorf("with a query of %d bytes the sum is %x, by the book %x", len(query), got.Sum, mac.Sum(nil))
		}
	}
}

// TestF3_SumsStandStill: records in stores hold sums, so a request must have the
// same one in every release. When this fails, raise fingerprintVersion, and keep
// the old code for the records of before.
func TestF3_SumsStandStill(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{Exclude: []string{"/em"}}))
	for _, tc := range []struct {
		hints, sum string
		got        umavez.Fingerprint
	}{
		{
			"e974bdce71cea2616ec58b1e242a9a685e43b334", "0803a165564d320fa08d1815d0537301e0ecc15aeac50d18772be6053652741d",
			f.sum(&testKey, sent("POST", "/pagamentos?a=1", jsonType), []byte(`{"valor": 100, "em": "10:00"}`)),
		},
		{
			"e974bdce71cea26100000000242a9a68d9f27215", "1a6c1e6df63bf2fe0458e507b1e0085df836669c2915db55013842cc8ff2a2d8",
			f.sum(&testKey, sent("POST", "/pagamentos", jsonType), []byte(`{"valor": "`+strings.Repeat("x", 1000)+`"}`)),
		},
		{
			"0faad530632a8316000000002e2b7b866cd1b3f8", "b85d084f01c0d38cd56676e392fee4192a0b40ab33b90996345f97a75f26d0d4",
			f.sum(&testKey, sent("PATCH", "/x", "text/plain; charset=utf-8"), []byte("texto")),
		},
		{
			"e974bdce632a8316000000005ffcb357035f09d9", "f2ac7c3659fe3f8dc70b07a3edf379912d73aa7ac567daf9f90e60c8408cbf99",
			f.sum(&testKey, sent("POST", "/x", "multipart/form-data; boundary=b"), []byte(form("b"))),
		},
		{
			"e974bdce632a831600000000242a9a686d3c35a6", "8fe445e89bcd8c5c07ebb79c699961a5d2a1e1333b3f7d7707cd25bc7432f803",
			f.sum(&testKey, sent("POST", "/x", jsonType, "Content-Encoding", "br"), []byte("\x0b\x02\x80")),
		},
	} {
		var hints []byte
		for _, p := range tc.got.Parts[:partHeaders] {
			hints = binary.BigEndian.AppendUint32(hints, p)
		}
		if tc.got.Recipe != 0xee0d0984 {
			t.Errorf("the recipe is %x", tc.got.Recipe)
		}
		if hex.EncodeToString(hints) != tc.hints || hex.EncodeToString(tc.got.Sum[:]) != tc.sum {
			t.Errorf("the hints are %x, the sum is %x", hints, tc.got.Sum)
		}
	}
}

func TestF3_Recipes(t *testing.T) {
	seen := map[uint32]fingerprintOptions{}
	for _, opt := range []fingerprintOptions{
		{},
		{Raw: true},
		{Host: true},
		{Exclude: []string{"/a"}},
		{Exclude: []string{"/b"}},
		{Exclude: []string{"/a", "/b"}},
		{Headers: []string{"X-A"}},
		{Headers: []string{"X-A", "X-B"}},
		{Headers: []string{"/a"}},
		{MaxDecoded: 1},
		{MaxRatio: 1},
	} {
		f := mustPrints(t, opt)
		if other, ok := seen[f.recipe]; ok || f.recipe == 0 {
			t.Errorf("%+v and %+v have the recipe %d", opt, other, f.recipe)
		}
		seen[f.recipe] = opt
	}
	a := mustPrints(t, fingerprintOptions{Exclude: []string{"/a", "/b"}, Headers: []string{"X-A", "X-B"}})
	b := mustPrints(t, fingerprintOptions{Exclude: []string{"/b", "/a", "/b"}, Headers: []string{"X-B", "X-A"}})
	if a.recipe != b.recipe {
		t.Error("the order in which options are listed makes another recipe")
	}
	r := sent("POST", "/", "", "X-A", "1", "X-B", "2")
	if a.sum(&testKey, r, nil) != b.sum(&testKey, r, nil) {
		t.Error("the order in which headers are listed makes another sum")
	}
}

// TestF3_TheRecordsRecipe: a route that compares in another way than it did still
// understands the records of before, and says so when it does not.
func TestF3_TheRecordsRecipe(t *testing.T) {
	before := limits(fingerprintOptions{})
	now := mustPrints(t, limits(fingerprintOptions{Exclude: []string{"/em"}}), before)
	r := sent("POST", "/pagamentos", jsonType)
	body := []byte(`{"valor":100,"em":"10:00"}`)
	record := mustPrints(t, before).sum(&testKey, r, body)

	if got, ok := now.sumBy(record.Recipe, &testKey, r, body); !ok || got != record {
		t.Errorf("by the former recipe it is %v, %v; want %v", got, ok, record)
	}
	if got, ok := now.sumBy(now.recipe, &testKey, r, body); !ok || got != now.sum(&testKey, r, body) {
		t.Errorf("by the present recipe it is %v, %v", got, ok)
	}
	if got, ok := now.sumBy(record.Recipe+1, &testKey, r, body); ok || got != (umavez.Fingerprint{}) {
		t.Errorf("by an unknown recipe it is %v, %v", got, ok)
	}
	if d := differs(record, now.sum(&testKey, r, body)); d != nil {
		t.Errorf("sums of different recipes say %q of each other", d)
	}
	if _, err := newFingerprinter(limits(fingerprintOptions{}), fingerprintOptions{Exclude: []string{"x"}}); err == nil {
		t.Error("a former recipe with a malformed pointer is taken")
	}
}

func TestF10_DiffersNamesWhatDiffers(t *testing.T) {
	a := payment(`{"valor":100}`)
	if d := differs(a, a); d != nil {
		t.Errorf("%q differs of the same request", d)
	}
	// Two bodies whose hints met by chance: the sums say that something differs.
	b := payment(`{"valor":101}`)
	b.Parts = a.Parts
	if d := differs(a, b); !slices.Equal(d, []string{"body"}) {
		t.Errorf("with equal hints %q differs", d)
	}
}

// TestFingerprintAllocates: the usual request costs nothing, and what an unusual
// one costs does not stay in memory.
func TestFingerprintAllocates(t *testing.T) {
	f := mustPrints(t, limits(fingerprintOptions{Exclude: []string{"/em"}, Headers: []string{"X-Conta"}, Host: true}))
	h := new(hasher)
	long := []byte(`{"b":"` + strings.Repeat("x", 2000) + `","a":1}`)
	for name, tc := range map[string]struct {
		r    *http.Request
		body []byte
	}{
		"14 bytes of JSON": {sent("POST", "/pagamentos?a=1", jsonType+"; charset=utf-8", "X-Conta", "1"), []byte(`{"valor": 100}`)},
		"excluded fields":  {sent("POST", "/pagamentos", jsonType), []byte(`{"valor": 100, "em": 1}`)},
		"2 KB of JSON":     {sent("POST", "/pagamentos", jsonType), long},
		"plain text":       {sent("POST", "/pagamentos", "text/plain"), long},
		"compressed":       {sent("POST", "/pagamentos", jsonType, "Content-Encoding", "gzip"), gzipped(t, string(long), 1)},
		"no body":          {sent("POST", "/pagamentos", ""), nil},
	} {
		f.sumWith(h, &testKey, tc.r, tc.body)
		if n := testing.AllocsPerRun(100, func() { f.sumWith(h, &testKey, tc.r, tc.body) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	huge := []byte(`[` + strings.Repeat(`{"b":1,"a":2},`, 50_000) + `1]`)
	f.sumWith(h, &testKey, sent("POST", "/", jsonType), huge)
	f.sumWith(h, &testKey, sent("POST", "/", jsonType, "Content-Encoding", "gzip"), gzipped(t, string(huge), 1))
	f.sumWith(h, &testKey, sent("POST", "/", "multipart/form-data; boundary=b"), []byte(part("b", valorHeader, string(huge))+"--b--"))
	for name, kept := range map[string]int{
		"msg": cap(h.msg), "form": cap(h.form), "out": cap(h.json.out), "scratch": cap(h.json.scratch), "members": 32 * cap(h.json.members), "decoded": cap(h.decoder.out),
	} {
		if kept > mostPooled {
			t.Errorf("%s keeps %d bytes", name, kept)
		}
	}
	// The hasher holds on to no request either.
	if h.json.in != nil || h.decoder.src.Len() != 0 {
		t.Error("the hasher keeps a body")
	}
}

func BenchmarkFingerprint(b *testing.B) {
	f := mustPrints(b, limits(fingerprintOptions{}))
	for name, body := range map[string]string{
		"14 bytes": `{"valor": 100}`,
		"1 MiB":    `[` + strings.Repeat(`{"valor": 100,"b":"xyz","a":null},`, 30_000) + `1]`,
	} {
		b.Run(name, func(b *testing.B) {
			r, body := sent("POST", "/pagamentos", jsonType), []byte(body)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				f.sum(&testKey, r, body)
			}
		})
	}
}

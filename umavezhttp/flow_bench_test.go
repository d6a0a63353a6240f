package umavezhttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// What protecting a handler costs: an answer of 118 bytes to a request of 14,
// over a store in memory, with a harness that is as thin as net/http allows. The
// harness by itself is measured beside it.

const (
	benchRequest = `{"valor":1990}`
	benchAnswer  = `{"id":"pag_01J9Z3T6Q8V5W2X4Y7Z0A1B2C3","status":"aprovado","valor":1990,"cartao":"4242","criado":"2026-01-02T03:04:05"}`
)

func benchHandler(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	w.Write([]byte(benchAnswer))
}

// thinWriter is a ResponseWriter that keeps nothing.
type thinWriter struct {
	header http.Header
	status int
	length int
}

func (w *thinWriter) Header() http.Header         { return w.header }
func (w *thinWriter) WriteHeader(status int)      { w.status = status }
func (w *thinWriter) Write(p []byte) (int, error) { w.length += len(p); return len(p), nil }

type thinBody struct{ bytes.Reader }

func (*thinBody) Close() error { return nil }

// thinRequest sends one request through h, and returns the status.
func thinRequest(h http.Handler, key string) int {
	body := new(thinBody)
	body.Reset([]byte(benchRequest))
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: "/pagamentos"}, RequestURI: "/pagamentos",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "example.com",
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          body,
		ContentLength: int64(len(benchRequest)),
	}
	if key != "" {
		r.Header["Idempotency-Key"] = []string{key}
	}
	w := &thinWriter{header: make(http.Header)}
	h.ServeHTTP(w, r)
	return w.status
}

func BenchmarkFlow(b *testing.B) {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer eng.Close(context.Background())
	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "bench", Principal: umavezhttp.Anonymous})
	if err != nil {
		b.Fatal(err)
	}
	bare := http.HandlerFunc(benchHandler)
	protected := once.Opaque(bare)
	run := func(h http.Handler, key func(i int) string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if got := thinRequest(h, key(i)); got != http.StatusCreated {
					b.Fatalf("status %d", got)
				}
			}
		}
	}
	none := func(int) string { return "" }
	n := 0
	fresh := func(int) string { n++; return "key-" + strconv.Itoa(n) }
	same := func(int) string { return "same" }
	b.Run("harness/nokey", run(bare, none))
	b.Run("harness/fresh", run(bare, fresh))
	b.Run("harness/same", run(bare, same))
	b.Run("nokey", run(protected, none))
	b.Run("first", run(protected, fresh))
	b.Run("replay", run(protected, same))
}

package bench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// umavezSide is the middleware with its defaults: fingerprint, scope, lease and
// heartbeat on, over the store in memory.
func umavezSide(tb testing.TB) *side {
	s := &side{name: "umavez", ran: new(int)}
	pagar := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*s.ran++
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	var (
		eng  *umavez.Engine
		once http.Handler
	)
	end := func() {
		if eng == nil {
			return
		}
		if err := eng.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	}
	tb.Cleanup(func() { end() })
	s.renew = func() {
		end() // or its store would stay in memory
		eng, once = protect(tb, pagar)
	}
	s.bare = func(key string) int { return serve(pagar, key) }
	s.once = func(key string) int { return serve(once, key) }
	return s
}

// protect puts a new engine over an empty store in front of a handler.
func protect(tb testing.TB, h http.Handler) (*umavez.Engine, http.Handler) {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "loja", Principal: umavezhttp.Anonymous})
	if err != nil {
		tb.Fatal(err)
	}
	return eng, once.Opaque(h)
}

// serve sends one request as net/http's server would hand it over, with as
// little around it as net/http's types allow.
func serve(h http.Handler, key string) int {
	body := new(thinBody)
	body.Reset([]byte(request))
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: path}, RequestURI: path,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "example.com",
		Header:        http.Header{"Content-Type": {media}, "Idempotency-Key": {key}},
		Body:          body,
		ContentLength: int64(len(request)),
	}
	w := &thinWriter{header: make(http.Header)}
	h.ServeHTTP(w, r)
	if w.length != len(answer) {
		return 0
	}
	return w.status
}

// thinWriter is a ResponseWriter that keeps nothing.
type thinWriter struct {
	header http.Header
	status int
	length int
}

func (w *thinWriter) Header() http.Header    { return w.header }
func (w *thinWriter) WriteHeader(status int) { w.status = status }

func (w *thinWriter) Write(p []byte) (int, error) {
	w.length += len(p)
	return len(p), nil
}

func (w *thinWriter) WriteString(s string) (int, error) {
	w.length += len(s)
	return len(s), nil
}

// thinBody is a request's body: the bytes, and a Close that does nothing.
type thinBody struct{ bytes.Reader }

func (*thinBody) Close() error { return nil }

package umavezhttptest

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/umavez/umavez/umavezhttp"
)

// keyHeader is where a request has its key.
const keyHeader = "Idempotency-Key"

// template is a request that can be sent more than once.
type template struct {
	request *http.Request
	body    []byte
}

// newTemplate reads the request's body, and makes a key if it has none.
func newTemplate(t T, r *http.Request) *template {
	t.Helper()
	tpl := &template{request: r.Clone(r.Context())}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatalf("umavezhttptest: reading the body of the request: %v", err)
		}
		tpl.body = body
		r.Body = io.NopCloser(bytes.NewReader(body)) // for whoever uses the request again
	}
	if tpl.request.Header == nil {
		tpl.request.Header = http.Header{}
	}
	if tpl.request.Header.Get(keyHeader) == "" {
		tpl.request.Header.Set(keyHeader, rand.Text())
	}
	return tpl
}

// attempt returns the request as the client sends it once more.
func (tpl *template) attempt(ctx context.Context) *http.Request {
	r := tpl.request.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(tpl.body))
	return r
}

// send sends the request through h, as a client that waits for the answer.
func (tpl *template) send(h http.Handler) umavezhttp.Answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, tpl.attempt(tpl.request.Context()))
	resp := w.Result()
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // from memory: it cannot fail
	return umavezhttp.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body, Trailer: resp.Trailer}
}

package umavezhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/umavez/umavez/umavezhttp"
)

// wrapped is what a layer between puts around a ResponseWriter.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestTakeBack: what was taken back is in nobody's answer: neither the first one
// nor the replay.
func TestTakeBack(t *testing.T) {
	h := setup{}.opaque(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "40")
		w.Header().Set("X-Half", "yes")
		w.Header().Set("X-Outside", "changed")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"id":`)
		if err := umavezhttp.TakeBack(wrapped{w}); err != nil {
			t.Error(err)
		}
		if w.Header().Get("X-Half") != "" || w.Header().Get("X-Outside") != "1" {
			t.Errorf("the header is %v", w.Header())
		}
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, "it broke off")
	})
	for _, replayed := range []string{"", "true"} {
		w := httptest.NewRecorder()
		w.Header().Set("X-Outside", "1")
		r := httptest.NewRequest("POST", "/pay", strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", "k1")
		h.ServeHTTP(w, r)
		res := w.Result()
		if res.StatusCode != http.StatusConflict || w.Body.String() != "it broke off" || res.Header.Get("X-Half") != "" ||
			res.Header.Get("Content-Length") == "40" || res.Header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("got %d %v %q", res.StatusCode, res.Header, w.Body)
		}
	}
}

// TestTakeBackTooLate: what has gone out is not taken back, and no more is what
// no protected handler wrote.
func TestTakeBackTooLate(t *testing.T) {
	for what, begin := range map[string]func(http.ResponseWriter){
		"flushed":      func(w http.ResponseWriter) { http.NewResponseController(w).Flush() },
		"a stream":     func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream"); w.WriteHeader(200) },
		"over the cap": func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat("x", 2<<20)) },
	} {
		var got error
		h := setup{}.opaque(t, func(w http.ResponseWriter, _ *http.Request) {
			begin(w)
			got = umavezhttp.TakeBack(w)
		})
		r := httptest.NewRequest("POST", "/pay", strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", "k1")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if !errors.Is(got, umavezhttp.ErrNotTakenBack) {
			t.Errorf("%s: %v", what, got)
		}
	}
	if err := umavezhttp.TakeBack(wrapped{httptest.NewRecorder()}); err == nil {
		t.Error("the answer of a handler that is not protected was taken back")
	}
}

// TestRefuse: who stands around the middleware speaks in its voice.
func TestRefuse(t *testing.T) {
	once := setup{http: umavezhttp.Options{ProblemBase: "https://loja.example/problems"}}.once(t)
	for _, c := range []struct{ status, want int }{{0, http.StatusConflict}, {http.StatusGatewayTimeout, http.StatusGatewayTimeout}} {
		w := httptest.NewRecorder()
		once.Refuse(w, httptest.NewRequest("POST", "/pay", nil), "outcome-unknown", c.status)
		if w.Code != c.want || !strings.Contains(w.Body.String(), `"type":"https://loja.example/problems#outcome-unknown"`) ||
			w.Header().Get("Stripe-Should-Retry") != "false" {
			t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a code that does not exist was written")
		}
	}()
	once.Refuse(httptest.NewRecorder(), httptest.NewRequest("POST", "/pay", nil), "no-such-code", 0)
}

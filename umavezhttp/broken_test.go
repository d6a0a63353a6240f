package umavezhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/umavez/umavez/store/memstore"
)

// TestR10_BrokenOff: what breaks off is no answer. Its own client sees that
// something is missing, and a retry that nothing is known.
func TestR10_BrokenOff(t *testing.T) {
	overBoth(t, func(t *testing.T, h2 bool) {
		for name, handler := range map[string]http.HandlerFunc{
			"short": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				io.WriteString(w, "short")
			},
			"short, live": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				io.WriteString(w, "short")
				w.(http.Flusher).Flush()
			},
			"nothing of it": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				w.WriteHeader(200)
			},
			"aborted": func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "some")
				panic(http.ErrAbortHandler)
			},
			"aborted, live": func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "some")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			},
		} {
			t.Run(name, func(t *testing.T) {
				var runs atomic.Int64
				server := listen(t, setup{}.opaque(t, counted(&runs, handler)), h2)
				if first, err := fetch(t, server, "k"); err == nil {
					t.Errorf("first: looks whole: %v", first)
				}
				mustFetch(t, server, "k").mustRefuse(t, 409, "outcome-unknown")
				if runs.Load() != 1 {
					t.Errorf("ran %d times", runs.Load())
				}
			})
		}
	})
}

// TestR10_SourceFails: an io.Copy that ends early leaves an answer that is not
// whole, even if the handler looks away.
func TestR10_SourceFails(t *testing.T) {
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, io.MultiReader(strings.NewReader("half"), failingReader{}))
	})
	serve2 := func() reply {
		w := readerFromRecorder{httptest.NewRecorder()}
		h.ServeHTTP(w, newRequest("k"))
		return replyOf(w.Result())
	}
	if first := serve2(); first.body != "half" || first.header.Get("Idempotency-Status") != "unknown" {
		t.Errorf("first: %v", first)
	}
	serve2().mustRefuse(t, 409, "outcome-unknown")
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

// readerFromRecorder has the ReadFrom that net/http's writers have.
type readerFromRecorder struct{ *httptest.ResponseRecorder }

func (w readerFromRecorder) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(w.Body, src)
}

// TestR10_ToldToStop: an operation whose context was ended, and which wrote
// nothing, gave no answer: least of all an empty 200.
func TestR10_ToldToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faultyStore{Store: memstore.New(memstore.Options{}), before: func(op string) error {
			if op == "extend" {
				return errStoreDown
			}
			return nil
		}}
		once := setup{store: store}.once(t)
		h := once.Rerunnable(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done() // its lease ran out, and cannot be extended
		}))
		got := post(h, "k")
		got.mustRefuse(t, 504, "outcome-unknown")
		got.mustWait(t, "1") // the next attempt takes over
	})
}

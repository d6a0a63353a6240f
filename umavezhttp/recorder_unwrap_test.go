package umavezhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez/umavezhttp"
)

// deepFlusher can be flushed by a ResponseController only, further down.
type deepFlusher struct{ http.ResponseWriter }

func (w deepFlusher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestController: http.ResponseController works as without us, and is no way
// around the record.
func TestController(t *testing.T) {
	t.Run("deadlines and duplex", func(t *testing.T) {
		server := listen(t, setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			for name, err := range map[string]error{
				"read deadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
				"write deadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
				"full duplex":    c.EnableFullDuplex(),
				"flush":          c.Flush(),
			} {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}), false)
		mustFetch(t, server, "k")
	})
	t.Run("what is not there", func(t *testing.T) {
		var j journal
		h := setup{store: journaling(&j)}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			_, _, hijack := c.Hijack()
			for name, err := range map[string]error{
				"flush": c.Flush(), "hijack": hijack, "deadline": c.SetReadDeadline(time.Time{}), "duplex": c.EnableFullDuplex(),
			} {
				if !errors.Is(err, http.ErrNotSupported) {
					t.Errorf("%s: %v", name, err)
				}
			}
			io.WriteString(w, "held")
		})
		h.ServeHTTP(plain{httptest.NewRecorder()}, newRequest("k"))
		if want := "claim complete"; j.String() != want {
			t.Errorf("order: %v, want %v", &j, want)
		}
	})
	t.Run("deep flush", func(t *testing.T) {
		var j journal
		h := setup{store: journaling(&j)}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			if _, ok := w.(http.Flusher); ok {
				t.Error("offers Flusher, which the writer beneath it does not")
			}
			io.WriteString(w, "live")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		})
		h.ServeHTTP(deepFlusher{journalWriter{httptest.NewRecorder(), &j}}, newRequest("k"))
		if want := "claim note header-200 body-4 flush complete"; j.String() != want {
			t.Errorf("order: %v, want %v", &j, want)
		}
	})
	t.Run("unwrapped", func(t *testing.T) {
		var j journal
		h := setup{store: journaling(&j)}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			for {
				u, ok := w.(interface{ Unwrap() http.ResponseWriter })
				if !ok {
					break
				}
				w = u.Unwrap()
			}
			w.Header().Set("X-Deep", "1")
			w.WriteHeader(201)
			w.Write([]byte("deep"))
		})
		h.ServeHTTP(journalWriter{httptest.NewRecorder(), &j}, newRequest("k"))
		if want := "claim complete header-201 body-4"; j.String() != want {
			t.Errorf("order: %v, want %v", &j, want)
		}
		if got := post(h, "k"); got.body != "deep" || got.header.Get("X-Deep") != "1" {
			t.Errorf("replay: %v", got)
		}
	})
}

// TestReadFrom: a source goes through whole: recorded at first, and past the cap
// handed to the writer beneath.
func TestReadFrom(t *testing.T) {
	for _, size := range []int{10, 1000, 1001, 200_000} {
		text := strings.Repeat("x", size)
		h := setup{http: umavezhttp.Options{MaxAnswer: 1000}}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			if n, err := w.(io.ReaderFrom).ReadFrom(struct{ io.Reader }{strings.NewReader(text)}); err != nil || n != int64(size) {
				t.Errorf("ReadFrom: %d, %v", n, err)
			}
		})
		w := readerFromRecorder{httptest.NewRecorder()}
		h.ServeHTTP(w, newRequest("k"))
		if got := w.Body.Len(); got != size {
			t.Errorf("%d of %d bytes went out", got, size)
		}
		again := httptest.NewRecorder()
		h.ServeHTTP(readerFromRecorder{again}, newRequest("k"))
		if whole := replyOf(again.Result()).body == text; whole != (size <= 1000) {
			t.Errorf("%d bytes: replayed %v", size, whole)
		}
	}
}

// TestCloseNotify: frameworks that call it without looking get a channel; it
// says no more than the operation's context.
func TestCloseNotify(t *testing.T) {
	server := listen(t, setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-w.(interface{ CloseNotify() <-chan bool }).CloseNotify():
			t.Error("told to stop")
		default:
		}
	}), false)
	mustFetch(t, server, "k")
}

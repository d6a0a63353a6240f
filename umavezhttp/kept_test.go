package umavezhttp_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez/umavezhttp"
)

// TestA9_Informational: 1xx go out at once and are not stored.
func TestA9_Informational(t *testing.T) {
	overBoth(t, func(t *testing.T, h2 bool) {
		hinted := make(chan struct{})
		server := listen(t, setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			<-hinted
			w.Header().Del("Link")
			pay(w, r)
		}), h2)
		hints := 0
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if hints++; hints == 1 {
				close(hinted)
			}
			if code != 103 || h.Get("Link") == "" {
				t.Errorf("hint: %d %v", code, h)
			}
			return nil
		}}
		ctx := httptrace.WithClientTrace(t.Context(), trace)
		resp, err := server.Client().Do(socketRequest(ctx, t, server.URL, "k"))
		if err != nil {
			t.Fatal(err)
		}
		first := replyOf(resp)
		if first.status != 201 || first.header["Link"] != nil || hints != 1 {
			t.Errorf("first: %v, after %d hints", first, hints)
		}
		if resp, err = server.Client().Do(socketRequest(ctx, t, server.URL, "k")); err != nil {
			t.Fatal(err)
		}
		replyOf(resp).mustEqual(t, first)
		if hints != 1 {
			t.Errorf("%d hints", hints)
		}
	})
}

// TestA9_Trailers: announced or by prefix, they are kept.
func TestA9_Trailers(t *testing.T) {
	overBoth(t, func(t *testing.T, h2 bool) {
		for _, flush := range []bool{false, true} {
			server := listen(t, setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum, X-None")
				io.WriteString(w, strings.Repeat("body ", 1000))
				if flush {
					w.(http.Flusher).Flush()
				}
				w.Header().Set("X-Sum", "42")
				w.Header().Set(http.TrailerPrefix+"X-More", "7")
			}), h2)
			first, again := mustFetch(t, server, "k"), mustFetch(t, server, "k")
			if first.trailer.Get("X-Sum") != "42" || first.trailer.Get("X-More") != "7" {
				t.Errorf("first trailer: %v", first.trailer)
			}
			again.mustEqual(t, first)
			if !again.replayed() {
				t.Errorf("again: %v", again)
			}
		}
	})
}

// TestA9_TrailersOverTheCap: fields that are longer than any header are not
// kept; that is seen before anything goes out.
func TestA9_TrailersOverTheCap(t *testing.T) {
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", strings.Repeat("x", 1<<20))
	})
	if first := post(h, "k"); first.body != "body" || len(first.trailer.Get("X-Sum")) != 1<<20 {
		t.Errorf("first: %d, trailer of %d bytes", first.status, len(first.trailer.Get("X-Sum")))
	}
	post(h, "k").mustRefuse(t, 409, "replay-unavailable")
}

// TestA10_Retention: an answer stands for its retention, counted from its
// completion and not sliding; then a tombstone refuses a late retry.
func TestA10_Retention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		s := setup{http: umavezhttp.Options{Expires: true}}
		h := s.opaque(t, counted(&runs, pay))
		first := post(h, "k")
		expires := time.Now().Add(24 * time.Hour).UTC().Format(http.TimeFormat)
		if got := first.header.Get("Idempotency-Expires"); got != expires {
			t.Errorf("Idempotency-Expires %q, want %q", got, expires)
		}
		time.Sleep(23*time.Hour + 59*time.Minute)
		post(h, "k").mustEqual(t, first) // Idempotency-Expires too: reading prolongs nothing
		time.Sleep(time.Minute)
		post(h, "k").mustRefuse(t, 409, "key-expired")
		time.Sleep(30*24*time.Hour - time.Minute)
		post(h, "k").mustRefuse(t, 409, "key-expired")
		time.Sleep(time.Hour)
		if got := post(h, "k"); got.status != 201 || got.replayed() || runs.Load() != 2 {
			t.Errorf("after the tombstone: %v; ran %d times", got, runs.Load())
		}
	})
}

func TestA10_OfTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := setup{
			http:  umavezhttp.Options{Expires: true},
			route: umavezhttp.Route{Retain: time.Hour, Tombstone: -1},
		}.opaque(t, pay)
		want := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
		if got := post(h, "k").header.Get("Idempotency-Expires"); got != want {
			t.Errorf("Idempotency-Expires %q, want %q", got, want)
		}
		time.Sleep(time.Hour)
		if got := post(h, "k"); got.status != 201 || got.replayed() {
			t.Errorf("after the retention: %v", got)
		}
	})
}

// TestDamagedAnswer: one that is not whole is refused, with a word to the
// operator, and never run again.
func TestDamagedAnswer(t *testing.T) {
	for _, state := range []string{"done", "lost"} {
		var log bytes.Buffer
		server := httptest.NewUnstartedServer(nil)
		server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&log, nil), slog.LevelError)
		damaged := damagedStore(state)
		var runs atomic.Int64
		server.Config.Handler = setup{store: damaged}.opaque(t, counted(&runs, answers(map[string]int{"done": 201, "lost": 500}[state], "x")))
		server.Start()
		mustFetch(t, server, "k")
		want := map[string]string{"done": "replay-unavailable", "lost": "outcome-unknown"}[state]
		mustFetch(t, server, "k").mustRefuse(t, 409, want)
		server.Close()
		if runs.Load() != 1 || !strings.Contains(log.String(), "the check does not match at byte") {
			t.Errorf("%s: ran %d times; log %q", state, runs.Load(), &log)
		}
	}
}

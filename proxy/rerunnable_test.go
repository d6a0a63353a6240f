package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// requestLog is what an upstream got.
type requestLog struct {
	mu   sync.Mutex
	got  []*http.Request
	body []string
}

// note reads a request and returns how many there were.
func (s *requestLog) note(r *http.Request) int {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		body = []byte(err.Error())
	}
	s.got, s.body = append(s.got, r), append(s.body, string(body))
	return len(s.got)
}

func (s *requestLog) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// TestRerunnableRunsAgain: its author says that it may.
func TestRerunnableRunsAgain(t *testing.T) {
	var book requestLog
	api := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		switch book.note(r) {
		case 1:
			cutConnection(r)
		case 2:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		default:
			paid(w, r)
		}
	})
	s := newSidecar(t, api.url, func(o *Options) { o.Routes[0].Policy = umavez.Rerunnable })
	got := s.pay("k1", "x")
	if got.status != http.StatusBadGateway || got.header.Get(wire.RetryAfter) != "1" || got.header.Get(wire.ShouldRetry) != "true" ||
		!strings.Contains(got.body, "Send the same request again later") || strings.Contains(got.body, "not run again") {
		t.Errorf("the first attempt got %v, want to be told to come again", got)
	}
	if got := s.pay("k1", "x"); got.status != http.StatusServiceUnavailable || got.header.Get(wire.IdempotencyStatus) != "" {
		t.Errorf("the second attempt got %v", got)
	}
	if got := s.pay("k1", "x"); got.status != http.StatusCreated || got.replayed() {
		t.Errorf("the third attempt got %v, want a first 201", got)
	}
	if got := s.pay("k1", "x"); !got.replayed() {
		t.Errorf("the fourth attempt got %v, want the replay", got)
	}
	if n := book.count(); n != 3 {
		t.Errorf("the upstream saw %d requests, want 3", n)
	}
}

// TestCompleterOfTheSidecar: the client never comes back, and the sidecar sends
// its request again, as it was: same key, same header, same body.
func TestCompleterOfTheSidecar(t *testing.T) {
	for _, protocol := range protocolNames {
		var book requestLog
		api := newUpstream(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			if book.note(r) == 1 {
				http.Error(w, "not now", http.StatusServiceUnavailable)
				return
			}
			paid(w, r)
		})
		s := newSidecarOver(t, newTimed(), umavez.Options{RecoverEvery: time.Millisecond}, api.url, func(o *Options) {
			o.Routes[0].Policy = umavez.Rerunnable
			o.Routes[0].HTTP = umavezhttp.Route{KeepRequest: true, PlainRequests: true, CompleteAfter: time.Nanosecond, CompleteTries: 3}
		})
		first := s.send("POST", "/pay?a=%2F&b", `{"valor":100}`, keyName, `"a,b"`, "X-Tenant", "t1", "X-Tenant", "t2", "Authorization", "secret")
		if first.status != http.StatusServiceUnavailable {
			t.Errorf("%s: the first attempt got %v", protocol, first)
		}
		ctx, stop := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- s.eng.Run(ctx) }()
		until(t, "completed", func() bool { return s.record("a,b").State == umavez.Done })
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if book.count() != 2 {
			t.Fatalf("%s: the upstream saw %d requests, want 2", protocol, book.count())
		}
		a, b := book.got[0], book.got[1]
		if a.RequestURI != b.RequestURI || b.RequestURI != "/pay?a=%2F&b" || book.body[0] != book.body[1] || a.ContentLength != b.ContentLength || a.Host != b.Host {
			t.Errorf("%s: sent again as %s %q, not %s %q", protocol, b.RequestURI, book.body[1], a.RequestURI, book.body[0])
		}
		for name := range a.Header {
			if x, y := a.Header[name], b.Header[name]; len(x) != len(y) || x[0] != y[0] {
				t.Errorf("%s: %s was %q, and is %q", protocol, name, x, y)
			}
		}
		if len(a.Header) != len(b.Header) || b.Header.Get(wire.IdempotencyKey) != `"a,b"` || len(b.Header["X-Tenant"]) != 2 || b.Header.Get("Authorization") != "" {
			t.Errorf("%s: the header is %v, and was %v", protocol, b.Header, a.Header)
		}
		if got := s.send("POST", "/pay?a=%2F&b", `{"valor":100}`, keyName, `"a,b"`); got.status != http.StatusCreated || !got.replayed() {
			t.Errorf("%s: the client that comes back after all got %v", protocol, got)
		}
	}
}

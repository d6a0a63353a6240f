package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// dropping is an upstream that acts, and drops the connection without an answer
// when the request says so.
func dropping(t *testing.T, protocol string, book *ledger) *upstream {
	return newUpstream(t, protocol, func(w http.ResponseWriter, r *http.Request) {
		drain(r.Body)
		book.act(r)
		if r.Header.Get("Drop") != "" {
			cutConnection(r)
		}
		paid(w, r)
	})
}

// TestP1_NeverSentTwice: the upstream acts on a request that came on a warm
// connection and drops it. Whatever the protocol and the body, it acts once.
func TestP1_NeverSentTwice(t *testing.T) {
	for _, protocol := range protocolNames {
		for _, body := range []string{"", `{"valor":1}`} {
			t.Run(protocol+" body "+body, func(t *testing.T) {
				book := newLedger()
				up := dropping(t, protocol, book)
				s := newSidecar(t, up.url)
				if got := s.pay("warm-up", body); got.status != http.StatusCreated {
					t.Fatalf("the warm-up got %v", got)
				}
				s.keepWarm()
				got := s.pay("k1", body, "Drop", "yes")
				if got.status != http.StatusBadGateway || got.code() != wire.CodeOutcomeUnknown {
					t.Errorf("got %v, want 502 outcome-unknown", got)
				}
				if n := up.accepted(); n != 1 {
					t.Fatalf("the upstream saw %d connections: the request was not on the warm one", n)
				}
				book.want(t, "k1", 1)
				if rec := s.record("k1"); rec.State != umavez.Lost || rec.Reason != umavez.ReasonReset {
					t.Errorf("the record is %v, reason %q", rec.State, rec.Reason)
				}
				again := s.pay("k1", body, "Drop", "yes")
				if again.status != http.StatusConflict || again.code() != wire.CodeOutcomeUnknown {
					t.Errorf("the retry got %v, want 409 outcome-unknown", again)
				}
				book.want(t, "k1", 1)
			})
		}
	}
}

// TestP1_NotEnrolled: a key on a route that is not enrolled is not ours to act
// on, and still no reason to send the request twice.
func TestP1_NotEnrolled(t *testing.T) {
	for _, protocol := range protocolNames {
		for _, body := range []string{"", `{"valor":1}`} {
			book := newLedger()
			up := dropping(t, protocol, book)
			s := newSidecar(t, up.url)
			s.send("POST", "/other", body, keyName, "warm-up")
			s.keepWarm()
			got := s.send("POST", "/other", body, keyName, "k1", "Drop", "yes")
			if got.status != http.StatusBadGateway || got.code() != "" {
				t.Errorf("%s: got %v, want a plain 502", protocol, got)
			}
			if n := up.accepted(); n != 1 {
				t.Errorf("%s: the request was not on the warm connection", protocol)
			}
			book.want(t, "k1", 1)
		}
	}
}

// TestP1_TheTrapIsThere: httputil.ReverseProxy over net/http's own transport
// does send such a request twice. Were this to pass with one effect, the tests
// above would no longer show anything.
func TestP1_TheTrapIsThere(t *testing.T) {
	book := newLedger()
	up := dropping(t, "http", book)
	to, err := url.Parse(up.url)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	naive := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(pr *httputil.ProxyRequest) { pr.SetURL(to) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	for _, fields := range []http.Header{
		{wire.IdempotencyKey: {"warm-up"}},
		{wire.IdempotencyKey: {"k1"}, "Drop": {"yes"}},
	} {
		r := httptest.NewRequest("POST", "/pay", nil)
		r.Header = fields
		naive.ServeHTTP(httptest.NewRecorder(), r)
	}
	if got := book.of("k1"); got != 2 {
		t.Errorf("the naive proxy had %d effects, want 2", got)
	}
}

package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// stoppedBeforeSend starts a sidecar whose first request stands still when it is
// about to be sent, until its lease is over, as a process does that was stopped.
// goOn lets it go on, and returns its answer.
func stoppedBeforeSend(t *testing.T, store umavez.Store, api *upstream, change ...func(*Options)) (s *sidecar, goOn func() reply) {
	t.Helper()
	// The heartbeat ends with the lease, as that of a stopped process.
	eo := umavez.Options{Lease: umavez.MinLease, MaxRun: umavez.MinLease}
	s = newSidecarOver(t, store, eo, api.url, change...)
	dialing, dialled := make(chan struct{}, 1), make(chan struct{})
	dial := s.proxy.transport.dial
	s.proxy.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		dialing <- struct{}{}
		<-dialled
		return c, err
	}
	first := make(chan reply, 1)
	go func() {
		got, err := s.do(s.request("POST", "/pay", `{"valor":100}`, keyName, "k1"))
		if err != nil {
			t.Error(err)
		}
		first <- got
	}()
	<-dialing
	until(t, "the lease is over", func() bool { return s.record("k1").State == umavez.Lost })
	return s, func() reply {
		close(dialled)
		return <-first
	}
}

// TestStoppedOwnerSendsNothing: it goes on after its lease. Nothing was sent, so
// the key is free, and the next attempt runs.
func TestStoppedOwnerSendsNothing(t *testing.T) {
	for _, protocol := range protocolNames {
		book := newLedger()
		api := newUpstream(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			book.act(r)
			paid(w, r)
		})
		store := newTimed()
		s, goOn := stoppedBeforeSend(t, store, api)
		got := goOn()
		if got.status != http.StatusBadGateway || got.code() != wire.CodeUpstreamUnreachable {
			t.Errorf("%s: got %v, want 502 upstream-unreachable", protocol, got)
		}
		book.want(t, "k1", 0)
		if !strings.Contains(s.log.String(), umavez.ErrLeaseRanOut.Error()) {
			t.Errorf("%s: the log does not say why: %s", protocol, s.log)
		}
		if rec := s.record("k1"); rec.State != umavez.Vacant {
			t.Errorf("%s: the record is %v, want vacant", protocol, rec.State)
		}
		// The connection that was made and not used is good for somebody else.
		s.keepWarm()
		if got := s.send("GET", "/", ""); got.status != http.StatusCreated || api.accepted() != 1 {
			t.Errorf("%s: got %v, over %d connections; want one", protocol, got, api.accepted())
		}
		next := newSidecarOver(t, store, umavez.Options{}, api.url)
		if got := next.pay("k1", `{"valor":100}`); got.status != http.StatusCreated || got.replayed() {
			t.Errorf("%s: the next attempt got %v, want a first 201", protocol, got)
		}
		book.want(t, "k1", 1)
	}
}

// TestStoppedOwnerAfterAVerdict: what was said of the key meanwhile stands. A
// verdict that nothing can happen was true; the attempt that ran after it answers
// for this one, too.
func TestStoppedOwnerAfterAVerdict(t *testing.T) {
	book, store := newLedger(), newTimed()
	api := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	s, goOn := stoppedBeforeSend(t, store, api)
	other := newSidecarOver(t, store, umavez.Options{}, api.url)
	settle(t, s, umavez.Settlement{Action: umavez.ActionCannotHappen, Who: "maria", Why: "the gateway refuses the key"})
	if got := other.pay("k1", `{"valor":100}`); got.status != http.StatusCreated || got.replayed() {
		t.Errorf("after the verdict the next attempt got %v, want a first 201", got)
	}
	if got := goOn(); got.status != http.StatusCreated || !got.replayed() {
		t.Errorf("the stopped owner's client got %v, want the other attempt's answer", got)
	}
	book.want(t, "k1", 1)
	if rec := s.record("k1"); rec.State != umavez.Done || rec.Contradicted || len(s.trail("k1")) != 1 {
		t.Errorf("the record is %v, contradicted: %v, trail %v", rec.State, rec.Contradicted, s.trail("k1"))
	}
}

// TestStoppedOwnerContradicts: somebody said that it had happened, and it was never
// sent. The answer stands, and the audit trail says so.
func TestStoppedOwnerContradicts(t *testing.T) {
	book, store := newLedger(), newTimed()
	api := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	s, goOn := stoppedBeforeSend(t, store, api)
	answer := umavezhttp.Answer{Status: 201, Body: []byte("told by maria")}
	b, err := answer.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	settle(t, s, umavez.Settlement{Action: umavez.ActionHappened, Answer: b, Who: "maria", Why: "the bank says so"})
	if got := goOn(); got.status != http.StatusCreated || got.body != "told by maria" || !got.replayed() {
		t.Errorf("the stopped owner's client got %v, want what was settled", got)
	}
	book.want(t, "k1", 0)
	trail := s.trail("k1")
	if len(trail) != 2 || trail[1].Action != umavez.ActionContradicted || !strings.Contains(trail[1].Why, "nothing happened") {
		t.Errorf("the audit trail says %+v", trail)
	}
}

// TestStoppedOwnerThatWasReplaced: a rerunnable operation was taken over meanwhile.
func TestStoppedOwnerThatWasReplaced(t *testing.T) {
	book, store := newLedger(), newTimed()
	api := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	rerunnable := func(o *Options) { o.Routes[0].Policy = umavez.Rerunnable }
	_, goOn := stoppedBeforeSend(t, store, api, rerunnable)
	other := newSidecarOver(t, store, umavez.Options{}, api.url, rerunnable)
	if got := other.pay("k1", `{"valor":100}`); got.status != http.StatusCreated || got.replayed() {
		t.Errorf("the successor got %v, want a first 201", got)
	}
	if got := goOn(); got.status != http.StatusCreated || !got.replayed() {
		t.Errorf("the stopped owner's client got %v, want the successor's answer", got)
	}
	book.want(t, "k1", 1)
}

// TestOwnerInTimeSends: a connection that takes long, within the lease, is no
// reason to send nothing.
func TestOwnerInTimeSends(t *testing.T) {
	book, store := newLedger(), newTimed()
	api := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	s := newSidecarOver(t, store, umavez.Options{Lease: time.Minute}, api.url)
	for i := range 3 {
		if got := s.pay(fmt.Sprint("k", i), "{}"); got.status != http.StatusCreated {
			t.Errorf("got %v", got)
		}
		book.want(t, fmt.Sprint("k", i), 1)
	}
}

// settle applies a settlement to what the sidecar's first request left.
func settle(t *testing.T, s *sidecar, how umavez.Settlement) {
	t.Helper()
	anybody, err := umavezhttp.Anonymous(nil)
	if err != nil {
		t.Fatal(err)
	}
	how.Fence = s.record("k1").Fence
	if err := s.eng.Settle(context.Background(), s.key(anybody, "k1").ID(), how); err != nil {
		t.Fatal(err)
	}
}

package umavezhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// leaseTaken runs a rerunnable operation whose store loses it to a successor in
// the middle, and returns the first caller's answer. then says what becomes of
// the successor before the first one ends.
func leaseTaken(t *testing.T, then func(successor umavez.Lease, s umavez.Store)) reply {
	t.Helper()
	store := memstore.New(memstore.Options{})
	var id umavez.ID
	seen := &faultyStore{Store: store}
	eng := umavez.Options{Observe: func(o umavez.Observation) {
		if o.Moment == umavez.MomentStarted {
			id = o.ID
		}
	}}
	h := setup{store: seen, engine: eng}.once(t).Rerunnable(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Another process finds the record lost, and takes it over.
		ctx := t.Context()
		a := umavez.FromContext(r.Context())
		if err := store.Abandon(ctx, a.Lease(), umavez.ReasonKilled, nil); err != nil {
			t.Error(err)
		}
		rec, err := store.Get(ctx, id)
		if err != nil {
			t.Error(err)
		}
		req := umavez.ClaimRequest{
			Attempt: umavez.NewAttemptID(), Fingerprint: rec.Fingerprint, Policy: rec.Policy,
			Lease: time.Minute, TakeOver: rec.Fence,
		}
		rec, acquired, err := store.Claim(ctx, id, req)
		if err != nil || !acquired {
			t.Errorf("takeover: %v, %v", acquired, err)
		}
		then(umavez.Lease{ID: id, Attempt: req.Attempt, Fence: rec.Fence}, store)
		answers(201, "the late one's answer")(w, r)
	}))
	return post(h, "k")
}

func TestR11_SuccessorRuns(t *testing.T) {
	got := leaseTaken(t, func(umavez.Lease, umavez.Store) {})
	got.mustRefuse(t, 409, "in-progress")
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestR11_SuccessorIsDone(t *testing.T) {
	answer := umavezhttp.Answer{Status: 201, Body: []byte("the successor's answer")}
	got := leaseTaken(t, func(l umavez.Lease, s umavez.Store) {
		b, err := answer.MarshalBinary()
		if err != nil {
			t.Error(err)
		}
		if err := s.Complete(t.Context(), l, b, umavez.Retention{Retain: time.Hour}); err != nil {
			t.Error(err)
		}
	})
	if got.status != 201 || got.body != "the successor's answer" || !got.replayed() {
		t.Errorf("got %v", got)
	}
}

func TestR11_SuccessorIsLost(t *testing.T) {
	leaseTaken(t, func(l umavez.Lease, s umavez.Store) {
		if err := s.Abandon(t.Context(), l, umavez.ReasonPanic, nil); err != nil {
			t.Error(err)
		}
	}).mustRefuse(t, 409, "outcome-unknown")
}

// TestLateWriter: a goroutine that outlives its handler changes nothing, neither
// in its own record nor in another request's answer. The race detector watches.
func TestLateWriter(t *testing.T) {
	const requests = 50
	stop := make(chan struct{})
	writers := make(chan struct{}, requests)
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		pay(w, r)
		go func() {
			defer func() { writers <- struct{}{} }()
			io.WriteString(w, "late")
			for {
				if _, err := w.Write(nil); err == nil {
					continue // still before the return
				}
				w.WriteHeader(500)
				w.Header().Set("X-Late", "1")
				io.WriteString(w, "late")
				http.NewResponseController(w).Flush()
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	})
	for i := range requests {
		key := fmt.Sprint("k", i)
		first := post(h, key)
		again := post(h, key)
		again.mustEqual(t, first)
		// What came before the return is part of the answer; after it, nothing.
		if body := strings.ReplaceAll(first.body, "late", ""); body != `{"id":"42","status":"aprovado"}`+"\n" || first.header["X-Late"] != nil {
			t.Fatalf("answer %d: %v", i, first)
		}
	}
	close(stop)
	for range requests {
		<-writers
	}
}

// TestEditedRequest: a handler may do to its request what it likes; the record
// that is completed, the echo and the replay are those of what was received.
func TestEditedRequest(t *testing.T) {
	var runs atomic.Int64
	h := setup{route: umavezhttp.Route{Echo: []string{"X-Fapi-Interaction-Id"}}}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Idempotency-Key", "other")
		r.Header.Del("X-Fapi-Interaction-Id")
		r.Method, r.URL.Path, r.RequestURI = http.MethodPut, "/other", "/other"
		r.Body = http.NoBody
		pay(w, r)
	}))
	first := post(h, "k", "X-Fapi-Interaction-Id", "i1")
	if first.header.Get("Idempotency-Key") != "k" || first.header.Get("X-Fapi-Interaction-Id") != "i1" {
		t.Errorf("first: %v", first)
	}
	again := post(h, "k", "X-Fapi-Interaction-Id", "i1")
	again.mustEqual(t, first)
	if got := post(h, "other"); got.replayed() || runs.Load() != 2 {
		t.Errorf("the key that the handler wrote: %v; ran %d times", got, runs.Load())
	}
}

// TestR11_KeyIsAnotherRequests: the key was settled and used for another
// request meanwhile. Its answer is not for the one that came first.
func TestR11_KeyIsAnotherRequests(t *testing.T) {
	store := memstore.New(memstore.Options{})
	h := setup{store: store}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		lease := umavez.FromContext(r.Context()).Lease()
		if err := store.Release(t.Context(), lease); err != nil { // as the settlement would
			t.Error(err)
		}
		other := umavez.ClaimRequest{
			Attempt: umavez.NewAttemptID(), Lease: time.Minute,
			Fingerprint: umavez.Fingerprint{Recipe: 1, Sum: [32]byte{1}},
		}
		if _, acquired, err := store.Claim(t.Context(), lease.ID, other); err != nil || !acquired {
			t.Errorf("the other claim: %v, %v", acquired, err)
		}
		answer := umavezhttp.Answer{Status: 201, Body: []byte("theirs")}
		theirs, err := answer.MarshalBinary()
		if err != nil {
			t.Error(err)
		}
		err = store.Complete(t.Context(), umavez.Lease{ID: lease.ID, Attempt: other.Attempt}, theirs, umavez.Retention{Retain: time.Hour})
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, "mine")
	})
	post(h, "k").mustRefuse(t, 409, "outcome-unknown")
}

// TestR11_Settled: an owner whose key was settled meanwhile, and who says
// otherwise, answers from the record like one that lost its lease. The store
// keeps that in the audit trail.
func TestR11_Settled(t *testing.T) {
	settled, err := (&umavezhttp.Answer{Status: 201, Body: []byte("settled")}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		action umavez.Action
		answer []byte
		check  func(t *testing.T, got reply)
	}{
		"it happened": {umavez.ActionHappened, settled, func(t *testing.T, got reply) {
			if got.status != 201 || got.body != "settled" || !got.replayed() {
				t.Errorf("got %v", got)
			}
		}},
		"it cannot happen": {umavez.ActionCannotHappen, nil, func(t *testing.T, got reply) {
			got.mustRefuse(t, 409, "outcome-unknown")
		}},
		"it is parked": {umavez.ActionPark, nil, func(t *testing.T, got reply) {
			if got.status != 200 || got.body != "mine" || got.replayed() {
				t.Errorf("got %v", got) // nobody has said what became of it, so its answer counts
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Options{})
			var contradicted atomic.Int64
			var id umavez.ID
			eng := umavez.Options{Observe: func(o umavez.Observation) {
				if o.Moment == umavez.MomentContradicted {
					contradicted.Add(1)
				}
			}}
			h := setup{store: store, engine: eng}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
				lease := umavez.FromContext(r.Context()).Lease()
				id = lease.ID
				if err := store.Abandon(t.Context(), lease, umavez.ReasonKilled, nil); err != nil {
					t.Error(err)
				}
				err := store.Settle(t.Context(), id, umavez.Settlement{
					ID: umavez.NewAttemptID(), Action: c.action, Answer: c.answer, Fence: lease.Fence,
					Keep: umavez.Retention{Retain: time.Hour}, Who: "test", Why: "test",
				})
				if err != nil {
					t.Error(err)
				}
				io.WriteString(w, "mine")
			})
			c.check(t, post(h, "k"))
			trail, err := store.Trail(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			wants := c.action != umavez.ActionPark
			said := trail[len(trail)-1].Action == umavez.ActionContradicted
			if said != wants || (contradicted.Load() == 1) != wants {
				t.Errorf("in the trail: %+v; observed %d times", trail, contradicted.Load())
			}
		})
	}
}

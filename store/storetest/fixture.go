package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// long is a lease or retention that does not end while the suite runs.
const long = 1000 * time.Hour

// slack is how much later than the call itself a test may look at what the call
// did: a machine may be slow, and durations go down meanwhile.
const slack = 5 * time.Minute

// patience bounds the waiting for what must come. Only a broken store makes a
// rule wait for it in full.
const patience = 30 * time.Second

// fixture is a rule's hold on the store under test.
type fixture struct {
	tester
	// real is the test that opens further stores.
	real   *testing.T
	cfg    Config
	opened Opened
	store  umavez.Store
}

// held is a key that an attempt has claimed, and how.
type held struct {
	umavez.Lease
	req umavez.ClaimRequest
}

// key returns a key that nobody has used.
func (f *fixture) key() umavez.ID {
	return umavez.Key{Scope: umavez.Scope{Namespace: "storetest"}, Name: umavez.NewAttemptID().String()}.ID()
}

// request asks for a key under a new attempt, with a long lease.
func (f *fixture) request(p umavez.Policy) umavez.ClaimRequest {
	req := umavez.ClaimRequest{
		Attempt: umavez.NewAttemptID(), Policy: p, Route: "POST /pagamentos",
		Lease: long, Request: []byte("the request"),
		Fingerprint: umavez.Fingerprint{Recipe: 7, Parts: [umavez.FingerprintParts]uint32{1, 1 << 31}},
	}
	copy(req.Fingerprint.Sum[:], "a sum of thirty-two bytes, as is")
	return req
}

// over asks for the same key under a new attempt with a long lease, to take over
// a record that was seen with this fence.
func (h held) over(fence umavez.Fence) umavez.ClaimRequest {
	req := h.req
	req.Attempt, req.TakeOver, req.Lease = umavez.NewAttemptID(), fence, long
	return req
}

// claim claims a key, and fails when it is not granted.
func (f *fixture) claim(id umavez.ID, req umavez.ClaimRequest) held {
	f.Helper()
	rec, acquired, err := f.store.Claim(f.Context(), id, req)
	if err != nil || !acquired {
		f.Fatalf("claim: acquired %v, error %v, record %v; want it granted", acquired, err, brief(rec))
	}
	return held{umavez.Lease{ID: id, Attempt: req.Attempt, Fence: rec.Fence}, req}
}

// refused claims a key, and fails when it is granted or the record has changed.
func (f *fixture) refused(id umavez.ID, req umavez.ClaimRequest) umavez.Record {
	f.Helper()
	before := f.get(id)
	rec, acquired, err := f.store.Claim(f.Context(), id, req)
	if err != nil || acquired {
		f.Fatalf("claim: acquired %v, error %v, record %v; want it refused", acquired, err, brief(rec))
	}
	f.same("the record that a refused claim returned", rec, before)
	f.same("the record after a refused claim", f.get(id), before)
	return rec
}

// get reads a record.
func (f *fixture) get(id umavez.ID) umavez.Record {
	f.Helper()
	rec, err := f.store.Get(f.Context(), id)
	if err != nil {
		f.Fatalf("get: %v", err)
	}
	return rec
}

// running claims a new key.
func (f *fixture) running(p umavez.Policy) held {
	f.Helper()
	return f.claim(f.key(), f.request(p))
}

// lost claims a new key and lets its lease run out.
func (f *fixture) lost(p umavez.Policy) held {
	f.Helper()
	req := f.request(p)
	req.Lease = f.short()
	h := f.claim(f.key(), req)
	f.pass(req.Lease)
	f.is(h.ID, umavez.Lost)
	return h
}

// abandoned claims a new key and abandons it.
func (f *fixture) abandoned(p umavez.Policy) held {
	f.Helper()
	h := f.running(p)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonPanic, nil), nil)
	return h
}

// done claims a new key and completes it with an answer.
func (f *fixture) done(answer string, keep umavez.Retention) held {
	f.Helper()
	h := f.running(umavez.Opaque)
	f.answers("complete", f.store.Complete(f.Context(), h.Lease, []byte(answer), keep), nil)
	return h
}

// kept is a retention that does not end while the suite runs.
func kept() umavez.Retention { return umavez.Retention{Retain: long, Tombstone: long} }

// short is a duration that [fixture.pass] can let pass: a minute where the clock
// can be moved, some milliseconds where it cannot.
func (f *fixture) short() time.Duration {
	if f.opened.Advance != nil {
		return time.Minute
	}
	return 4 * time.Millisecond
}

// pass lets at least d pass by the store's clock. A clock that cannot be moved
// is read through the store itself: a key that is claimed now, for d, is lost
// when d is over.
func (f *fixture) pass(d time.Duration) {
	f.Helper()
	if f.opened.Advance != nil {
		f.opened.Advance(d)
		return
	}
	req := f.request(umavez.Rerunnable)
	req.Lease = d
	h := f.claim(f.key(), req)
	f.until("the end of a lease", func() bool { return f.get(h.ID).State == umavez.Lost })
}

// until waits for a condition, looking every millisecond.
func (f *fixture) until(what string, holds func() bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-ctx.Done():
			f.Fatalf("%s has not come within %v", what, patience)
		}
	}
}

// answers checks what a call answered: nil, or one of the package's errors. An
// answer is never dressed up as a failure of the store.
func (f *fixture) answers(call string, got, want error) {
	f.Helper()
	if !answered(got, want) {
		f.Fatalf("%s answered %v, want %v", call, got, want)
	}
	if failure, ok := errors.AsType[*umavez.StoreError](got); ok {
		f.Fatalf("%s answered %v inside a StoreError: %v", call, want, failure)
	}
}

// is checks a key's state.
func (f *fixture) is(id umavez.ID, want umavez.State) umavez.Record {
	f.Helper()
	rec := f.get(id)
	if rec.State != want {
		f.Fatalf("the key is %v, want %v; record %v", rec.State, want, brief(rec))
	}
	return rec
}

// same checks that two records say the same, their durations aside.
func (f *fixture) same(what string, got, want umavez.Record) {
	f.Helper()
	if diff := differ(got, want); diff != "" {
		f.Fatalf("%s differs: %s", what, diff)
	}
}

// leftAbout checks a duration that counts down from want: it may have gone on
// by as much as a slow machine takes to look.
func (f *fixture) leftAbout(what string, got, want time.Duration) {
	f.Helper()
	if got > want || got < want-slack {
		f.Fatalf("%s is %v, want %v or a little less", what, got, want)
	}
}

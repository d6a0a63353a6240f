package storetest

import (
	"errors"
	"sync/atomic"

	"github.com/umavez/umavez"
)

// unsettledRules say how many running and lost records a scope may have.
var unsettledRules = []rule{
	{
		name: "unsettled/vacant keys are bounded",
		why: "running and lost records never vanish by themselves, so one caller who loses every attempt would fill the store; " +
			"beyond the bound a claim is ErrTooManyUnsettled and keeps nothing, and other callers' keys are theirs",
		check: unsettledBounded,
	},
	{
		name:  "unsettled/what has ended makes room",
		why:   "a caller whose operations end is not held back by what they were; what is lost has not ended",
		check: unsettledRoom,
	},
	{
		name:  "unsettled/bars nothing but new keys",
		why:   "a caller at its bound must be able to get to its end: repeats, replays and takeovers add no record, and are answered",
		check: unsettledOthers,
	},
	{
		name: "unsettled/bounded for all clients",
		why: "each client counts what it has claimed itself, so that together they exceed the bound by no more than the others have claimed " +
			"within a second; after that, all of them refuse",
		check: unsettledRace,
	},
}

// bounded asks for a key of a scope that may have so many unsettled records.
func (f *fixture) bounded(scope umavez.ScopeID, most int) umavez.ClaimRequest {
	req := f.request(umavez.Rerunnable)
	req.Scope, req.MaxUnsettled = scope, most
	return req
}

func newScope() umavez.ScopeID { return umavez.ScopeID(umavez.NewAttemptID()) }

// tooMany claims a vacant key, and fails when that is not ErrTooManyUnsettled or
// leaves something.
func (f *fixture) tooMany(req umavez.ClaimRequest) {
	f.Helper()
	id := f.key()
	rec, acquired, err := f.store.Claim(f.Context(), id, req)
	f.answers("claim beyond the bound", err, umavez.ErrTooManyUnsettled)
	if acquired || rec.State != umavez.Vacant {
		f.Fatalf("claim beyond the bound: acquired %v, record %v", acquired, brief(rec))
	}
	f.is(id, umavez.Vacant)
	req.MaxUnsettled = 0
	if rec := f.get(f.claim(id, req).ID); rec.Tries != 1 { // it bars nobody
		f.Fatalf("the next claim of a refused key is try %d", rec.Tries)
	}
	f.answers("release", f.store.Release(f.Context(), umavez.Lease{ID: id, Attempt: req.Attempt}), nil)
}

func unsettledBounded(f *fixture) {
	const most = 3
	for _, scope := range []umavez.ScopeID{newScope(), newScope()} {
		for i := range most {
			h := f.claim(f.key(), f.bounded(scope, most))
			if i == 1 {
				f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonReset, nil), nil)
			}
		}
		f.tooMany(f.bounded(scope, most))
		f.tooMany(f.bounded(scope, 1))
		f.claim(f.key(), f.bounded(scope, most+1)) // each request names its own bound
		f.tooMany(f.bounded(scope, most+1))
		f.claim(f.key(), f.bounded(scope, 0)) // no bound; it counts all the same
		f.tooMany(f.bounded(scope, most+2))
	}
}

func unsettledRoom(f *fixture) {
	scope := newScope()
	ends := map[string]func(h held){
		"complete": func(h held) {
			f.answers("complete", f.store.Complete(f.Context(), h.Lease, nil, kept()), nil)
		},
		"late complete": func(h held) {
			f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonReset, nil), nil)
			f.tooMany(f.bounded(scope, 1))
			f.answers("complete", f.store.Complete(f.Context(), h.Lease, nil, kept()), nil)
		},
		"release": func(h held) { f.answers("release", f.store.Release(f.Context(), h.Lease), nil) },
	}
	if _, ok := f.store.(umavez.Settler); ok {
		for _, action := range []umavez.Action{umavez.ActionHappened, umavez.ActionCannotHappen} {
			ends["settle as "+string(action)] = func(h held) {
				f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonReset, nil), nil)
				f.settled(h, settlement(umavez.ActionPark, h.Fence))
				f.tooMany(f.bounded(scope, 1))
				f.settled(h, settlement(action, h.Fence))
			}
		}
	}
	for how, end := range ends {
		h := f.claim(f.key(), f.bounded(scope, 1))
		f.tooMany(f.bounded(scope, 1))
		end(h)
		if _, acquired, err := f.store.Claim(f.Context(), f.key(), f.bounded(newScope(), 1)); err != nil || !acquired {
			f.Fatalf("claim of another scope: acquired %v, error %v", acquired, err)
		}
		last := f.claim(f.key(), f.bounded(scope, 1))
		f.Logf("after %s there was room", how)
		f.answers("release", f.store.Release(f.Context(), last.Lease), nil)
	}
}

func unsettledOthers(f *fixture) {
	scope := newScope()
	done := f.claim(f.key(), f.bounded(scope, 1))
	f.answers("complete", f.store.Complete(f.Context(), done.Lease, []byte("a"), kept()), nil)
	released := f.claim(f.key(), f.bounded(scope, 1))
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	h := f.claim(f.key(), f.bounded(scope, 1))

	f.claim(h.ID, h.req)                        // a repeat
	f.refused(h.ID, h.over(h.Fence))            // somebody else's, of a running key
	f.refused(done.ID, done.over(0))            // a replay
	f.refused(released.ID, released.req)        // barred, bound or not
	resume := f.bounded(scope, 1)               // of a key that is vacant by now
	resume.TakeOver, resume.Resume = 1000, true //
	f.refused(f.key(), resume)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonReset, nil), nil)
	f.claim(h.ID, h.over(h.Fence)) // a takeover
	f.tooMany(f.bounded(scope, 1))
}

func unsettledRace(f *fixture) {
	const most, each = 10, 25
	scope, clients := newScope(), f.clients()
	granted := make([]atomic.Int64, len(clients))
	claim := func(n int) bool {
		_, acquired, err := clients[n].Claim(f.Context(), f.key(), f.bounded(scope, most))
		if acquired != (err == nil) || err != nil && !errors.Is(err, umavez.ErrTooManyUnsettled) {
			f.Errorf("claim: acquired %v, error %v", acquired, err)
		}
		if acquired {
			granted[n].Add(1)
		}
		return acquired
	}
	var calls []func()
	for n := range clients {
		for range each {
			calls = append(calls, func() { claim(n) })
		}
	}
	together(calls...)
	for n := range clients {
		if got := granted[n].Load(); got > most {
			f.Fatalf("client %d was granted %d claims by a bound of %d", n, got, most)
		}
		f.until("the bound, for each client", func() bool { return !claim(n) })
	}
	for n := range clients {
		if claim(n) {
			f.Fatalf("client %d was granted a claim beyond the bound, when the others' were known", n)
		}
	}
}

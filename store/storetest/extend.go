package storetest

import (
	"time"

	"github.com/umavez/umavez"
)

// extendRules say what a heartbeat does.
var extendRules = []rule{
	{
		name:  "extend/moves the end away",
		why:   "a heartbeat keeps the lease alive: it ends no sooner than the given time from now",
		check: extendMoves,
	},
	{
		name:  "extend/never shortens",
		why:   "a heartbeat that was delayed must not take away what a later one has won",
		check: extendNeverShortens,
	},
	{
		name:  "extend/revives what ran out",
		why:   "a lease that ran out and was not taken over is its attempt's still; after a pause of the process it goes on",
		check: extendRevives,
	},
	{
		name:  "extend/not of this attempt",
		why:   "a heartbeat of an attempt that lost the key must learn so, and must not keep its successor's lease alive when that one dies",
		check: extendForeign,
	},
}

func extendMoves(f *fixture) {
	id, req := f.key(), f.request(umavez.Opaque)
	req.Lease = time.Hour
	h := f.claim(id, req)
	f.answers("extend", f.store.Extend(f.Context(), h.Lease, long), nil)
	f.leftAbout("the lease", f.get(id).LeaseLeft, long)
}

func extendNeverShortens(f *fixture) {
	h := f.running(umavez.Opaque)
	for _, d := range []time.Duration{time.Hour, time.Microsecond, 0} {
		f.answers("extend", f.store.Extend(f.Context(), h.Lease, d), nil)
		f.leftAbout("the lease", f.get(h.ID).LeaseLeft, long)
	}
}

func extendRevives(f *fixture) {
	h := f.lost(umavez.Opaque)
	f.answers("extend", f.store.Extend(f.Context(), h.Lease, long), nil)
	f.leftAbout("the lease", f.is(h.ID, umavez.Running).LeaseLeft, long)
}

func extendForeign(f *fixture) {
	released := f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	vacant := umavez.Lease{ID: f.key(), Attempt: umavez.NewAttemptID()}
	lost := f.lost(umavez.Rerunnable)
	f.claim(lost.ID, lost.over(lost.Fence))
	stranger := f.lost(umavez.Opaque).Lease
	stranger.Attempt = umavez.NewAttemptID()

	for _, l := range []umavez.Lease{released.Lease, vacant, f.done("a", kept()).Lease, lost.Lease, stranger} {
		before := f.get(l.ID)
		f.answers("extend", f.store.Extend(f.Context(), l, 2*long), umavez.ErrLeaseLost)
		after := f.get(l.ID)
		f.same("the record", after, before)
		if after.LeaseLeft > before.LeaseLeft {
			f.Fatalf("the lease of another attempt went from %v to %v", before.LeaseLeft, after.LeaseLeft)
		}
	}
}

package storetest

import (
	"time"

	"github.com/umavez/umavez"
)

// holdRules say who may look into a lost record, and what that changes: nothing.
var holdRules = []rule{
	{
		name:  "hold/one looker at a time",
		why:   "two who look into one record ask the foreign system twice, and may come to two verdicts; while one holds it the others are told ErrHeld, and see for how long",
		check: holdAlone,
	},
	{
		name:  "hold/ends by itself",
		why:   "a looker that dies must not keep the record from everybody else: its hold is over when its time is",
		check: holdEnds,
	},
	{
		name:  "hold/the holder holds it anew",
		why:   "a looker that needs longer holds on, and one that is done lets go, by holding for longer or shorter; a hold whose reply was lost is repeated",
		check: holdAnew,
	},
	{
		name:  "hold/lost records alone",
		why:   "what runs, is done or is vacant has nothing to look into, and a record with another fence is not the one that was seen lost: ErrMoved",
		check: holdLostAlone,
	},
	{
		name:  "hold/touches neither attempt nor lease",
		why:   "a late owner completes, goes on and is counted as if nobody had looked: whoever looks knows nothing yet",
		check: holdTouchesNothing,
	},
	{
		name:  "hold/goes with the lost attempt",
		why:   "a hold is of the attempt that was seen lost; when another one has the record, and is lost in its turn, the old looker's hold keeps nobody from it",
		check: holdGoesWithAttempt,
	},
}

// settler returns the store as a Settler, or skips the rule.
func (f *fixture) settler() umavez.Settler {
	f.Helper()
	return f.settlerOf(f.store)
}

func (f *fixture) settlerOf(s umavez.Store) umavez.Settler {
	f.Helper()
	settler, ok := s.(umavez.Settler)
	if !ok {
		f.Skipf("the store's records cannot be settled (it is no umavez.Settler)")
	}
	return settler
}

// holds holds a key's record, and checks the answer.
func (f *fixture) holds(h held, by umavez.AttemptID, d time.Duration, want error) {
	f.Helper()
	f.answers("hold", f.settler().Hold(f.Context(), h.ID, h.Fence, by, d), want)
}

func holdAlone(f *fixture) {
	f.settler()
	for _, h := range []held{f.lost(umavez.Opaque), f.abandoned(umavez.Stepped)} {
		if left := f.get(h.ID).HeldLeft; left != 0 {
			f.Fatalf("the record is held for %v, want nobody to hold it", left)
		}
		first, second := umavez.NewAttemptID(), umavez.NewAttemptID()
		f.holds(h, first, long, nil)
		f.leftAbout("the hold", f.get(h.ID).HeldLeft, long)
		f.holds(h, second, 2*long, umavez.ErrHeld)
		f.leftAbout("the hold that another one could not take", f.get(h.ID).HeldLeft, long)
		f.holds(h, h.Attempt, long, umavez.ErrHeld) // the lost attempt is a stranger like all others
	}
}

func holdEnds(f *fixture) {
	f.settler()
	h := f.lost(umavez.Opaque)
	f.holds(h, umavez.NewAttemptID(), f.short(), nil)
	f.pass(f.short())
	if left := f.get(h.ID).HeldLeft; left != 0 {
		f.Fatalf("%v of a hold is left that is over", left)
	}
	f.holds(h, umavez.NewAttemptID(), long, nil)
	f.leftAbout("the next one's hold", f.get(h.ID).HeldLeft, long)
}

func holdAnew(f *fixture) {
	f.settler()
	h, holder := f.abandoned(umavez.Opaque), umavez.NewAttemptID()
	for _, d := range []time.Duration{long, 2 * long, 2 * long, time.Hour} {
		f.holds(h, holder, d, nil)
		f.leftAbout("the hold", f.get(h.ID).HeldLeft, d)
	}
	f.holds(h, holder, 0, nil) // it lets go
	f.holds(h, umavez.NewAttemptID(), long, nil)
	f.holds(h, holder, long, umavez.ErrHeld)
}

func holdLostAlone(f *fixture) {
	f.settler()
	released, moved := f.running(umavez.Opaque), f.lost(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	moved.Fence++
	past := moved
	past.Fence -= 2
	never := held{Lease: umavez.Lease{ID: f.key()}}
	expired := f.done("over", umavez.Retention{Retain: f.short(), Tombstone: long})
	parked := f.lost(umavez.Opaque)
	f.settled(parked, settlement(umavez.ActionPark, parked.Fence))
	f.pass(f.short())
	for _, h := range []held{f.running(umavez.Rerunnable), f.done("a", kept()), expired, released, moved, past, never, parked} {
		before := f.get(h.ID)
		f.holds(h, umavez.NewAttemptID(), long, umavez.ErrMoved)
		f.same("the record that was not held", f.get(h.ID), before)
	}
}

func holdTouchesNothing(f *fixture) {
	f.settler()
	ctx := f.Context()
	for _, h := range []held{f.lost(umavez.Stepped), f.abandoned(umavez.Opaque)} {
		before := f.get(h.ID)
		f.holds(h, umavez.NewAttemptID(), long, nil)
		want := before
		want.HeldLeft = long
		f.same("the held record", f.get(h.ID), want)
		f.answers("late checkpoint", f.store.Checkpoint(ctx, h.Lease, "cobrar", []byte("c-1")), nil)
		f.answers("late complete", f.store.Complete(ctx, h.Lease, []byte("late"), kept()), nil)
		if rec := f.is(h.ID, umavez.Done); string(rec.Answer) != "late" || rec.HeldLeft != 0 {
			f.Fatalf("the record is %v and held for %v, want it done with the late answer", brief(rec), rec.HeldLeft)
		}
	}
	alive := f.lost(umavez.Opaque)
	f.holds(alive, umavez.NewAttemptID(), long, nil)
	f.answers("late extend", f.store.Extend(ctx, alive.Lease, long), nil)
	if rec := f.is(alive.ID, umavez.Running); rec.HeldLeft != 0 {
		f.Fatalf("a running record is held for %v", rec.HeldLeft)
	}
}

func holdGoesWithAttempt(f *fixture) {
	f.settler()
	h, old := f.abandoned(umavez.Rerunnable), umavez.NewAttemptID()
	f.holds(h, old, long, nil)
	second := f.claim(h.ID, h.over(h.Fence))
	f.holds(h, old, long, umavez.ErrMoved)
	f.answers("abandon", f.store.Abandon(f.Context(), second.Lease, umavez.ReasonError, nil), nil)
	f.holds(h, old, long, umavez.ErrMoved)
	f.holds(second, umavez.NewAttemptID(), long, nil)
}

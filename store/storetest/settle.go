package storetest

import "github.com/umavez/umavez"

// settleRules say how those outside an operation end its record.
var settleRules = []rule{
	{
		name:  "settle/happened makes the record done",
		why:   "the answer that was settled is what every attempt gets from now on, for its retention, and the record says that it was settled",
		check: settleHappened,
	},
	{
		name:  "settle/cannot happen makes the key vacant",
		why:   "what did not happen, and cannot any more, is as if it had never been claimed; but the attempt that was settled stays barred: its claim may still be on its way",
		check: settleCannotHappen,
	},
	{
		name:  "settle/cannot happen keeps what did happen",
		why:   "a kept step is a foreign call that was made; the next attempt resumes after it and must not make it again",
		check: settleKeepsSteps,
	},
	{
		name: "settle/proof keeps a stepped record",
		why: "the proof may be that the foreign system honours the derived key: then the time since the first claim, in which it does, must go on, " +
			"and a record that forgot it would send the step when the key is forgotten; after a quiet time it begins anew",
		check: settleKeepsTime,
	},
	{
		name: "settle/not before it is quiet",
		why: "what was on the wire when the attempt was lost may still arrive; until the quiet time since the loss is over, " +
			"a lookup that found nothing proves nothing",
		check: settleNotQuiet,
	},
	{
		name:  "settle/parked is taken over by nobody",
		why:   "somebody has set the record aside: it is unknown until it is settled, whatever its policy; its own late owner still counts",
		check: settlePark,
	},
	{
		name:  "settle/forgotten leaves a tombstone",
		why:   "the answer goes, and a late retry is refused, not run, for as long as was said and for no shorter than before",
		check: settleForget,
	},
	{
		name:  "settle/only what was looked at",
		why:   "a verdict is about the attempt that was looked at; a record that has moved since is another attempt's, or has its answer already: ErrMoved",
		check: settleMoved,
	},
	{
		name:  "settle/repeat is a no-op",
		why:   "a settlement whose reply was lost is repeated until the store says yes, and counts once; somebody else's equal one has another ID, and is refused",
		check: settleRepeat,
	},
}

// settled applies a settlement, and fails when it is refused.
func (f *fixture) settled(h held, s umavez.Settlement) umavez.Settlement {
	f.Helper()
	f.settles(h, s, nil)
	return s
}

// settles applies a settlement and checks the answer. One that is refused must
// change nothing, and leave no entry.
func (f *fixture) settles(h held, s umavez.Settlement, want error) {
	f.Helper()
	before, trail := f.get(h.ID), f.trail(h.ID)
	f.answers("settle as "+string(s.Action), f.settler().Settle(f.Context(), h.ID, s), want)
	if want != nil {
		f.same("the record that a refused settlement has left", f.get(h.ID), before)
		f.sameTrail(h.ID, trail)
	}
}

func settleHappened(f *fixture) {
	f.settler()
	for _, p := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable, umavez.Stepped} {
		h := f.running(p)
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
		f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonStatus, []byte("503")), nil)
		f.settled(h, settlement(umavez.ActionHappened, h.Fence))
		rec := f.get(h.ID)
		f.same("the record", rec, umavez.Record{
			State: umavez.Done, Policy: p, Route: h.req.Route, Fingerprint: h.req.Fingerprint,
			Attempt: h.Attempt, Fence: h.Fence, Tries: 1, Settled: true, Answer: []byte("settled"),
		})
		f.leftAbout("the retention", rec.RetainLeft, long)
		if rec := f.refused(h.ID, h.over(h.Fence)); string(rec.Answer) != "settled" {
			f.Fatalf("the next claim is answered with %v", brief(rec))
		}
	}
	soon := settlement(umavez.ActionHappened, 0)
	soon.Keep = umavez.Retention{Retain: f.short(), Tombstone: long}
	h := f.lost(umavez.Opaque)
	soon.Fence = h.Fence
	f.settled(h, soon)
	f.pass(f.short())
	f.is(h.ID, umavez.Expired)
}

func settleCannotHappen(f *fixture) {
	f.settler()
	for _, h := range []held{f.lost(umavez.Opaque), f.abandoned(umavez.Rerunnable)} {
		f.settled(h, settlement(umavez.ActionCannotHappen, h.Fence))
		f.is(h.ID, umavez.Vacant)
		f.refused(h.ID, h.req)
		next := f.request(umavez.Rerunnable)
		next.Route, next.Request = "another route", nil
		again := f.claim(h.ID, next)
		f.same("the record of the next claim", f.get(h.ID), umavez.Record{
			State: umavez.Running, Policy: umavez.Rerunnable, Route: next.Route, Fingerprint: next.Fingerprint,
			Attempt: next.Attempt, Fence: again.Fence, Tries: 1,
		})
		if again.Fence <= h.Fence {
			f.Fatalf("the fence went from %d to %d", h.Fence, again.Fence)
		}
	}
}

func settleKeepsSteps(f *fixture) {
	f.settler()
	h := f.running(umavez.Stepped)
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonStepInDoubt, []byte("502")), nil)
	f.refused(h.ID, h.over(h.Fence))
	f.settled(h, settlement(umavez.ActionCannotHappen, h.Fence))

	rec := f.is(h.ID, umavez.Lost)
	if len(rec.Steps) != 1 || string(rec.Steps[0].Result) != "c-1" || rec.Reason != umavez.ReasonSettled || rec.Last != nil || rec.Attempt == h.Attempt {
		f.Fatalf("the settled record is %v, want it lost with its step, for the reason %q, and of nobody's attempt", brief(rec), umavez.ReasonSettled)
	}
	f.refused(h.ID, h.req) // of the attempt that was settled
	next := f.claim(h.ID, h.over(rec.Fence))
	if rec := f.get(h.ID); len(rec.Steps) != 1 || rec.Tries != 2 || next.Fence <= h.Fence {
		f.Fatalf("the next attempt got %v, want the second try, with the kept step", brief(rec))
	}
	f.answers("complete by the next attempt", f.store.Complete(f.Context(), next.Lease, []byte("a"), kept()), nil)
}

func settleKeepsTime(f *fixture) {
	f.settler()
	d := f.short()
	h := f.lost(umavez.Stepped) // for d, and then lost
	f.settled(h, settlement(umavez.ActionCannotHappen, h.Fence))
	rec := f.is(h.ID, umavez.Lost)
	if rec.Reason != umavez.ReasonSettled || rec.Fence <= h.Fence {
		f.Fatalf("the record is %v, want it lost for the reason %q, with a higher fence", brief(rec), umavez.ReasonSettled)
	}
	f.atLeast("the age of a record that was settled by proof", rec.Age, d)
	f.claim(h.ID, h.over(rec.Fence))

	quiet := f.lost(umavez.Stepped)
	f.pass(d)
	s := settlement(umavez.ActionCannotHappen, quiet.Fence)
	s.Quiet = d
	f.settled(quiet, s)
	f.is(quiet.ID, umavez.Vacant)

	anew := f.running(umavez.Stepped)
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), anew.Lease, "cobrar", []byte("c-1")), nil)
	f.answers("abandon", f.store.Abandon(f.Context(), anew.Lease, umavez.ReasonReset, nil), nil)
	first := f.get(anew.ID).Age
	f.pass(2 * d)
	s = settlement(umavez.ActionCannotHappen, anew.Fence)
	s.Quiet = d
	f.settled(anew, s)
	if age := f.is(anew.ID, umavez.Lost).Age; f.opened.Advance != nil && age > first+d {
		f.Fatalf("a record that was settled after a quiet time is %v old, want its time to begin anew", age)
	}
}

func settleNotQuiet(f *fixture) {
	f.settler()
	d := f.short()
	// Lost long after its claim: the quiet time counts from the loss.
	old := f.running(umavez.Opaque)
	f.pass(2 * d)
	f.answers("abandon", f.store.Abandon(f.Context(), old.Lease, umavez.ReasonReset, nil), nil)
	early := settlement(umavez.ActionCannotHappen, old.Fence)
	early.Quiet = long
	f.settles(old, early, umavez.ErrNotQuiet)
	for _, other := range []umavez.Action{umavez.ActionPark, umavez.ActionHappened} { // it is of one verdict alone
		s := settlement(other, old.Fence)
		s.Quiet = long
		f.settled(old, s)
	}

	h := f.lost(umavez.Opaque)
	early.Fence = h.Fence
	f.settles(h, early, umavez.ErrNotQuiet)
	early.Quiet = 2 * d
	f.pass(2 * d)
	f.settled(h, early)
	f.is(h.ID, umavez.Vacant)

	if f.opened.Advance == nil {
		return // the minutes that a loss must be younger than do not show in milliseconds
	}
	late := f.running(umavez.Opaque)
	f.pass(long)
	f.pass(d - 1000) // a microsecond before
	s := settlement(umavez.ActionCannotHappen, late.Fence)
	s.Quiet = d
	f.settles(late, s, umavez.ErrNotQuiet)
}

func settlePark(f *fixture) {
	f.settler()
	for _, p := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable, umavez.Stepped} {
		h := f.lost(p)
		before := f.get(h.ID)
		f.holds(h, umavez.NewAttemptID(), long, nil)
		f.settled(h, settlement(umavez.ActionPark, h.Fence))
		want := before
		want.Reason = umavez.ReasonParked
		rec := f.get(h.ID)
		f.same("the parked record", rec, want)
		if !rec.Unknown() {
			f.Fatalf("the parked record is not unknown: %v", brief(rec))
		}
		f.refused(h.ID, h.over(h.Fence))
		f.refused(h.ID, h.req) // a repeat of the lost attempt's claim

		settle := settlement(umavez.ActionHappened, h.Fence)
		f.settled(h, settle)
		f.is(h.ID, umavez.Done)
	}
	late := f.lost(umavez.Opaque)
	f.settled(late, settlement(umavez.ActionPark, late.Fence))
	f.answers("late complete", f.store.Complete(f.Context(), late.Lease, []byte("late"), kept()), nil)
	if rec := f.is(late.ID, umavez.Done); rec.Settled || rec.Contradicted {
		f.Fatalf("the record says settled %v, contradicted %v; its own owner has completed it", rec.Settled, rec.Contradicted)
	}
}

func settleForget(f *fixture) {
	f.settler()
	stays := f.done("secret", umavez.Retention{Retain: long, Tombstone: long})
	s := settlement(umavez.ActionForget, stays.Fence)
	s.Keep.Tombstone = f.short()
	f.settled(stays, s)
	rec := f.is(stays.ID, umavez.Expired)
	if rec.Answer != nil || rec.Attempt != stays.Attempt || rec.Fence != stays.Fence {
		f.Fatalf("the forgotten record is %v, want a tombstone that names its attempt and fence", brief(rec))
	}
	f.pass(2 * f.short())
	f.refused(stays.ID, stays.over(0)) // the tombstone that it would have had is longer
	f.answers("repeated complete", f.store.Complete(f.Context(), stays.Lease, []byte("secret"), kept()), nil)
	f.is(stays.ID, umavez.Expired)

	if f.opened.Advance == nil {
		return // a tombstone of milliseconds may be over before anybody has looked
	}
	longer := f.done("secret", umavez.Retention{Retain: f.short()})
	f.settled(longer, settlement(umavez.ActionForget, longer.Fence))
	f.pass(2 * f.short())
	f.is(longer.ID, umavez.Expired)

	over := f.done("secret", umavez.Retention{Retain: f.short(), Tombstone: 10 * f.short()})
	f.pass(f.short())
	f.settled(over, settlement(umavez.ActionForget, over.Fence))
	f.pass(10 * f.short())
	f.is(over.ID, umavez.Expired)
}

// lostActions are those that settle a lost record.
var lostActions = []umavez.Action{umavez.ActionHappened, umavez.ActionCannotHappen, umavez.ActionPark}

func settleMoved(f *fixture) {
	f.settler()
	released, taken := f.running(umavez.Opaque), f.abandoned(umavez.Rerunnable)
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	second := f.claim(taken.ID, taken.over(taken.Fence))
	never := held{Lease: umavez.Lease{ID: f.key()}}
	for _, h := range []held{f.running(umavez.Opaque), f.done("a", kept()), released, taken, second, never} {
		for _, action := range lostActions {
			f.settles(h, settlement(action, h.Fence), umavez.ErrMoved)
		}
	}
	f.answers("abandon", f.store.Abandon(f.Context(), second.Lease, umavez.ReasonError, nil), nil)
	for _, action := range lostActions { // lost again, and not the loss that was looked at
		f.settles(taken, settlement(action, taken.Fence), umavez.ErrMoved)
		f.settles(second, settlement(action, second.Fence+1), umavez.ErrMoved)
		f.settles(second, settlement(action, 0), umavez.ErrMoved)
	}
	done := f.done("a", kept())
	for _, h := range []held{f.running(umavez.Opaque), f.lost(umavez.Opaque), second, released, never} {
		f.settles(h, settlement(umavez.ActionForget, h.Fence), umavez.ErrMoved)
	}
	f.settles(done, settlement(umavez.ActionForget, done.Fence-1), umavez.ErrMoved)
}

func settleRepeat(f *fixture) {
	f.settler()
	withStep := func() held {
		h := f.running(umavez.Stepped)
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
		f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonReset, nil), nil)
		return h
	}
	for _, c := range []struct {
		h      held
		action umavez.Action
	}{
		{f.lost(umavez.Opaque), umavez.ActionHappened},
		{f.lost(umavez.Opaque), umavez.ActionCannotHappen},
		{withStep(), umavez.ActionCannotHappen},
		{f.lost(umavez.Opaque), umavez.ActionPark},
		{f.done("a", kept()), umavez.ActionForget},
	} {
		s := f.settled(c.h, settlement(c.action, c.h.Fence))
		before, trail := f.get(c.h.ID), f.trail(c.h.ID)
		f.pass(f.short())
		for range 2 {
			f.settled(c.h, s)
		}
		rec := f.get(c.h.ID)
		f.same("the record after a repeated settlement", rec, before)
		if rec.RetainLeft > max(before.RetainLeft-f.short(), 0) {
			f.Fatalf("the retention went from %v to %v: a repeated settlement must not slide", before.RetainLeft, rec.RetainLeft)
		}
		f.sameTrail(c.h.ID, trail)
		if c.action != umavez.ActionForget { // there may be something left to forget for longer
			s.ID = umavez.NewAttemptID()
			f.settles(c.h, s, umavez.ErrMoved)
		}
	}
}

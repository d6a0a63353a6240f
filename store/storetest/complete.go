package storetest

import (
	"time"

	"github.com/umavez/umavez"
)

// completeRules say when an answer is kept, and that it is kept for good.
var completeRules = []rule{
	{
		name:  "complete/makes the record done",
		why:   "the answer is what every other attempt gets; request, steps and last word have done their work",
		check: completeDone,
	},
	{
		name:  "complete/late counts",
		why:   "a lease that ran out, or was abandoned, revokes nothing: an owner that was not replaced completes, and the key is not unknown any more",
		check: completeLate,
	},
	{
		name:  "complete/repeat is answered yes",
		why:   "a completion whose reply was lost is repeated until the store says yes; a no would make a saved answer look lost",
		check: completeRepeat,
	},
	{
		name:  "complete/first answer stands",
		why:   "a done answer never changes: somebody may have been given it already",
		check: completeFirstStands,
	},
	{
		name:  "complete/not of this attempt",
		why:   "a completion counts only while the record carries its attempt; else the answer of one run is saved for another",
		check: completeForeign,
	},
	{
		name:  "complete/done bars every other call",
		why:   "nothing that is still on its way when a record is done may change it",
		check: completeBars,
	},
	{
		name:  "complete/repeat does not slide",
		why:   "retention counts from the completion: repeats and replays must not keep an answer alive",
		check: completeDoesNotSlide,
	},
	{
		name:  "complete/repeat after retention",
		why:   "a repeat that comes when the answer is gone is still the repeat of what was saved",
		check: completeRepeatAfterRetention,
	},
}

func completeDone(f *fixture) {
	h := f.running(umavez.Stepped)
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
	f.answers("last word", f.store.Checkpoint(f.Context(), h.Lease, umavez.LastWord, []byte("half")), nil)
	f.answers("complete", f.store.Complete(f.Context(), h.Lease, []byte("aprovado"), kept()), nil)
	rec := f.get(h.ID)
	f.same("the record", rec, umavez.Record{
		State: umavez.Done, Policy: umavez.Stepped, Route: h.req.Route, Fingerprint: h.req.Fingerprint,
		Attempt: h.Attempt, Fence: h.Fence, Tries: 1, Answer: []byte("aprovado"),
	})
	f.leftAbout("the retention", rec.RetainLeft, long)
}

func completeLate(f *fixture) {
	for _, p := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable, umavez.Stepped, umavez.Atomic} {
		for _, h := range []held{f.lost(p), f.abandoned(p)} {
			f.answers("late complete", f.store.Complete(f.Context(), h.Lease, []byte("late"), kept()), nil)
			if rec := f.is(h.ID, umavez.Done); string(rec.Answer) != "late" || rec.Reason != "" {
				f.Fatalf("the record is %v, want it done with the late answer", brief(rec))
			}
		}
	}
}

func completeRepeat(f *fixture) {
	h := f.done("aprovado", kept())
	before := f.get(h.ID)
	for range 2 {
		f.answers("repeated complete", f.store.Complete(f.Context(), h.Lease, []byte("aprovado"), kept()), nil)
	}
	f.same("the record", f.get(h.ID), before)

	empty := f.running(umavez.Opaque)
	for _, answer := range [][]byte{nil, {}} { // an answer of nothing is nothing, however it is written
		f.answers("complete with nothing", f.store.Complete(f.Context(), empty.Lease, answer, kept()), nil)
	}
}

func completeFirstStands(f *fixture) {
	h := f.done("aprovado", kept())
	for _, other := range []string{"recusado", "", "aprovado "} {
		f.answers("another answer", f.store.Complete(f.Context(), h.Lease, []byte(other), kept()), umavez.ErrLeaseLost)
	}
	if rec := f.is(h.ID, umavez.Done); string(rec.Answer) != "aprovado" {
		f.Fatalf("the answer became %q, want %q for ever", rec.Answer, "aprovado")
	}
}

func completeForeign(f *fixture) {
	running, done, released := f.running(umavez.Opaque), f.done("aprovado", kept()), f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	stranger := func(l umavez.Lease) umavez.Lease {
		l.Attempt = umavez.NewAttemptID()
		return l
	}
	foreign := []umavez.Lease{
		{ID: f.key(), Attempt: umavez.NewAttemptID()},
		stranger(running.Lease), stranger(f.lost(umavez.Opaque).Lease), stranger(done.Lease), released.Lease,
	}
	for _, l := range foreign {
		before := f.get(l.ID)
		f.answers("complete", f.store.Complete(f.Context(), l, []byte("aprovado"), kept()), umavez.ErrLeaseLost)
		f.same("the record", f.get(l.ID), before)
	}
}

func completeBars(f *fixture) {
	h := f.done("aprovado", kept())
	before := f.get(h.ID)
	f.owns(h.Lease, umavez.ErrLeaseLost)
	stranger := h.Lease
	stranger.Attempt = umavez.NewAttemptID()
	f.owns(stranger, umavez.ErrLeaseLost)
	f.refused(h.ID, h.over(h.Fence))
	f.same("the done record", f.get(h.ID), before)
}

func completeDoesNotSlide(f *fixture) {
	h := f.done("aprovado", umavez.Retention{Retain: time.Hour, Tombstone: long})
	f.answers("repeated complete", f.store.Complete(f.Context(), h.Lease, []byte("aprovado"), kept()), nil)
	f.refused(h.ID, h.over(0))
	if left := f.get(h.ID).RetainLeft; left > time.Hour {
		f.Fatalf("%v of the retention is left, want no more than the hour that the completion said", left)
	}
}

func completeRepeatAfterRetention(f *fixture) {
	h := f.done("aprovado", umavez.Retention{Retain: f.short(), Tombstone: long})
	f.pass(f.short())
	f.is(h.ID, umavez.Expired)
	f.answers("repeated complete", f.store.Complete(f.Context(), h.Lease, []byte("aprovado"), kept()), nil)
	other := h.Lease
	other.Attempt = umavez.NewAttemptID()
	f.answers("complete by another", f.store.Complete(f.Context(), other, []byte("aprovado"), kept()), umavez.ErrLeaseLost)
	f.is(h.ID, umavez.Expired)
}

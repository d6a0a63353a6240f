package storetest

import "github.com/umavez/umavez"

// retentionRules say how a finished record ends.
var retentionRules = []rule{
	{
		name:  "retention/then a tombstone refuses",
		why:   "when its retention is over a record answers no more, and a late retry is refused, not run again",
		check: retentionTombstone,
	},
	{
		name:  "retention/then the key is vacant",
		why:   "past retention and tombstone the key is as if it had never been used, whether or not the row was purged",
		check: retentionVacant,
	},
	{
		name:  "retention/counts from the completion",
		why:   "not from the claim: an operation that ran for long has its answer kept for as long as any other",
		check: retentionFromCompletion,
	},
	{
		name:  "retention/running and lost keys have none",
		why:   "a running or lost record never vanishes by time: what became of it is not known until somebody says so",
		check: retentionNotOfLost,
	},
}

func retentionTombstone(f *fixture) {
	h := f.done("aprovado", umavez.Retention{Retain: f.short(), Tombstone: long})
	f.pass(f.short())
	rec := f.is(h.ID, umavez.Expired)
	if rec.Answer != nil || rec.RetainLeft != 0 {
		f.Fatalf("an expired record has the answer %s and %v of its retention left, want neither", cut(rec.Answer), rec.RetainLeft)
	}
	if rec.Attempt != h.Attempt || rec.Fence != h.Fence || rec.Fingerprint != h.req.Fingerprint {
		f.Fatalf("the tombstone %v does not name the attempt, fence and fingerprint of its record", brief(rec))
	}
	f.refused(h.ID, h.over(0))
	f.refused(h.ID, h.over(h.Fence))
	f.owns(umavez.Lease{ID: h.ID, Attempt: umavez.NewAttemptID()}, umavez.ErrLeaseLost)
	f.is(h.ID, umavez.Expired)
}

func retentionVacant(f *fixture) {
	for _, tombstone := range []bool{false, true} {
		keep := umavez.Retention{Retain: f.short()}
		if tombstone {
			keep.Tombstone = f.short()
		}
		h := f.done("aprovado", keep)
		f.pass(keep.Retain + keep.Tombstone)
		f.is(h.ID, umavez.Vacant)
		next := f.request(umavez.Stepped)
		again := f.claim(h.ID, next)
		f.same("the record of the next claim", f.get(h.ID), umavez.Record{
			State: umavez.Running, Policy: umavez.Stepped, Route: next.Route, Fingerprint: next.Fingerprint,
			Attempt: next.Attempt, Fence: again.Fence, Tries: 1, Request: next.Request,
		})
	}
}

func retentionFromCompletion(f *fixture) {
	h := f.running(umavez.Opaque)
	f.pass(2 * f.short())
	f.answers("complete", f.store.Complete(f.Context(), h.Lease, []byte("a"), umavez.Retention{Retain: long}), nil)
	f.leftAbout("the retention", f.is(h.ID, umavez.Done).RetainLeft, long)
	if f.opened.Advance == nil {
		return // milliseconds do not show beside what a machine may take to look
	}
	f.pass(long - f.short())
	f.is(h.ID, umavez.Done)
	f.pass(2 * f.short())
	f.is(h.ID, umavez.Vacant)
}

func retentionNotOfLost(f *fixture) {
	lost, abandoned := f.lost(umavez.Opaque), f.abandoned(umavez.Rerunnable)
	if f.opened.Advance != nil {
		f.pass(10 * long) // as long as it takes: more than a year
	} else {
		f.pass(10 * f.short())
	}
	f.is(lost.ID, umavez.Lost)
	f.is(abandoned.ID, umavez.Lost)
	f.refused(lost.ID, f.request(umavez.Opaque))
}

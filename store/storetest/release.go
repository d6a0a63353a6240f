package storetest

import "github.com/umavez/umavez"

// releaseRules say what it takes to make a key vacant, and whom that bars.
var releaseRules = []rule{
	{
		name:  "release/makes the key vacant",
		why:   "nothing happened, so the next claim is a first one: its policy, route, fingerprint and request are kept, and nothing of the released attempt",
		check: releaseVacates,
	},
	{
		name:  "release/repeat is answered yes",
		why:   "a release whose reply was lost is repeated until the store says yes",
		check: releaseRepeat,
	},
	{
		name: "release/bars its attempt",
		why: "a claim of the released attempt that is still on its way (sent twice, or delayed) must not be granted when it arrives: " +
			"it would leave a running record that nobody runs",
		check: releaseBars,
	},
	{
		name: "release/bars an attempt it never saw",
		why: "a claim may be overtaken by its own release; once the release has been answered, the claim that arrives later finds itself barred " +
			"although there was no record to release",
		check: releaseBarsUnseen,
	},
	{
		name:  "release/bars on a key past its tombstone",
		why:   "a key whose record is over is vacant, whether or not it was purged; what a release bars must not depend on the purge",
		check: releaseBarsPastTombstone,
	},
	{
		name:  "release/late is a release",
		why:   "an owner whose lease ran out, and that was not replaced, still knows that nothing happened",
		check: releaseLate,
	},
	{
		name:  "release/not of this attempt",
		why:   "whoever does not hold the key cannot give it up: a stranger's release would open a running key to the next attempt",
		check: releaseForeign,
	},
	{
		name:  "release/not with a step kept",
		why:   "a kept step did happen; the record that tells of it stays",
		check: releaseSteps,
	},
	{
		name:  "release/not after abandon",
		why:   "an attempt that said that its outcome is not known does not know that nothing happened",
		check: releaseAbandoned,
	},
}

func releaseVacates(f *fixture) {
	h := f.running(umavez.Rerunnable)
	f.answers("last word", f.store.Checkpoint(f.Context(), h.Lease, umavez.LastWord, []byte("half")), nil)
	f.answers("release", f.store.Release(f.Context(), h.Lease), nil)
	f.is(h.ID, umavez.Vacant)

	next := f.request(umavez.Opaque)
	next.Route, next.Request, next.Fingerprint.Recipe = "another route", nil, 8
	second := f.claim(h.ID, next)
	f.same("the record of the next claim", f.get(h.ID), umavez.Record{
		State: umavez.Running, Policy: umavez.Opaque, Route: next.Route, Fingerprint: next.Fingerprint,
		Attempt: next.Attempt, Fence: second.Fence, Tries: 1,
	})
}

func releaseRepeat(f *fixture) {
	h := f.running(umavez.Opaque)
	for range 3 {
		f.answers("release", f.store.Release(f.Context(), h.Lease), nil)
	}
	f.is(h.ID, umavez.Vacant)
}

func releaseBars(f *fixture) {
	h := f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), h.Lease), nil)
	for range 2 {
		f.refused(h.ID, h.req)
		f.refused(h.ID, func() umavez.ClaimRequest { req := h.req; req.TakeOver = h.Fence; return req }())
	}
	f.is(h.ID, umavez.Vacant)
	f.claim(h.ID, f.request(umavez.Opaque)) // another attempt may claim
}

func releaseBarsUnseen(f *fixture) {
	id, req := f.key(), f.request(umavez.Opaque)
	for range 2 {
		f.answers("release without a record", f.store.Release(f.Context(), umavez.Lease{ID: id, Attempt: req.Attempt}), nil)
		f.refused(id, req)
	}
	f.is(id, umavez.Vacant)
	f.claim(id, f.request(umavez.Opaque))
}

func releaseBarsPastTombstone(f *fixture) {
	h := f.done("a", umavez.Retention{Retain: f.short()})
	f.pass(f.short())
	f.is(h.ID, umavez.Vacant)
	late := f.request(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), umavez.Lease{ID: h.ID, Attempt: late.Attempt}), nil)
	f.refused(h.ID, late)
	f.claim(h.ID, f.request(umavez.Opaque))
}

func releaseLate(f *fixture) {
	h := f.lost(umavez.Opaque)
	f.answers("late release", f.store.Release(f.Context(), h.Lease), nil)
	f.is(h.ID, umavez.Vacant)
}

func releaseForeign(f *fixture) {
	for _, h := range []held{f.running(umavez.Opaque), f.lost(umavez.Opaque), f.abandoned(umavez.Opaque), f.done("a", kept())} {
		before := f.get(h.ID)
		l := h.Lease
		l.Attempt = umavez.NewAttemptID()
		f.answers("release by a stranger", f.store.Release(f.Context(), l), umavez.ErrLeaseLost)
		f.same("the record", f.get(h.ID), before)
	}
}

func releaseSteps(f *fixture) {
	h := f.running(umavez.Stepped)
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
	before := f.get(h.ID)
	for range 2 {
		f.answers("release", f.store.Release(f.Context(), h.Lease), umavez.ErrHasSteps)
	}
	f.same("the record", f.get(h.ID), before)
}

func releaseAbandoned(f *fixture) {
	h := f.abandoned(umavez.Opaque)
	before := f.get(h.ID)
	f.answers("release after abandon", f.store.Release(f.Context(), h.Lease), umavez.ErrLeaseLost)
	f.same("the record", f.get(h.ID), before)
}

package storetest

import (
	"time"

	"github.com/umavez/umavez"
)

// claimRules say who gets a key, and what the first claim keeps.
var claimRules = []rule{
	{
		name: "claim/vacant key is granted",
		why: "a claim of a vacant key makes it run under the attempt, and the record keeps what the claim said; " +
			"otherwise nothing ever runs, or what a later attempt needs to know is gone",
		check: claimVacant,
	},
	{
		name: "claim/repeat is granted",
		why: "a claim whose reply was lost is repeated by the same attempt, and gets the same answer; " +
			"otherwise the key stands still for a lease although nobody runs it",
		check: claimRepeat,
	},
	{
		name:  "claim/repeat sets the lease anew",
		why:   "the repeat's lease counts from the repeat: the attempt starts now and not when its first try was sent",
		check: claimRepeatSetsLease,
	},
	{
		name:  "claim/repeat never shortens",
		why:   "a repeat that arrives late must not take away what a heartbeat has won since",
		check: claimRepeatNeverShortens,
	},
	{
		name:  "claim/repeat revives what ran out",
		why:   "a lease that ran out permits a takeover and revokes nothing: the attempt that holds the record may still go on",
		check: claimRepeatRevives,
	},
	{
		name:  "claim/repeat after abandon is refused",
		why:   "an attempt that said that it has ended does not run again; a repeat that arrives late would hide a lost key behind a new lease",
		check: claimAfterAbandon,
	},
	{
		name:  "claim/live key is refused to others",
		why:   "while a lease lasts, the key is its attempt's alone, whatever the policy and whatever fence the claimer names; otherwise the operation runs twice",
		check: claimLive,
	},
	{
		name:  "claim/done key answers",
		why:   "a claim of a done key is the replay: it changes nothing and returns the record with its answer",
		check: claimDone,
	},
	{
		name:  "claim/own done key answers too",
		why:   "the attempt that completed gets the record like everyone else: its claim was a repeat that came late",
		check: claimOwnDone,
	},
}

func claimVacant(f *fixture) {
	for _, p := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable, umavez.Stepped, umavez.Atomic} {
		id, req := f.key(), f.request(p)
		f.is(id, umavez.Vacant)
		rec, acquired, err := f.store.Claim(f.Context(), id, req)
		if err != nil || !acquired {
			f.Fatalf("claim of a vacant key: acquired %v, error %v", acquired, err)
		}
		if rec.Fence <= 0 {
			f.Fatalf("the fence is %d, want it above zero: zero means none", rec.Fence)
		}
		want := umavez.Record{
			State: umavez.Running, Policy: p, Route: req.Route, Fingerprint: req.Fingerprint,
			Attempt: req.Attempt, Fence: rec.Fence, Tries: 1, Request: req.Request,
		}
		f.same("the claim's record", rec, want)
		f.same("the record read back", f.get(id), want)
		f.leftAbout("the lease", rec.LeaseLeft, req.Lease)
	}
}

func claimRepeat(f *fixture) {
	h := f.running(umavez.Rerunnable)
	before := f.get(h.ID)
	again := f.request(umavez.Opaque) // what else a repeat says changes nothing
	again.Attempt, again.Route, again.Request = h.Attempt, "another route", []byte("another request")
	rec, acquired, err := f.store.Claim(f.Context(), h.ID, again)
	if err != nil || !acquired {
		f.Fatalf("repeated claim: acquired %v, error %v, record %v; want it granted", acquired, err, brief(rec))
	}
	f.same("the repeat's record", rec, before)
	f.same("the record after the repeat", f.get(h.ID), before)
}

func claimRepeatSetsLease(f *fixture) {
	id, req := f.key(), f.request(umavez.Opaque)
	req.Lease = time.Hour
	f.claim(id, req)
	req.Lease = long
	f.claim(id, req)
	f.leftAbout("the lease after the repeat", f.get(id).LeaseLeft, long)
}

func claimRepeatNeverShortens(f *fixture) {
	h := f.running(umavez.Opaque)
	h.req.Lease = f.short()
	f.claim(h.ID, h.req)
	f.leftAbout("the lease after a shorter repeat", f.get(h.ID).LeaseLeft, long)
}

func claimRepeatRevives(f *fixture) {
	h := f.lost(umavez.Opaque)
	h.req.Lease = long
	again := f.claim(h.ID, h.req)
	if again.Fence != h.Fence {
		f.Fatalf("the fence went from %d to %d: a repeat is no new claim", h.Fence, again.Fence)
	}
	f.is(h.ID, umavez.Running)
}

func claimAfterAbandon(f *fixture) {
	for _, p := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable} {
		h := f.abandoned(p)
		f.refused(h.ID, h.req)
		f.is(h.ID, umavez.Lost)
	}
}

func claimLive(f *fixture) {
	for _, p := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable, umavez.Stepped, umavez.Atomic} {
		h := f.running(p)
		f.refused(h.ID, h.over(0))
		f.refused(h.ID, h.over(h.Fence))
	}
}

func claimDone(f *fixture) {
	h := f.done("aprovado", kept())
	for _, fence := range []umavez.Fence{0, h.Fence} {
		rec := f.refused(h.ID, h.over(fence))
		if rec.State != umavez.Done || string(rec.Answer) != "aprovado" {
			f.Fatalf("a claim of a done key returned %v, want it done with its answer", brief(rec))
		}
	}
	f.leftAbout("the retention", f.get(h.ID).RetainLeft, long)
}

func claimOwnDone(f *fixture) {
	h := f.done("aprovado", kept())
	if rec := f.refused(h.ID, h.req); rec.State != umavez.Done || rec.Attempt != h.Attempt {
		f.Fatalf("the claim returned %v, want it done under the same attempt", brief(rec))
	}
}

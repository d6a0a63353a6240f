package storetest

import (
	"strings"
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
	{
		name:  "claim/resume claims nothing vacant",
		why:   "whoever wants to go on with a lost record has nothing to run when the key has become vacant meanwhile: it would begin an operation that nobody asked for",
		check: claimResume,
	},
	{
		name: "claim/whose it is stays with the record",
		why: "namespace, scope and label are those of the first claim, over takeovers and to the tombstone: " +
			"by them operators find a caller's keys, and a caller's unsettled records are counted",
		check: claimWhose,
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

func claimResume(f *fixture) {
	resume := func(h held, fence umavez.Fence) umavez.ClaimRequest {
		req := h.over(fence)
		req.Resume = true
		return req
	}
	never := held{req: f.request(umavez.Rerunnable)}
	never.ID = f.key()
	released, gone := f.running(umavez.Rerunnable), f.done("a", umavez.Retention{})
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	f.pass(f.short())
	for _, h := range []held{never, released, gone} {
		for _, fence := range []umavez.Fence{0, h.Fence, 1} {
			f.refused(h.ID, resume(h, fence))
			f.is(h.ID, umavez.Vacant)
		}
	}
	for _, h := range []held{f.lost(umavez.Rerunnable), f.abandoned(umavez.Stepped)} {
		f.refused(h.ID, resume(h, h.Fence+1))
		req := resume(h, h.Fence)
		again := f.claim(h.ID, req)
		f.claim(h.ID, req) // its repeat
		f.answers("complete", f.store.Complete(f.Context(), again.Lease, []byte("a"), kept()), nil)
	}
	opaque := f.lost(umavez.Opaque)
	f.refused(opaque.ID, resume(opaque, opaque.Fence))
}

func claimWhose(f *fixture) {
	for _, w := range []struct {
		namespace, label string
		scope            umavez.ScopeID
	}{
		{"loja", "loja/ana/k-1", umavez.ScopeID{0: 1}},
		{" Loja\x00\xff", " k\u00e9y\n\x00\xff'\"", umavez.ScopeID{0: 0xff, 15: 0}},
		{strings.Repeat("n", 255), strings.Repeat("l", umavez.MaxLabel), umavez.ScopeID{15: 1}},
		{"", "", umavez.ScopeID{}},
	} {
		whose := func(id umavez.ID, when string) {
			f.Helper()
			if rec := f.get(id); rec.Namespace != w.namespace || rec.Scope != w.scope || rec.Label != w.label {
				f.Fatalf("%s the record is %q's, of scope %v, labelled %q; want %q, %v and %q",
					when, rec.Namespace, rec.Scope, rec.Label, w.namespace, w.scope, w.label)
			}
		}
		req := f.request(umavez.Rerunnable)
		req.Namespace, req.Label, req.Scope, req.Lease = w.namespace, w.label, w.scope, f.short()
		h := f.claim(f.key(), req)
		whose(h.ID, "after the claim")
		again := req
		again.Namespace, again.Label, again.Scope = "other", "other", umavez.ScopeID{9}
		f.claim(h.ID, again)
		whose(h.ID, "after a repeat")
		f.pass(req.Lease)
		f.is(h.ID, umavez.Lost)
		over := h.over(h.Fence)
		over.Namespace, over.Label, over.Scope = "other", "other", umavez.ScopeID{9}
		second := f.claim(h.ID, over)
		whose(h.ID, "after a takeover")
		f.answers("complete", f.store.Complete(f.Context(), second.Lease, nil, umavez.Retention{Retain: f.short(), Tombstone: long}), nil)
		whose(h.ID, "after the completion")
		f.pass(f.short())
		f.is(h.ID, umavez.Expired)
		whose(h.ID, "as a tombstone")
	}
	// A new life of the key is whoever's claims it.
	h := f.done("a", umavez.Retention{})
	f.pass(f.short())
	req := f.request(umavez.Opaque)
	req.Namespace, req.Label, req.Scope = "next", "next", umavez.ScopeID{7}
	f.claim(h.ID, req)
	if rec := f.get(h.ID); rec.Namespace != "next" || rec.Label != "next" || rec.Scope != (umavez.ScopeID{7}) {
		f.Fatalf("the next life of the key is %q's, of scope %v, labelled %q", rec.Namespace, rec.Scope, rec.Label)
	}
}

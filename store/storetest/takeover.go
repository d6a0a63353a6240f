package storetest

import "github.com/umavez/umavez"

// takeoverRules say when another attempt may go on with a lost record.
var takeoverRules = []rule{
	{
		name:  "takeover/opaque never",
		why:   "nothing is known of a lost attempt of an opaque operation, so it is never run again by itself, whatever the claimer says",
		check: takeoverOpaque,
	},
	{
		name: "takeover/lost record is granted",
		why: "rerunnable, stepped and atomic operations go on under the next attempt, with the policy, route, fingerprint, " +
			"request and steps of the first claim; otherwise they stand still for ever, or resume as something else",
		check: takeoverGranted,
	},
	{
		name:  "takeover/abandoned record is granted",
		why:   "an owner that says that it has ended need not be waited for",
		check: takeoverAbandoned,
	},
	{
		name:  "takeover/parked never",
		why:   "an attempt that ended because a step must not be sent again, or because the code has changed, stands still: the next attempt would do what this one must not",
		check: takeoverParked,
	},
	{
		name:  "takeover/exact fence",
		why:   "a takeover names the fence that was seen lost; another fence means that the record has moved since, and that somebody may be running it",
		check: takeoverExactFence,
	},
	{
		name:  "takeover/policy of the record",
		why:   "the policy under which the lost attempt ran decides, not the claimer's: a route that was declared anew would else rerun what it must not",
		check: takeoverRecordsPolicy,
	},
	{
		name:  "takeover/same fingerprint",
		why:   "only the same request goes on with a record; another one would run under a key that is not its own",
		check: takeoverFingerprint,
	},
	{
		name:  "takeover/old owner is out",
		why:   "once the record carries another attempt, nothing that the old one still sends counts: its completion, its heartbeat, its release",
		check: takeoverOldOwner,
	},
	{
		name:  "takeover/takes the last word away",
		why:   "the last word is of the attempt that was lost; the record that runs again has none, and is not abandoned",
		check: takeoverLastWord,
	},
	{
		name:  "takeover/tries are counted",
		why:   "operators see by the number of tries that an operation keeps failing",
		check: takeoverTries,
	},
}

// takenOver are the policies that let the next attempt take over.
var takenOver = []umavez.Policy{umavez.Rerunnable, umavez.Stepped, umavez.Atomic}

func takeoverOpaque(f *fixture) {
	for _, h := range []held{f.lost(umavez.Opaque), f.abandoned(umavez.Opaque)} {
		f.refused(h.ID, h.over(0))
		f.refused(h.ID, h.over(h.Fence))
	}
}

func takeoverGranted(f *fixture) {
	for _, p := range takenOver {
		id, first := f.key(), f.request(p)
		first.Lease = f.short()
		h := f.claim(id, first)
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
		f.pass(first.Lease)
		lost := f.is(id, umavez.Lost)

		second := h.over(h.Fence)
		second.Route, second.Request = "another route", []byte("another request")
		rec, acquired, err := f.store.Claim(f.Context(), id, second)
		if err != nil || !acquired {
			f.Fatalf("takeover of a lost %v record: acquired %v, error %v", p, acquired, err)
		}
		want := lost
		want.State, want.Reason = umavez.Running, ""
		want.Attempt, want.Fence, want.Tries = second.Attempt, rec.Fence, 2
		f.same("the record taken over", rec, want)
		f.same("the record read back", f.get(id), want)
		f.leftAbout("the lease", rec.LeaseLeft, long)
	}
}

func takeoverAbandoned(f *fixture) {
	for _, p := range takenOver {
		h := f.abandoned(p)
		f.claim(h.ID, h.over(h.Fence))
		f.is(h.ID, umavez.Running)
	}
}

func takeoverParked(f *fixture) {
	for _, why := range []umavez.Reason{umavez.ReasonStepInDoubt, umavez.ReasonCodeChanged} {
		h := f.running(umavez.Stepped)
		f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, why, nil), nil)
		f.refused(h.ID, h.over(h.Fence))
		f.is(h.ID, umavez.Lost)
	}
}

func takeoverExactFence(f *fixture) {
	h := f.lost(umavez.Rerunnable)
	for _, fence := range []umavez.Fence{0, h.Fence - 1, h.Fence + 1} {
		f.refused(h.ID, h.over(fence))
	}
	// Two who saw the same loss: the second one comes too late, also when the
	// first one is lost in its turn.
	second := f.claim(h.ID, h.over(h.Fence))
	f.answers("abandon", f.store.Abandon(f.Context(), second.Lease, umavez.ReasonError, nil), nil)
	f.refused(h.ID, h.over(h.Fence))
}

func takeoverRecordsPolicy(f *fixture) {
	h := f.lost(umavez.Opaque)
	claimer := h.over(h.Fence)
	claimer.Policy = umavez.Rerunnable
	f.refused(h.ID, claimer)

	h = f.lost(umavez.Rerunnable)
	claimer = h.over(h.Fence)
	claimer.Policy = umavez.Opaque
	f.claim(h.ID, claimer)
	if got := f.get(h.ID).Policy; got != umavez.Rerunnable {
		f.Fatalf("the policy became %v, want it to stay rerunnable", got)
	}
}

func takeoverFingerprint(f *fixture) {
	h := f.lost(umavez.Rerunnable)
	change := map[string]func(*umavez.Fingerprint){
		"sum":    func(p *umavez.Fingerprint) { p.Sum[31] ^= 1 },
		"recipe": func(p *umavez.Fingerprint) { p.Recipe++ },
		"parts":  func(p *umavez.Fingerprint) { p.Parts[umavez.FingerprintParts-1]++ },
	}
	for what, apply := range change {
		claimer := h.over(h.Fence)
		apply(&claimer.Fingerprint)
		f.Logf("takeover with another %s", what)
		f.refused(h.ID, claimer)
	}
	f.claim(h.ID, h.over(h.Fence))
}

func takeoverOldOwner(f *fixture) {
	h := f.lost(umavez.Rerunnable)
	second := f.claim(h.ID, h.over(h.Fence))
	before := f.get(h.ID)
	f.owns(h.Lease, umavez.ErrLeaseLost)
	f.same("the record after the old owner's calls", f.get(h.ID), before)
	f.leftAbout("the new owner's lease", f.get(h.ID).LeaseLeft, long)
	f.refused(h.ID, h.req) // a repeat of its claim that comes late

	f.answers("complete by the new owner", f.store.Complete(f.Context(), second.Lease, []byte("a"), kept()), nil)
}

// owns makes every call that an owner may make, and checks that each is
// answered with want.
func (f *fixture) owns(l umavez.Lease, want error) {
	f.Helper()
	f.answers("extend", f.store.Extend(f.Context(), l, 2*long), want)
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), l, "cobrar", []byte("c-2")), want)
	f.answers("last word", f.store.Checkpoint(f.Context(), l, umavez.LastWord, []byte("half")), want)
	f.answers("abandon", f.store.Abandon(f.Context(), l, umavez.ReasonReset, []byte("half")), want)
	f.answers("release", f.store.Release(f.Context(), l), want)
	f.answers("complete", f.store.Complete(f.Context(), l, []byte("another answer"), kept()), want)
}

func takeoverLastWord(f *fixture) {
	h := f.running(umavez.Rerunnable)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonStatus, []byte("503")), nil)
	second := f.claim(h.ID, h.over(h.Fence))
	if rec := f.is(h.ID, umavez.Running); rec.Last != nil || rec.Reason != "" {
		f.Fatalf("the record taken over has the last word %q and the reason %q, want none", rec.Last, rec.Reason)
	}
	f.answers("extend by the new owner", f.store.Extend(f.Context(), second.Lease, long), nil)
}

func takeoverTries(f *fixture) {
	h := f.running(umavez.Stepped)
	for tries := 1; tries <= 3; tries++ {
		if got := f.get(h.ID).Tries; got != tries {
			f.Fatalf("the record tells of %d tries, want %d", got, tries)
		}
		f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonError, nil), nil)
		h = f.claim(h.ID, h.over(h.Fence))
	}
}

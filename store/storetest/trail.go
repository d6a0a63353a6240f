package storetest

import (
	"strings"
	"time"

	"github.com/umavez/umavez"
)

// trailRules say what is remembered of settlements, and for how long.
var trailRules = []rule{
	{
		name:  "trail/tells of every change",
		why:   "who made it, why, of which attempt, and where the record stood before and after: it is what an auditor reads when a customer complains",
		check: trailTells,
	},
	{
		name:  "trail/words come back as they went in",
		why:   "names and reasons are what people typed; a trail that cuts or folds them says something else",
		check: trailWords,
	},
	{
		name:  "trail/belongs to its record",
		why:   "a key that nobody settled has no trail, and none has another one's",
		check: trailOwn,
	},
	{
		name:  "trail/outlives its record",
		why:   "the record is gone long before somebody asks what became of it: neither a new life of the key nor a purge takes entries before umavez.AuditKept",
		alone: true,
		check: trailOutlives,
	},
	{
		name:  "trail/purged in the end",
		why:   "after umavez.AuditKept an entry goes, whatever becomes of its record, and is counted like a row; kept for ever, trails would only grow",
		alone: true,
		check: trailPurged,
	},
}

// trail reads a key's audit trail; entries must be in the order in which they
// were made.
func (f *fixture) trail(id umavez.ID) []umavez.AuditEntry {
	f.Helper()
	trail, err := f.settler().Trail(f.Context(), id)
	if err != nil {
		f.Fatalf("trail: %v", err)
	}
	for i := 1; i < len(trail); i++ {
		if trail[i].Ago > trail[i-1].Ago {
			f.Fatalf("entry %d of the audit trail is older than the one before it: %+v", i, trail)
		}
	}
	return trail
}

// sameTrail checks that a trail has not changed.
func (f *fixture) sameTrail(id umavez.ID, want []umavez.AuditEntry) {
	f.Helper()
	if diff := differTrails(f.trail(id), want); diff != "" {
		f.Fatalf("%s", diff)
	}
}

func trailTells(f *fixture) {
	f.settler()
	h := f.running(umavez.Rerunnable)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonTimeout, nil), nil)
	var want []umavez.AuditEntry
	settle := func(h held, action umavez.Action, before, after umavez.State, why, whyAfter umavez.Reason) {
		f.Helper()
		s := settlement(action, h.Fence)
		s.Who, s.Why = "who settles as "+string(action), "why "+string(action)
		f.settled(h, s)
		want = append(want, umavez.AuditEntry{
			Action: action, Who: s.Who, Why: s.Why, Fence: h.Fence,
			Before: before, After: after, BeforeReason: why, AfterReason: whyAfter,
		})
		f.sameTrail(h.ID, want)
		f.pass(f.short())
	}
	settle(h, umavez.ActionPark, umavez.Lost, umavez.Lost, umavez.ReasonTimeout, umavez.ReasonParked)
	settle(h, umavez.ActionCannotHappen, umavez.Lost, umavez.Vacant, umavez.ReasonParked, "")
	second := f.claim(h.ID, f.request(umavez.Opaque))
	f.answers("abandon", f.store.Abandon(f.Context(), second.Lease, umavez.ReasonPanic, nil), nil)
	settle(second, umavez.ActionHappened, umavez.Lost, umavez.Done, umavez.ReasonPanic, "")
	settle(second, umavez.ActionForget, umavez.Done, umavez.Expired, "", "")

	trail := f.trail(h.ID)
	for i, e := range trail {
		f.atLeast("the age of an entry", e.Ago, time.Duration(len(trail)-i)*f.short())
	}
}

func trailWords(f *fixture) {
	f.settler()
	for _, word := range []string{
		" ana ", "Ana", "jos\u00e9", "jose\u0301", "a\x00b", "\xff", `'";--\`, "line\nline", strings.Repeat("w", umavez.MaxWho),
	} {
		h := f.abandoned(umavez.Opaque)
		s := settlement(umavez.ActionPark, h.Fence)
		s.Who, s.Why = word, strings.Repeat(word, umavez.MaxWhy/len(word))
		f.settled(h, s)
		if trail := f.trail(h.ID); len(trail) != 1 || trail[0].Who != s.Who || trail[0].Why != s.Why {
			f.Fatalf("the entry by %q came back as %+v", word, trail)
		}
	}
}

func trailOwn(f *fixture) {
	f.settler()
	settled, other, never := f.abandoned(umavez.Opaque), f.abandoned(umavez.Opaque), f.key()
	f.settled(settled, settlement(umavez.ActionPark, settled.Fence))
	f.settles(other, settlement(umavez.ActionPark, other.Fence+1), umavez.ErrMoved)
	for _, id := range []umavez.ID{other.ID, never} {
		if trail := f.trail(id); len(trail) != 0 {
			f.Fatalf("a key that nobody has settled has the audit trail %+v", trail)
		}
	}
}

func trailOutlives(f *fixture) {
	f.settler()
	h := f.lost(umavez.Opaque)
	s := settlement(umavez.ActionHappened, h.Fence)
	s.Keep = umavez.Retention{Retain: f.short()}
	f.settled(h, s)
	want := f.trail(h.ID)
	f.pass(f.short())
	f.is(h.ID, umavez.Vacant)
	f.sameTrail(h.ID, want)
	if p, ok := f.store.(umavez.Purger); ok {
		if n := f.purgeAll(p, 100); n != 1 {
			f.Fatalf("purge dropped %d rows, want the settled one", n)
		}
		f.sameTrail(h.ID, want)
	}
	f.claim(h.ID, f.request(umavez.Opaque))
	f.sameTrail(h.ID, want)
	if f.opened.Advance == nil {
		return
	}
	f.pass(umavez.AuditKept - 2*f.short()) // a little before its time
	if p, ok := f.store.(umavez.Purger); ok {
		f.purgeAll(p, 100)
	}
	f.sameTrail(h.ID, want)
}

func trailPurged(f *fixture) {
	f.settler()
	p := f.purger()
	if f.opened.Advance == nil {
		f.Skipf("the store's clock cannot be moved by %v", umavez.AuditKept)
	}
	var keys []held
	for range 5 {
		h := f.lost(umavez.Opaque)
		f.settled(h, settlement(umavez.ActionPark, h.Fence))
		keys = append(keys, h)
	}
	f.pass(umavez.AuditKept - f.short())
	young := f.lost(umavez.Opaque)
	f.settled(young, settlement(umavez.ActionPark, young.Fence))
	f.pass(f.short())
	if n := f.purgeAll(p, 2); n != len(keys) {
		f.Fatalf("purge told of %d entries, want %d", n, len(keys))
	}
	for _, h := range keys {
		f.sameTrail(h.ID, nil)
		if rec := f.is(h.ID, umavez.Lost); rec.Reason != umavez.ReasonParked {
			f.Fatalf("the record changed with its trail: %v", brief(rec))
		}
	}
	if trail := f.trail(young.ID); len(trail) != 1 {
		f.Fatalf("an entry that is not over has gone: %+v", trail)
	}
}

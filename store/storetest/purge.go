package storetest

import (
	"github.com/umavez/umavez"
)

// purgeRules hold for stores that drop what is over when they are told.
var purgeRules = []rule{
	{
		name:  "purge/never a running or lost record",
		why:   "a purge that drops an unfinished record makes its key vacant, and the operation runs again",
		alone: true,
		check: purgeNotUnfinished,
	},
	{
		name:  "purge/drops what is over",
		why:   "rows past retention and tombstone go, at most as many as were asked for; fewer than that means that nothing more is due",
		alone: true,
		check: purgeDrops,
	},
	{
		name:  "purge/leaves tombstones and answers",
		why:   "a purge that is early forgets an answer that was promised, or lets a late retry run",
		alone: true,
		check: purgeLeaves,
	},
	{
		name:  "purge/leaves a released attempt barred",
		why:   "a released row bars its attempt and stays for umavez.ReleasedKept",
		alone: true,
		check: purgeLeavesBar,
	},
	{
		name:  "purge/drops released rows in the end",
		why:   "after umavez.ReleasedKept a released row is over; kept for ever, it would be a row for each request that was turned away",
		alone: true,
		check: purgeDropsReleased,
	},
}

// purger returns the store as a Purger, or skips the rule.
func (f *fixture) purger() umavez.Purger {
	f.Helper()
	p, ok := f.store.(umavez.Purger)
	if !ok {
		f.Skipf("the store drops what is over by itself (it is no umavez.Purger)")
	}
	return p
}

// purgeAll purges until nothing more is due, and returns how many rows went or
// were shortened.
func (f *fixture) purgeAll(p umavez.Purger, limit int) int {
	f.Helper()
	for total := 0; ; {
		n, err := p.Purge(f.Context(), limit)
		if err != nil || n < 0 || n > limit {
			f.Fatalf("purge of at most %d rows: %d, error %v", limit, n, err)
		}
		total += n
		if n < limit {
			return total
		}
		if total > 10_000 {
			f.Fatalf("purge has told of %d rows and does not end", total)
		}
	}
}

func purgeNotUnfinished(f *fixture) {
	p := f.purger()
	keys := []held{f.running(umavez.Opaque), f.running(umavez.Rerunnable), f.lost(umavez.Opaque), f.lost(umavez.Rerunnable), f.abandoned(umavez.Opaque)}
	before := make([]umavez.Record, len(keys))
	for i, h := range keys {
		before[i] = f.get(h.ID)
	}
	if f.opened.Advance != nil {
		f.pass(long + umavez.ReleasedKept)
		for i := range before { // by now all are lost
			before[i].State = umavez.Lost
			if before[i].Reason == "" {
				before[i].Reason = umavez.ReasonKilled
			}
		}
	}
	if n := f.purgeAll(p, 100); n != 0 {
		f.Fatalf("purge dropped %d of %d unfinished records", n, len(keys))
	}
	for i, h := range keys {
		f.same("an unfinished record after a purge", f.get(h.ID), before[i])
	}
}

func purgeDrops(f *fixture) {
	p := f.purger()
	const rows, limit = 7, 3
	var ids []umavez.ID
	for range rows {
		ids = append(ids, f.done("a", umavez.Retention{Retain: f.short()}).ID)
	}
	f.pass(f.short())
	if n := f.purgeAll(p, limit); n != rows {
		f.Fatalf("purge dropped %d rows, want %d", n, rows)
	}
	if n := f.purgeAll(p, limit); n != 0 {
		f.Fatalf("a second purge dropped %d rows more", n)
	}
	for _, id := range ids {
		f.is(id, umavez.Vacant)
		f.claim(id, f.request(umavez.Opaque))
	}
}

func purgeLeaves(f *fixture) {
	p := f.purger()
	stone := f.done("over", umavez.Retention{Retain: f.short(), Tombstone: long})
	answer := f.done("kept", kept())
	f.pass(f.short())
	before := f.get(answer.ID)
	f.purgeAll(p, 100) // may drop the expired answer; that is not to be seen
	f.same("a done record after a purge", f.get(answer.ID), before)
	f.is(stone.ID, umavez.Expired)
	f.refused(stone.ID, stone.over(0))
	f.answers("repeated complete", f.store.Complete(f.Context(), stone.Lease, []byte("over"), kept()), nil)
	if n := f.purgeAll(p, 100); n != 0 {
		f.Fatalf("a second purge found %d rows due", n)
	}
}

func purgeLeavesBar(f *fixture) {
	p := f.purger()
	h := f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), h.Lease), nil)
	f.purgeAll(p, 100)
	f.refused(h.ID, h.req)
}

func purgeDropsReleased(f *fixture) {
	p := f.purger()
	if f.opened.Advance == nil {
		f.Skipf("the store's clock cannot be moved by %v", umavez.ReleasedKept)
	}
	h := f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), h.Lease), nil)
	f.pass(umavez.ReleasedKept)
	if n := f.purgeAll(p, 100); n != 1 {
		f.Fatalf("purge dropped %d rows, want the released one", n)
	}
	f.is(h.ID, umavez.Vacant)
}

package storetest

import "github.com/umavez/umavez"

// fenceRules say how the number goes that names which attempt was looked at.
var fenceRules = []rule{
	{
		name: "fence/rises with every claim",
		why: "the fence rises over a key's whole life, through takeover, release and retention; a fence that falls or stands " +
			"names two attempts alike, and a takeover or settlement meant for one ends the other",
		check: fenceRises,
	},
	{
		name:  "fence/rises through purge",
		why:   "the fence of a new claim is at least the store's clock, so it rises although the row is gone that held the old one",
		alone: true,
		check: fenceRisesThroughPurge,
	},
	{
		name:  "fence/stays otherwise",
		why:   "only a claim raises the fence: whoever looked at an attempt must find it under the same number when nothing but its lease has moved",
		check: fenceStays,
	},
	{
		name:  "fence/follows the store's clock",
		why:   "a fence is max(the one before + 1, the store's clock in microseconds): that alone keeps it rising when a row is gone",
		check: fenceFollowsClock,
	},
}

func fenceRises(f *fixture) {
	id, last := f.key(), umavez.Fence(0)
	raised := func(by string, h held) held {
		f.Helper()
		if h.Fence <= last {
			f.Fatalf("after %s the fence is %d, not above %d", by, h.Fence, last)
		}
		last = h.Fence
		return h
	}
	for range 3 {
		h := raised("a first claim", f.claim(id, f.request(umavez.Rerunnable)))
		f.answers("release", f.store.Release(f.Context(), h.Lease), nil)
		h = raised("a release", f.claim(id, f.request(umavez.Rerunnable)))
		f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonError, nil), nil)
		h = raised("a takeover", f.claim(id, h.over(h.Fence)))
		over := umavez.Retention{Retain: f.short(), Tombstone: f.short()}
		f.answers("complete", f.store.Complete(f.Context(), h.Lease, []byte("a"), over), nil)
		f.pass(over.Retain + over.Tombstone)
	}
	raised("retention and tombstone", f.claim(id, f.request(umavez.Opaque)))
}

func fenceRisesThroughPurge(f *fixture) {
	purger := f.purger()
	h := f.done("a", umavez.Retention{Retain: f.short()})
	f.pass(f.short())
	if n, err := purger.Purge(f.Context(), 10); err != nil || n != 1 {
		f.Fatalf("purge dropped %d rows, error %v; want 1", n, err)
	}
	if again := f.claim(h.ID, f.request(umavez.Opaque)); again.Fence <= h.Fence {
		f.Fatalf("after a purge the fence went from %d to %d", h.Fence, again.Fence)
	}
}

func fenceStays(f *fixture) {
	h := f.running(umavez.Rerunnable)
	calls := []struct {
		name string
		call func() error
	}{
		{"claim", func() error { f.claim(h.ID, h.req); return nil }},
		{"extend", func() error { return f.store.Extend(f.Context(), h.Lease, long) }},
		{"checkpoint", func() error { return f.store.Checkpoint(f.Context(), h.Lease, "s", nil) }},
		{"abandon", func() error { return f.store.Abandon(f.Context(), h.Lease, umavez.ReasonError, nil) }},
		{"complete", func() error { return f.store.Complete(f.Context(), h.Lease, nil, kept()) }},
	}
	for _, c := range calls {
		f.answers(c.name, c.call(), nil)
		if got := f.get(h.ID).Fence; got != h.Fence {
			f.Fatalf("after %s the fence is %d, want %d", c.name, got, h.Fence)
		}
	}
}

// fenceFollowsClock: no clock but the store's is asked. Between the two claims
// the store itself says that a lease of known length has run out.
func fenceFollowsClock(f *fixture) {
	d := f.short()
	before := f.running(umavez.Opaque)
	f.pass(d)
	after := f.running(umavez.Opaque)
	if after.Fence < before.Fence+umavez.Fence(d.Microseconds()) {
		f.Fatalf("%v apart, the fences of two new keys are %d and %d; want %d microseconds between them",
			d, before.Fence, after.Fence, d.Microseconds())
	}
}

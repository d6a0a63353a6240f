package storetest

import "github.com/umavez/umavez"

// abandonRules say how an attempt ends whose outcome is not known.
var abandonRules = []rule{
	{
		name:  "abandon/ends the lease now",
		why:   "the attempt has ended; the key is lost from now on, with the reason and the last word that were given",
		check: abandonEnds,
	},
	{
		name:  "abandon/repeat is a no-op",
		why:   "the first reason and last word stand: a repeat, or a second end of the same attempt, has nothing new to say",
		check: abandonRepeat,
	},
	{
		name:  "abandon/nil leaves the last word",
		why:   "an attempt that saw nothing more leaves what it noted before; nil is no word, and an empty one is",
		check: abandonNil,
	},
	{
		name:  "abandon/no heartbeat revives it",
		why:   "a heartbeat that arrives after the end must not make a key look alive that nobody runs",
		check: abandonNotRevived,
	},
	{
		name:  "abandon/of what ran out",
		why:   "an owner that ends after its lease ran out can still say why, and the loss counts from the end of the lease",
		check: abandonLost,
	},
	{
		name:  "abandon/says killed when nobody said why",
		why:   "a lease that ran out without a word has the reason killed, and an abandoned one never has none",
		check: abandonReasons,
	},
	{
		name:  "abandon/not of this attempt",
		why:   "nobody ends another attempt's lease: a running operation would be called lost, and perhaps be run again",
		check: abandonForeign,
	},
}

func abandonEnds(f *fixture) {
	h := f.running(umavez.Opaque)
	before := f.get(h.ID)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonStatus, []byte("503")), nil)
	want := before
	want.State, want.Reason, want.Last = umavez.Lost, umavez.ReasonStatus, []byte("503")
	f.same("the record", f.get(h.ID), want)
}

func abandonRepeat(f *fixture) {
	h := f.running(umavez.Opaque)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonStatus, []byte("503")), nil)
	before := f.get(h.ID)
	f.answers("abandon again", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonPanic, []byte("200")), nil)
	f.answers("abandon again", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonPanic, nil), nil)
	f.same("the record", f.get(h.ID), before)
}

func abandonNil(f *fixture) {
	for _, c := range []struct {
		last []byte
		want string
	}{{nil, "half"}, {[]byte{}, ""}} {
		h := f.running(umavez.Opaque)
		f.answers("last word", f.store.Checkpoint(f.Context(), h.Lease, umavez.LastWord, []byte("half")), nil)
		f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonBroken, c.last), nil)
		if got := f.get(h.ID).Last; string(got) != c.want {
			f.Fatalf("abandoned with %#v, the last word is %q, want %q", c.last, got, c.want)
		}
	}
}

func abandonNotRevived(f *fixture) {
	h := f.abandoned(umavez.Opaque)
	before := f.get(h.ID)
	f.answers("extend", f.store.Extend(f.Context(), h.Lease, long), umavez.ErrLeaseLost)
	f.same("the record", f.get(h.ID), before)
}

func abandonLost(f *fixture) {
	h := f.lost(umavez.Opaque)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonTimeout, []byte("504")), nil)
	rec := f.is(h.ID, umavez.Lost)
	if rec.Reason != umavez.ReasonTimeout || string(rec.Last) != "504" {
		f.Fatalf("the record is %v, want the reason and last word of the abandon", brief(rec))
	}
}

func abandonReasons(f *fixture) {
	if rec := f.get(f.lost(umavez.Opaque).ID); rec.Reason != umavez.ReasonKilled {
		f.Fatalf("a lease that ran out has the reason %q, want %q", rec.Reason, umavez.ReasonKilled)
	}
	h := f.running(umavez.Opaque)
	f.answers("abandon without a reason", f.store.Abandon(f.Context(), h.Lease, "", nil), nil)
	if rec := f.is(h.ID, umavez.Lost); rec.Reason == "" {
		f.Fatalf("an abandoned record has no reason: %v", brief(rec))
	}
	own := f.running(umavez.Opaque)
	const reason = umavez.Reason("the operation's own: não sei")
	f.answers("abandon", f.store.Abandon(f.Context(), own.Lease, reason, nil), nil)
	if rec := f.get(own.ID); rec.Reason != reason {
		f.Fatalf("the reason became %q, want %q", rec.Reason, reason)
	}
}

func abandonForeign(f *fixture) {
	released := f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	stranger := f.running(umavez.Opaque).Lease
	stranger.Attempt = umavez.NewAttemptID()
	vacant := umavez.Lease{ID: f.key(), Attempt: umavez.NewAttemptID()}
	for _, l := range []umavez.Lease{stranger, released.Lease, vacant, f.done("a", kept()).Lease} {
		before := f.get(l.ID)
		f.answers("abandon", f.store.Abandon(f.Context(), l, umavez.ReasonPanic, []byte("x")), umavez.ErrLeaseLost)
		f.same("the record", f.get(l.ID), before)
	}
}

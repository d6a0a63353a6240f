package storetest

import (
	"fmt"
	"strings"

	"github.com/umavez/umavez"
)

// contradictRules say what an attempt is told whose outcome was settled.
var contradictRules = []rule{
	{
		name:  "settle/the owner learns of it",
		why:   "an attempt whose outcome was settled holds the key no more: none of its calls counts, and it answers from the record",
		check: settleOwnerLearns,
	},
	{
		name:  "settle/a late owner contradicts",
		why:   "an owner that says otherwise than it was settled is the one proof that somebody was charged wrongly: it is told ErrContradicted, and so is the record's reader",
		check: settleContradicted,
	},
	{
		name:  "settle/a late owner that agrees does not",
		why:   "who says the same as the settlement contradicts nobody; a false alarm teaches people not to look",
		check: settleAgrees,
	},
}

func settleOwnerLearns(f *fixture) {
	f.settler()
	for _, action := range []umavez.Action{umavez.ActionHappened, umavez.ActionCannotHappen} {
		for _, p := range []umavez.Policy{umavez.Opaque, umavez.Stepped} {
			h := f.abandoned(p)
			f.settled(h, settlement(action, h.Fence))
			before := f.get(h.ID)
			f.answers("extend", f.store.Extend(f.Context(), h.Lease, long), umavez.ErrLeaseLost)
			f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonReset, []byte("half")), umavez.ErrLeaseLost)
			f.answers("last word", f.store.Checkpoint(f.Context(), h.Lease, umavez.LastWord, []byte("half")), umavez.ErrLeaseLost)
			f.refused(h.ID, h.req)
			f.same("the record", f.get(h.ID), before)
		}
	}
}

// otherwise is what a late owner may say against a settlement.
type otherwise struct {
	settled umavez.Action
	says    string
	call    func(f *fixture, l umavez.Lease) error
}

var contradictions = []otherwise{
	{umavez.ActionHappened, "another answer", func(f *fixture, l umavez.Lease) error {
		return f.store.Complete(f.Context(), l, []byte("late"), kept())
	}},
	{umavez.ActionHappened, "nothing happened", func(f *fixture, l umavez.Lease) error { return f.store.Release(f.Context(), l) }},
	{umavez.ActionCannotHappen, "it happened", func(f *fixture, l umavez.Lease) error {
		return f.store.Complete(f.Context(), l, []byte("late"), kept())
	}},
	{umavez.ActionCannotHappen, "a step happened", func(f *fixture, l umavez.Lease) error {
		return f.store.Checkpoint(f.Context(), l, "avisar", []byte("v-1"))
	}},
}

func settleContradicted(f *fixture) {
	f.settler()
	for _, c := range contradictions {
		what := fmt.Sprintf("%s, settled as %s", c.says, c.settled)
		h := f.running(umavez.Stepped)
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
		f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonReset, nil), nil)
		f.settled(h, settlement(c.settled, h.Fence))
		want := f.get(h.ID)
		want.Contradicted = true
		for range 2 { // once told, always told, and noted once
			f.answers(what, c.call(f, h.Lease), umavez.ErrContradicted)
			f.same("the record that is contradicted", f.get(h.ID), want)
			f.contradictedOnce(h, 2)
		}
	}
	// The next attempt has the key by then. Its record says so, too.
	h := f.abandoned(umavez.Opaque)
	f.settled(h, settlement(umavez.ActionCannotHappen, h.Fence))
	next := f.claim(h.ID, f.request(umavez.Opaque))
	f.answers("complete by the settled attempt", f.store.Complete(f.Context(), h.Lease, []byte("late"), kept()), umavez.ErrContradicted)
	if rec := f.is(h.ID, umavez.Running); !rec.Contradicted || rec.Attempt != next.Attempt {
		f.Fatalf("the record is %v and contradicted %v, want it to run under the next attempt and to say so", brief(rec), rec.Contradicted)
	}
	f.contradictedOnce(h, 2)
	f.answers("complete by the next attempt", f.store.Complete(f.Context(), next.Lease, []byte("a"), kept()), nil)
	if rec := f.is(h.ID, umavez.Done); !rec.Contradicted || string(rec.Answer) != "a" {
		f.Fatalf("the record is %v and contradicted %v, want its own answer, and that", brief(rec), rec.Contradicted)
	}
}

// contradictedOnce checks that a trail has so many entries, of which the last
// one is a contradiction.
func (f *fixture) contradictedOnce(h held, entries int) {
	f.Helper()
	trail := f.trail(h.ID)
	last := umavez.AuditEntry{}
	if len(trail) > 0 {
		last = trail[len(trail)-1]
	}
	if len(trail) != entries || last.Action != umavez.ActionContradicted ||
		!strings.Contains(last.Who, h.Attempt.String()) || last.Why == "" {
		f.Fatalf("the audit trail is %+v, want %d entries of which the last one says how attempt %v contradicts", trail, entries, h.Attempt)
	}
}

func settleAgrees(f *fixture) {
	f.settler()
	happened, cannot := f.abandoned(umavez.Opaque), f.abandoned(umavez.Opaque)
	f.settled(happened, settlement(umavez.ActionHappened, happened.Fence))
	f.settled(cannot, settlement(umavez.ActionCannotHappen, cannot.Fence))
	f.answers("the answer that was settled", f.store.Complete(f.Context(), happened.Lease, []byte("settled"), kept()), umavez.ErrLeaseLost)
	f.answers("a step of what happened", f.store.Checkpoint(f.Context(), happened.Lease, "cobrar", []byte("c-1")), umavez.ErrLeaseLost)
	f.answers("release of what cannot happen", f.store.Release(f.Context(), cannot.Lease), nil)
	stranger := happened.Lease
	stranger.Attempt = umavez.NewAttemptID()
	f.answers("complete by a stranger", f.store.Complete(f.Context(), stranger, []byte("late"), kept()), umavez.ErrLeaseLost)
	for _, h := range []held{happened, cannot} {
		if rec := f.get(h.ID); rec.Contradicted {
			f.Fatalf("the record is called contradicted: %v", brief(rec))
		}
		if trail := f.trail(h.ID); len(trail) != 1 {
			f.Fatalf("the audit trail is %+v, want the settlement alone", trail)
		}
	}
}

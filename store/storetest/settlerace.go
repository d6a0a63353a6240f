package storetest

import (
	"errors"

	"github.com/umavez/umavez"
)

// settleRaceRules let those who settle meet each other, and the owner.
var settleRaceRules = []rule{
	{
		name:  "race/two settlers",
		why:   "of two who settle one record from the same listing exactly one is told yes, and the record and its trail are that one's alone",
		check: raceSettlers,
	},
	{
		name:  "race/settle against late complete",
		why:   "a late completion and a settlement exclude each other: either the owner's answer is saved and the settler learns that the record has moved, or the owner is told that it contradicts",
		check: raceSettleComplete,
	},
	{
		name:  "race/settle against takeover",
		why:   "a takeover and a settlement exclude each other: else the next attempt runs what was just settled as happened",
		check: raceSettleTakeover,
	},
	{
		name:  "race/hold by many",
		why:   "of all who want to look into one lost record exactly one holds it",
		check: raceHold,
	},
}

func raceSettlers(f *fixture) {
	f.settler()
	var made [2]umavez.Settlement
	var errs [2]error
	next := 0
	f.duel(
		func() held {
			h := f.abandoned(umavez.Opaque)
			pairs := [][2]umavez.Action{
				{umavez.ActionHappened, umavez.ActionHappened},
				{umavez.ActionHappened, umavez.ActionCannotHappen},
				{umavez.ActionCannotHappen, umavez.ActionPark},
			}
			for i, action := range pairs[next%len(pairs)] {
				made[i] = settlement(action, h.Fence)
				made[i].Who = []string{"ana", "rui"}[i]
			}
			next++
			return h
		},
		func(s umavez.Store, h held) { errs[0] = f.settlerOf(s).Settle(f.Context(), h.ID, made[0]) },
		func(s umavez.Store, h held) { errs[1] = f.settlerOf(s).Settle(f.Context(), h.ID, made[1]) },
		func(h held) { f.oneSettled(h, made, errs) },
	)
}

// oneSettled checks what has become of a record that two have settled at once. A
// record that was parked may be settled after it: then both are told yes.
func (f *fixture) oneSettled(h held, made [2]umavez.Settlement, errs [2]error) {
	f.Helper()
	trail := f.trail(h.ID)
	if errs[0] == nil && errs[1] == nil {
		if len(trail) != 2 || trail[0].Action != umavez.ActionPark {
			f.Fatalf("both settlers were told yes; the audit trail is %+v", trail)
		}
		return
	}
	winner := 0
	if errs[0] != nil {
		winner = 1
	}
	f.answers("the other's settlement", errs[1-winner], umavez.ErrMoved)
	f.answers("the settlement", errs[winner], nil)
	if len(trail) != 1 || trail[0].Who != made[winner].Who || trail[0].Action != made[winner].Action {
		f.Fatalf("%s was told yes; the audit trail is %+v", made[winner].Who, trail)
	}
	f.answers("the repeat", f.settler().Settle(f.Context(), h.ID, made[winner]), nil)
}

func raceSettleComplete(f *fixture) {
	f.settler()
	var s umavez.Settlement
	var settled, completed error
	f.duel(
		func() held {
			h := f.abandoned(umavez.Opaque)
			s = settlement(umavez.ActionHappened, h.Fence)
			return h
		},
		func(store umavez.Store, h held) { settled = f.settlerOf(store).Settle(f.Context(), h.ID, s) },
		func(store umavez.Store, h held) {
			completed = store.Complete(f.Context(), h.Lease, []byte("late"), kept())
		},
		func(h held) {
			rec, entries := f.is(h.ID, umavez.Done), len(f.trail(h.ID))
			owners := completed == nil && errors.Is(settled, umavez.ErrMoved) && string(rec.Answer) == "late" && entries == 0
			settlers := settled == nil && errors.Is(completed, umavez.ErrContradicted) && string(rec.Answer) == "settled" && entries == 2
			if owners == settlers {
				f.Fatalf("complete answered %v, settle %v; the record is %v, with %d entries", completed, settled, brief(rec), entries)
			}
		})
}

func raceSettleTakeover(f *fixture) {
	f.settler()
	var s umavez.Settlement
	var settled error
	var took reply
	f.duel(
		func() held {
			h := f.abandoned(umavez.Rerunnable)
			s = settlement(umavez.ActionHappened, h.Fence)
			return h
		},
		func(store umavez.Store, h held) { settled = f.settlerOf(store).Settle(f.Context(), h.ID, s) },
		func(store umavez.Store, h held) {
			took.rec, took.acquired, took.err = store.Claim(f.Context(), h.ID, h.over(h.Fence))
		},
		func(h held) {
			rec := f.get(h.ID)
			taken := took.acquired && errors.Is(settled, umavez.ErrMoved) && rec.State == umavez.Running
			done := !took.acquired && settled == nil && rec.State == umavez.Done && rec.Settled
			if took.err != nil || taken == done {
				f.Fatalf("settle answered %v, the takeover was acquired %v with error %v, and the record is %v", settled, took.acquired, took.err, brief(rec))
			}
		})
}

func raceHold(f *fixture) {
	f.settler()
	h, clients := f.abandoned(umavez.Opaque), f.clients()
	errs := make([]error, claimers)
	calls := make([]func(), claimers)
	for i := range calls {
		s := f.settlerOf(clients[i%len(clients)])
		calls[i] = func() { errs[i] = s.Hold(f.Context(), h.ID, h.Fence, umavez.NewAttemptID(), long) }
	}
	together(calls...)
	holders := 0
	for _, err := range errs {
		if err == nil {
			holders++
			continue
		}
		f.answers("hold", err, umavez.ErrHeld)
	}
	if holders != 1 {
		f.Fatalf("%d of %d hold the record, want exactly one", holders, claimers)
	}
}

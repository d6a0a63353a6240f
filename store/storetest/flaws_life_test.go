package storetest

import (
	"slices"

	"github.com/umavez/umavez"
)

// flaw is a way to build a store wrongly, and the rules that must find it.
type flaw struct {
	name   string
	bend   func() bend // a new one each time: some remember things
	breaks []string
}

// flaws returns the whole list, by what they are about.
func flaws() []flaw {
	return slices.Concat(
		claimFlaws, ownerFlaws, endFlaws, repeatFlaws, tellingFlaws, raceFlaws, keepingFlaws,
		holdFlaws, settleFlaws, lateFlaws, trailFlaws, unsettledFlaws, listFlaws, rewriteFlaws,
	)
}

// life is Next, and what replaces it.
type life = func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect)

// on is a bend whose life goes wrong on events of one kind.
func on(kind umavez.EventKind, wrong life) func() bend {
	return func() bend {
		return bend{next: func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if ev.Kind == kind {
				return wrong(row, now, ev)
			}
			return umavez.Next(row, now, ev)
		}}
	}
}

// after is a bend that spoils the rows that events of one kind lead to.
func after(kind umavez.EventKind, spoil func(before, row umavez.Row, now umavez.Instant, ev umavez.Event) umavez.Row) func() bend {
	return on(kind, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
		next, eff := umavez.Next(row, now, ev)
		if eff.Write && eff.Err == nil {
			next = spoil(row, next, now, ev)
		}
		return next, eff
	})
}

// asOwner makes an event count as the holder's, whoever sent it.
func asOwner(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
	ev.Attempt = row.Attempt
	return umavez.Next(row, now, ev)
}

// granted is a claim that ends as a takeover does, whatever Next says of it.
func granted(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
	row.Attempt, row.Ended, row.Last = ev.Attempt, "", nil
	row.Fence = max(row.Fence+1, umavez.Fence(now))
	row.Tries++
	row.Since, row.Until = now, now.Add(ev.Claim.Lease)
	return row, umavez.Effect{Write: true, Acquired: true}
}

// grants is a bend that also grants claims of running or lost rows for which when holds.
func grants(when func(row umavez.Row, now umavez.Instant, ev umavez.Event) bool) func() bend {
	return on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
		if row.Phase == umavez.PhaseRunning && row.Attempt != ev.Attempt && when(row, now, ev) {
			return granted(row, now, ev)
		}
		return umavez.Next(row, now, ev)
	})
}

func lostTo(row umavez.Row, now umavez.Instant, ev umavez.Event) bool {
	return row.State(now) == umavez.Lost && row.Fence == ev.Claim.TakeOver
}

// claimFlaws give keys to the wrong ones, or not to the right ones.
var claimFlaws = []flaw{
	{
		"a claim grants nothing", on(umavez.EventClaim, func(row umavez.Row, _ umavez.Instant, _ umavez.Event) (umavez.Row, umavez.Effect) {
			return row, umavez.Effect{}
		}),
		[]string{"claim/vacant key is granted"},
	},
	{
		"a claim is not repeatable", on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseRunning && row.Attempt == ev.Attempt {
				return row, umavez.Effect{}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{
			"claim/repeat is granted", "claim/repeat revives what ran out",
			"fault/claim/reply lost", "fault/claim/slow", "fault/repeated claim/reply lost", "fault/takeover/reply lost",
		},
	},
	{
		"a repeated claim leaves the lease", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			if before.Attempt == ev.Attempt {
				row.Until = before.Until
			}
			return row
		}),
		[]string{"claim/repeat sets the lease anew", "claim/repeat revives what ran out"},
	},
	{
		"a repeated claim shortens the lease", after(umavez.EventClaim, func(_, row umavez.Row, now umavez.Instant, ev umavez.Event) umavez.Row {
			row.Until = now.Add(ev.Claim.Lease)
			return row
		}),
		[]string{"claim/repeat never shortens"},
	},
	{
		"a repeated claim is a new claim", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			if before.Attempt == ev.Attempt {
				row.Fence, row.Tries = row.Fence+1, row.Tries+1
			}
			return row
		}),
		[]string{"claim/repeat is granted", "claim/repeat revives what ran out", "fence/stays otherwise"},
	},
	{
		"a late claim revives an abandoned record", on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseRunning && row.Attempt == ev.Attempt {
				row.Ended = ""
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"claim/repeat after abandon is refused"},
	},
	{
		"a live key is given away", grants(func(row umavez.Row, _ umavez.Instant, ev umavez.Event) bool {
			return row.Fence == ev.Claim.TakeOver && row.Policy.TakesOver()
		}),
		[]string{"claim/live key is refused to others"},
	},
	{
		"a done key is claimed again", on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseDone {
				row = umavez.Row{Fence: row.Fence}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"claim/done key answers", "claim/own done key answers too", "retention/then a tombstone refuses"},
	},
	{
		"an opaque record is taken over", grants(lostTo),
		[]string{"takeover/opaque never", "takeover/policy of the record"},
	},
	{
		"a lost record is given to whoever comes", grants(func(row umavez.Row, now umavez.Instant, _ umavez.Event) bool {
			return row.State(now) == umavez.Lost && row.Policy.TakesOver()
		}),
		[]string{"takeover/exact fence", "takeover/same fingerprint"},
	},
	{
		"a lost record is never taken over", on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Lost && row.Attempt != ev.Attempt {
				return row, umavez.Effect{}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"takeover/lost record is granted", "takeover/abandoned record is granted", "takeover/tries are counted"},
	},
	{
		"a parked record is taken over", grants(func(row umavez.Row, now umavez.Instant, ev umavez.Event) bool {
			return lostTo(row, now, ev) && row.Policy.TakesOver() && row.Fingerprint == ev.Claim.Fingerprint
		}),
		[]string{"takeover/parked never"},
	},
	{
		"the claimer's policy decides on a takeover", grants(func(row umavez.Row, now umavez.Instant, ev umavez.Event) bool {
			return lostTo(row, now, ev) && ev.Claim.Policy.TakesOver() && row.Fingerprint == ev.Claim.Fingerprint
		}),
		[]string{"takeover/policy of the record"},
	},
	{
		"another request takes over", grants(func(row umavez.Row, now umavez.Instant, ev umavez.Event) bool {
			return lostTo(row, now, ev) && row.Policy.TakesOver()
		}),
		[]string{"takeover/same fingerprint"},
	},
	{
		"a takeover keeps what the claimer said", after(umavez.EventClaim, func(_, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			row.Policy, row.Route, row.Request = ev.Claim.Policy, ev.Claim.Route, ev.Claim.Request
			return row
		}),
		[]string{"takeover/lost record is granted", "takeover/policy of the record", "claim/repeat is granted"},
	},
	{
		"a takeover forgets the steps", after(umavez.EventClaim, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Steps = nil
			return row
		}),
		[]string{"takeover/lost record is granted"},
	},
	{
		"a takeover keeps the last word", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Last = before.Last
			return row
		}),
		[]string{"takeover/takes the last word away"},
	},
	{
		"the fence falls after a release", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			switch { // a counter in a row that a release deletes
			case before.Phase == umavez.PhaseVacant:
				row.Fence = 1
			case before.Attempt != ev.Attempt:
				row.Fence = before.Fence + 1
			}
			return row
		}),
		[]string{"fence/rises with every claim", "fence/follows the store's clock", "model/random sequences"},
	},
	{
		"the fence is a counter that goes with its row", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			if before.Attempt != ev.Attempt {
				row.Fence = before.Fence + 1
			}
			return row
		}),
		[]string{"fence/rises through purge", "fence/follows the store's clock"},
	},
	{
		"the fence is the clock's alone", after(umavez.EventClaim, func(_, row umavez.Row, now umavez.Instant, _ umavez.Event) umavez.Row {
			row.Fence = umavez.Fence(now)
			return row
		}),
		[]string{"fence/rises with every claim"},
	},
}

// ownerFlaws let those count who do not hold the key.
var ownerFlaws = []flaw{
	{
		"a heartbeat extends the thief's lease", on(umavez.EventExtend, asOwner),
		[]string{"extend/not of this attempt", "takeover/old owner is out"},
	},
	{
		"a completion ignores the attempt", on(umavez.EventComplete, asOwner),
		[]string{"complete/not of this attempt", "takeover/old owner is out", "complete/repeat after retention"},
	},
	{
		"a completion needs no record", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseVacant {
				row = umavez.Row{Phase: umavez.PhaseRunning, Attempt: ev.Attempt}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"complete/not of this attempt"},
	},
	{
		"a release ignores the attempt", on(umavez.EventRelease, asOwner),
		[]string{"release/not of this attempt"},
	},
	{
		"an abandon ignores the attempt", on(umavez.EventAbandon, asOwner),
		[]string{"abandon/not of this attempt"},
	},
	{
		"a checkpoint ignores the attempt", on(umavez.EventCheckpoint, asOwner),
		[]string{"checkpoint/not of this attempt", "takeover/old owner is out"},
	},
	{
		"a done record takes notes", on(umavez.EventCheckpoint, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseDone {
				return row, umavez.Effect{}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"complete/done bars every other call", "checkpoint/not of this attempt"},
	},
}

package storetest

import (
	"slices"

	"github.com/umavez/umavez"
)

// onSettle is a bend whose life goes wrong on settlements of one kind.
func onSettle(action umavez.Action, wrong life) func() bend {
	return on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
		if ev.Action == action {
			return wrong(row, now, ev)
		}
		return umavez.Next(row, now, ev)
	})
}

// afterSettle is a bend that spoils the rows that settlements of one kind lead to.
func afterSettle(action umavez.Action, spoil func(before, row umavez.Row, now umavez.Instant, ev umavez.Event) umavez.Row) func() bend {
	return after(umavez.EventSettle, func(before, row umavez.Row, now umavez.Instant, ev umavez.Event) umavez.Row {
		if ev.Action == action {
			return spoil(before, row, now, ev)
		}
		return row
	})
}

// holdFlaws let look whom they should not, or not whom they should.
var holdFlaws = []flaw{
	{
		"everybody holds", on(umavez.EventHold, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			row.HeldUntil = 0
			return umavez.Next(row, now, ev)
		}),
		[]string{"hold/one looker at a time", "race/hold by many"},
	},
	{
		"nobody is told of a hold", told(func(rec umavez.Record, _ umavez.Row) umavez.Record {
			rec.HeldLeft = 0
			return rec
		}),
		append(faultsOf("hold", "hold anew"), "hold/one looker at a time"),
	},
	{
		"a hold that is over still keeps others away", on(umavez.EventHold, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Lost && row.Holder != ev.Attempt && row.HeldUntil != 0 && row.HeldUntil <= now && now != row.Until {
				return row, umavez.Effect{Err: umavez.ErrHeld}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"hold/ends by itself"},
	},
	{
		"a hold is not repeatable", on(umavez.EventHold, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Holder == ev.Attempt && now < row.HeldUntil {
				return row, umavez.Effect{Err: umavez.ErrHeld}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"hold/the holder holds it anew", "fault/hold/reply lost", "fault/hold/slow"},
	},
	{
		"a hold only grows", after(umavez.EventHold, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.HeldUntil = max(row.HeldUntil, before.HeldUntil)
			return row
		}),
		[]string{"hold/the holder holds it anew"},
	},
	{
		"any fence holds", on(umavez.EventHold, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			ev.Fence = row.Fence
			return umavez.Next(row, now, ev)
		}),
		[]string{"hold/lost records alone", "hold/goes with the lost attempt"},
	},
	{
		"a parked record is held", on(umavez.EventHold, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Ended == umavez.ReasonParked && row.Fence == ev.Fence {
				row.HeldUntil = now.Add(ev.For)
				return row, umavez.Effect{Write: true}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"hold/lost records alone"},
	},
	{
		"a held record is nobody else's", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Lost && now < row.HeldUntil {
				return row, umavez.Effect{Err: umavez.ErrLeaseLost}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"hold/touches neither attempt nor lease"},
	},
	{
		"a hold is a claim", after(umavez.EventHold, func(_, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			row.Attempt = ev.Attempt
			return row
		}),
		[]string{"hold/touches neither attempt nor lease"},
	},
	{
		"a hold outlives its attempt", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Holder, row.HeldUntil = before.Holder, before.HeldUntil
			return row
		}),
		[]string{"hold/goes with the lost attempt"},
	},
}

// settleFlaws settle what they should not, or otherwise than they were told.
var settleFlaws = []flaw{
	{
		"a settled answer is the operation's", afterSettle(umavez.ActionHappened, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Settled = false
			return row
		}),
		append(faultsOf("settle as happened", "settle what is held"), "settle/happened makes the record done"),
	},
	{
		"a settled answer stands for ever", afterSettle(umavez.ActionHappened, func(_, row umavez.Row, now umavez.Instant, _ umavez.Event) umavez.Row {
			row.Until = now.Add(100 * long)
			return row
		}),
		[]string{"settle/happened makes the record done"},
	},
	{
		"the settled attempt is not barred", afterSettle(umavez.ActionCannotHappen, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Attempt = umavez.AttemptID{}
			return row
		}),
		[]string{"settle/cannot happen makes the key vacant", "settle/the owner learns of it"},
	},
	{
		"what cannot happen never was", afterSettle(umavez.ActionCannotHappen, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Fence = 0
			return row
		}),
		[]string{"settle/cannot happen makes the key vacant"},
	},
	{
		"what cannot happen stays lost", onSettle(umavez.ActionCannotHappen, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			next, eff := umavez.Next(row, now, ev)
			if eff.Write {
				next.Phase, next.Ended, next.Until = umavez.PhaseRunning, umavez.ReasonSettled, now
			}
			return next, eff
		}),
		append(faultsOf("settle as what cannot happen"), "settle/cannot happen makes the key vacant"),
	},
	{
		"what cannot happen has no steps", onSettle(umavez.ActionCannotHappen, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			next, eff := umavez.Next(row, now, ev)
			next.Steps = nil
			return next, eff
		}),
		append(faultsOf("settle what holds a step"), "settle/cannot happen keeps what did happen"),
	},
	{
		"the settled attempt keeps its steps' record", afterSettle(umavez.ActionCannotHappen, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			if row.Phase == umavez.PhaseRunning {
				row.Attempt = before.Attempt
			}
			return row
		}),
		[]string{"settle/cannot happen keeps what did happen"},
	},
	{
		"a step in doubt is still in doubt when it cannot happen", afterSettle(umavez.ActionCannotHappen, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Ended = before.Ended
			return row
		}),
		[]string{"settle/cannot happen keeps what did happen"},
	},
	{
		"proof leaves no record", onSettle(umavez.ActionCannotHappen, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if ev.For == 0 && row.State(now) == umavez.Lost && row.Fence == ev.Fence && len(row.Steps) == 0 {
				row.Policy = umavez.Opaque
			}
			return umavez.Next(row, now, ev)
		}),
		append(faultsOf("settle by proof"), "settle/proof keeps a stepped record"),
	},
	{
		"proof makes time begin anew", afterSettle(umavez.ActionCannotHappen, func(_, row umavez.Row, now umavez.Instant, _ umavez.Event) umavez.Row {
			row.Claimed = now
			return row
		}),
		[]string{"settle/proof keeps a stepped record"},
	},
	{
		"a quiet time makes no time begin anew", afterSettle(umavez.ActionCannotHappen, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Claimed = before.Claimed
			return row
		}),
		[]string{"settle/proof keeps a stepped record"},
	},
	{
		"nobody waits until it is quiet", onSettle(umavez.ActionCannotHappen, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			ev.For = 0
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/not before it is quiet"},
	},
	{
		"the quiet time counts from the claim", onSettle(umavez.ActionCannotHappen, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if now >= row.Claimed.Add(ev.For) {
				ev.For = min(ev.For, now.Sub(row.Until))
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/not before it is quiet"},
	},
	{
		"every verdict waits until it is quiet", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Lost && now < row.Until.Add(ev.For) {
				return row, umavez.Effect{Err: umavez.ErrNotQuiet}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/not before it is quiet"},
	},
	{
		"it is never quiet in time", onSettle(umavez.ActionCannotHappen, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Lost && ev.For > 0 && now == row.Until.Add(ev.For) {
				return row, umavez.Effect{Err: umavez.ErrNotQuiet}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/not before it is quiet"},
	},
	{
		"what is parked is taken over", grants(func(row umavez.Row, now umavez.Instant, ev umavez.Event) bool {
			return row.Ended == umavez.ReasonParked && lostTo(row, now, ev) && row.Policy.TakesOver()
		}),
		[]string{"settle/parked is taken over by nobody"},
	},
	{
		"what is parked is its owner's no more", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Ended == umavez.ReasonParked {
				return row, umavez.Effect{Err: umavez.ErrLeaseLost}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/parked is taken over by nobody", "restart/settlements survive"},
	},
	{
		"what is parked is still held", afterSettle(umavez.ActionPark, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.HeldUntil = before.HeldUntil
			return row
		}),
		[]string{"settle/parked is taken over by nobody"},
	},
	{
		"a park changes nothing", afterSettle(umavez.ActionPark, func(before, _ umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row { return before }),
		append(faultsOf("park"), "settle/parked is taken over by nobody", "trail/purged in the end"),
	},
	{
		"forgetting frees the key", afterSettle(umavez.ActionForget, func(_, row umavez.Row, now umavez.Instant, _ umavez.Event) umavez.Row {
			row.Gone = now
			return row
		}),
		append(faultsOf("forget"), "settle/forgotten leaves a tombstone"),
	},
	{
		"forgetting shortens the tombstone", afterSettle(umavez.ActionForget, func(_, row umavez.Row, now umavez.Instant, ev umavez.Event) umavez.Row {
			row.Gone = now.Add(ev.Keep.Tombstone)
			return row
		}),
		[]string{"settle/forgotten leaves a tombstone"},
	},
	{
		"forgetting leaves the tombstone", afterSettle(umavez.ActionForget, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Gone = before.Gone
			return row
		}),
		[]string{"settle/forgotten leaves a tombstone"},
	},
	{
		"the answer is not forgotten", afterSettle(umavez.ActionForget, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Answer, row.Until = before.Answer, before.Until
			return row
		}),
		append(faultsOf("forget"), "settle/forgotten leaves a tombstone"),
	},
	{
		"any fence settles", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			ev.Fence = row.Fence
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/only what was looked at", "trail/belongs to its record"},
	},
	{
		"what runs is settled", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if ended := row; row.State(now) == umavez.Running {
				ended.Until = now
				if next, eff := umavez.Next(ended, now, ev); eff.Write {
					return next, eff
				}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/only what was looked at"},
	},
	{
		"what is lost is forgotten", onSettle(umavez.ActionForget, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Lost && row.Fence == ev.Fence {
				row.Phase, row.Gone = umavez.PhaseDone, now.Add(long)
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/only what was looked at"},
	},
}

// repeatedSettlement reports whether a settlement may be one that stands.
func repeatedSettlement(row umavez.Row, ev umavez.Event) bool {
	return row.Holder == ev.Attempt && row.Holder != umavez.AttemptID{}
}

// lateFlaws are of stores that do not know their settlements again, nor those
// who were settled.
var lateFlaws = []flaw{
	{
		"a settlement is not repeatable", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if repeatedSettlement(row, ev) {
				return row, umavez.Effect{Err: umavez.ErrMoved}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/repeat is a no-op", "fault/settle as happened/reply lost", "fault/park/slow", "restart/settlements survive", "race/two settlers"},
	},
	{
		"a repeated settlement is noted again", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			next, eff := umavez.Next(row, now, ev)
			if repeatedSettlement(row, ev) && eff.Err == nil {
				eff.Audit = &umavez.AuditEntry{Action: ev.Action, Who: ev.Who, Why: ev.Why}
			}
			return next, eff
		}),
		[]string{"settle/repeat is a no-op", "fault/settle as happened/reply lost", "fault/park/slow"},
	},
	{
		"an equal settlement is the same one", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Holder != (umavez.AttemptID{}) && (row.Settled || row.Phase == umavez.PhaseVacant) && ev.Action != umavez.ActionForget {
				ev.Attempt = row.Holder
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/repeat is a no-op", "race/two settlers"},
	},
	{
		"whoever was settled is told yes", func() bend {
			return bend{next: func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
				if row.Overruled == ev.Attempt && row.Overruled != (umavez.AttemptID{}) && ev.Kind == umavez.EventAbandon {
					return row, umavez.Effect{}
				}
				return umavez.Next(row, now, ev)
			}}
		},
		[]string{"settle/the owner learns of it"},
	},
	{
		"nobody is told that he contradicts", bentAnswers(func(_ umavez.Row, eff umavez.Effect) umavez.Effect {
			if eff.Err == umavez.ErrContradicted { //nolint:errorlint // Next returns it as it is
				eff.Err = umavez.ErrLeaseLost
			}
			return eff
		}),
		append(faultsOf("contradicting complete", "contradicting checkpoint", "contradicting release"),
			"settle/a late owner contradicts", "race/settle against late complete"),
	},
	{
		"a contradiction is told once", bentAnswers(func(before umavez.Row, eff umavez.Effect) umavez.Effect {
			if before.Contradicted && eff.Err == umavez.ErrContradicted { //nolint:errorlint // Next returns it as it is
				eff.Err = umavez.ErrLeaseLost
			}
			return eff
		}),
		[]string{"settle/a late owner contradicts", "fault/contradicting complete/reply lost"},
	},
	{
		"a contradiction is not noted", bentAnswers(func(_ umavez.Row, eff umavez.Effect) umavez.Effect {
			if eff.Err != nil {
				eff.Audit = nil
			}
			return eff
		}),
		append(faultsOf("contradicting complete"), "settle/a late owner contradicts", "race/settle against late complete"),
	},
	{
		"a contradiction is noted each time", func() bend {
			return bend{next: func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
				if ev.Kind <= umavez.EventExtend && ev.Kind != umavez.EventClaim && row.Overruled == ev.Attempt {
					again := row
					again.Contradicted = false
					if next, eff := umavez.Next(again, now, ev); eff.Audit != nil {
						return next, eff
					}
				}
				return umavez.Next(row, now, ev)
			}}
		},
		[]string{"settle/a late owner contradicts", "fault/contradicting release/slow"},
	},
	{
		"the next attempt's record forgets who was settled", after(umavez.EventClaim, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Overruled = umavez.AttemptID{}
			return row
		}),
		[]string{"settle/a late owner contradicts"},
	},
	{
		"a completion forgets the contradiction", after(umavez.EventComplete, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			if before.Phase == umavez.PhaseRunning && row.Phase == umavez.PhaseDone {
				row.Contradicted = false
			}
			return row
		}),
		[]string{"settle/a late owner contradicts"},
	},
	{
		"every late owner contradicts", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Settled && row.Overruled == ev.Attempt {
				ev.Payload = append(slices.Clone(ev.Payload), '.')
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/a late owner that agrees does not"},
	},
	{
		"strangers contradict", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Settled {
				ev.Attempt = row.Overruled
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"settle/a late owner that agrees does not"},
	},
}

// bentAnswers is a bend that spoils what Next says of an event of the owner's.
func bentAnswers(spoil func(before umavez.Row, eff umavez.Effect) umavez.Effect) func() bend {
	return func() bend {
		return bend{next: func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			next, eff := umavez.Next(row, now, ev)
			if ev.Kind <= umavez.EventExtend {
				eff = spoil(row, eff)
			}
			return next, eff
		}}
	}
}

package storetest

import "github.com/umavez/umavez"

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
		"who wants it for longer holds it", on(umavez.EventHold, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.HeldUntil < now.Add(ev.For) {
				row.HeldUntil = 0
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"hold/one looker at a time"},
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
		"what was settled as happened keeps its steps", afterSettle(umavez.ActionHappened, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Steps = before.Steps
			return row
		}),
		[]string{"settle/happened makes the record done"},
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
		"tries count on when it cannot happen", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			if before.Phase == umavez.PhaseVacant && before.Overruled != (umavez.AttemptID{}) {
				row.Tries++
			}
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

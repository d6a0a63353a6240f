package storetest

import (
	"slices"

	"github.com/umavez/umavez"
)

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
		"a repeated settlement slides", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			next, eff := umavez.Next(row, now, ev)
			if repeatedSettlement(row, ev) && ev.Action == umavez.ActionHappened && eff.Err == nil {
				next.Until, eff.Write = now.Add(ev.Keep.Retain), true
			}
			return next, eff
		}),
		[]string{"settle/repeat is a no-op"},
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

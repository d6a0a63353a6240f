package storetest

import "github.com/umavez/umavez"

// endFlaws end attempts wrongly.
var endFlaws = []flaw{
	{
		"a release bars nobody", after(umavez.EventRelease, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Attempt = umavez.AttemptID{}
			return row
		}),
		[]string{
			"release/bars its attempt", "release/bars an attempt it never saw", "release/bars on a key past its tombstone",
			"purge/leaves a released attempt barred", "restart/records live on",
		},
	},
	{
		"a release bars only whom it saw", on(umavez.EventRelease, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Vacant {
				return row, umavez.Effect{}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"release/bars an attempt it never saw", "release/bars on a key past its tombstone"},
	},
	{
		"a release without a record is refused", on(umavez.EventRelease, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Vacant && row.Attempt != ev.Attempt {
				return row, umavez.Effect{Err: umavez.ErrLeaseLost}
			}
			return umavez.Next(row, now, ev)
		}),
		append(faultsOf("release without a record"), "release/bars an attempt it never saw"),
	},
	{
		"a release is not repeatable", on(umavez.EventRelease, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseVacant && row.Attempt == ev.Attempt {
				return row, umavez.Effect{Err: umavez.ErrLeaseLost}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"release/repeat is answered yes", "fault/release/reply lost", "fault/release/slow"},
	},
	{
		"a release forgets the steps", on(umavez.EventRelease, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			row.Steps = nil
			return umavez.Next(row, now, ev)
		}),
		[]string{"release/not with a step kept"},
	},
	{
		"a release undoes an abandon", on(umavez.EventRelease, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			row.Ended = ""
			return umavez.Next(row, now, ev)
		}),
		[]string{"release/not after abandon"},
	},
	{
		"a release leaves the record to the next claim", after(umavez.EventRelease, func(before, row umavez.Row, now umavez.Instant, _ umavez.Event) umavez.Row {
			if before.Phase == umavez.PhaseRunning {
				before.Attempt, before.Until = umavez.AttemptID{}, now
				return before
			}
			return row
		}),
		append(faultsOf("release"), "release/makes the key vacant", "race/release against its own claim"),
	},
	{
		"what is late is refused", func() bend {
			return bend{next: func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
				if row.State(now) == umavez.Lost && ev.Kind != umavez.EventClaim && ev.Kind != umavez.EventAbandon {
					return row, umavez.Effect{Err: umavez.ErrLeaseLost}
				}
				return umavez.Next(row, now, ev)
			}}
		},
		[]string{"complete/late counts", "release/late is a release", "extend/revives what ran out", "checkpoint/late is kept"},
	},
	{
		"what is late is not abandoned", on(umavez.EventAbandon, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.State(now) == umavez.Lost {
				return row, umavez.Effect{}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"abandon/of what ran out"},
	},
	{
		"a heartbeat revives what was abandoned", on(umavez.EventExtend, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			row.Ended = ""
			return umavez.Next(row, now, ev)
		}),
		[]string{"abandon/no heartbeat revives it"},
	},
	{
		"a heartbeat sets the lease", after(umavez.EventExtend, func(_, row umavez.Row, now umavez.Instant, ev umavez.Event) umavez.Row {
			row.Until = now.Add(ev.For)
			return row
		}),
		[]string{"extend/never shortens"},
	},
	{
		"a heartbeat does nothing", after(umavez.EventExtend, func(before, _ umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row { return before }),
		[]string{"extend/moves the end away", "extend/revives what ran out"},
	},
	{
		"an abandon waits for the lease", after(umavez.EventAbandon, func(before, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Until, row.Ended = before.Until, ""
			return row
		}),
		[]string{"abandon/ends the lease now", "abandon/says killed when nobody said why"},
	},
	{
		"the last abandon stands", on(umavez.EventAbandon, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			row.Ended = ""
			return umavez.Next(row, now, ev)
		}),
		[]string{"abandon/repeat is a no-op"},
	},
	{
		"an abandon with nil clears the last word", after(umavez.EventAbandon, func(_, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			row.Last = ev.Payload
			return row
		}),
		[]string{"abandon/nil leaves the last word"},
	},
	{
		"an empty last word is none", after(umavez.EventAbandon, func(before, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			if len(ev.Payload) == 0 {
				row.Last = before.Last
			}
			return row
		}),
		[]string{"abandon/nil leaves the last word"},
	},
	{
		"a note outlives the end", on(umavez.EventCheckpoint, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if ev.Step == umavez.LastWord && row.Ended != "" {
				row.Last = ev.Payload
				return row, umavez.Effect{Write: true}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"checkpoint/last word after abandon is refused"},
	},
	{
		"the last word is kept as a step", on(umavez.EventCheckpoint, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if ev.Step == umavez.LastWord {
				ev.Step = "last"
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"checkpoint/last word is noted"},
	},
	{
		"the first note stands", on(umavez.EventCheckpoint, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if ev.Step == umavez.LastWord && row.Last != nil {
				return row, umavez.Effect{}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"checkpoint/last word is noted"},
	},
}

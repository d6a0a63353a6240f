package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/umavez/umavez"
)

// faultsOf names the rules that send a call into each fault.
func faultsOf(calls ...string) (names []string) {
	for _, call := range calls {
		for _, fault := range []string{"refused", "not applied", "reply lost", "cut off", "slow", "given up and late"} {
			names = append(names, "fault/"+call+"/"+fault)
		}
	}
	return names
}

// repeatFlaws are of stores that do a thing twice when they are told twice.
var repeatFlaws = []flaw{
	{
		"a repeated checkpoint is refused", on(umavez.EventCheckpoint, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if slices.ContainsFunc(row.Steps, func(s umavez.KeptStep) bool { return s.Name == ev.Step }) {
				return row, umavez.Effect{Err: umavez.ErrStepKept}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"checkpoint/same result again is a no-op", "fault/checkpoint/reply lost"},
	},
	{
		"a repeated checkpoint is kept twice", on(umavez.EventCheckpoint, func(row umavez.Row, _ umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			row.Steps = append(slices.Clip(row.Steps), umavez.KeptStep{Name: ev.Step, Result: ev.Payload})
			return row, umavez.Effect{Write: true}
		}),
		[]string{"checkpoint/same result again is a no-op", "checkpoint/first result stands", "fault/checkpoint/slow"},
	},
	{
		"the last result of a step stands", on(umavez.EventCheckpoint, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			row.Steps = slices.DeleteFunc(slices.Clone(row.Steps), func(s umavez.KeptStep) bool { return s.Name == ev.Step })
			return umavez.Next(row, now, ev)
		}),
		[]string{"checkpoint/first result stands"},
	},
	{
		"a repeated completion is refused", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseDone {
				return row, umavez.Effect{Err: umavez.ErrLeaseLost}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{
			"complete/repeat is answered yes", "complete/repeat after retention", "purge/leaves tombstones and answers",
			"fault/complete/reply lost", "fault/late complete/reply lost",
		},
	},
	{
		"the last answer stands", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseDone && row.Attempt == ev.Attempt {
				row.Phase = umavez.PhaseRunning
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"complete/first answer stands", "complete/repeat does not slide", "complete/done bars every other call", "race/two answers"},
	},
	{
		"another answer of the same attempt is a repeat", on(umavez.EventComplete, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if row.Phase == umavez.PhaseDone && row.Attempt == ev.Attempt {
				return row, umavez.Effect{}
			}
			return umavez.Next(row, now, ev)
		}),
		[]string{"complete/first answer stands", "race/two answers"},
	},
	{
		"every write is a try", func() bend {
			return bend{keep: func(row umavez.Row) umavez.Row {
				row.Tries++
				return row
			}}
		},
		append(faultsOf("claim", "repeated claim", "takeover", "checkpoint", "last word", "complete", "late complete", "abandon", "extend",
			"claim under a bound", "resume", "hold", "hold anew", "settle as happened", "settle by proof", "settle what holds a step",
			"settle what is held", "park", "forget", "contradicting checkpoint", "contradicting release"),
			"claim/vacant key is granted", "takeover/tries are counted", "retention/then the key is vacant", "complete/makes the record done"),
	},
}

// told is a bend that is wrong in what it tells.
func told(wrong func(rec umavez.Record, row umavez.Row) umavez.Record) func() bend {
	return func() bend { return bend{tell: wrong} }
}

// written is a bend that spoils what it writes.
func written(spoil func(row umavez.Row) umavez.Row) func() bend {
	return func() bend { return bend{keep: spoil} }
}

// tellingFlaws keep or tell something else than they were given.
var tellingFlaws = []flaw{
	{
		"bytes are kept as text", written(func(row umavez.Row) umavez.Row {
			row.Answer = bytes.ToValidUTF8(row.Answer, []byte("\ufffd"))
			row.Request = bytes.TrimRight(row.Request, " ")
			return row
		}),
		[]string{"record/bytes come back as they went in"},
	},
	{
		"results end at a zero", written(func(row umavez.Row) umavez.Row {
			for i, s := range row.Steps {
				row.Steps[i].Result, _, _ = bytes.Cut(s.Result, []byte{0})
			}
			return row
		}),
		[]string{"checkpoint/keeps results in order", "record/bytes come back as they went in"},
	},
	{
		"step names are folded", on(umavez.EventCheckpoint, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			ev.Step = strings.ToLower(strings.TrimSpace(ev.Step))
			return umavez.Next(row, now, ev)
		}),
		[]string{"checkpoint/names are exact"},
	},
	{
		"routes are cut", written(func(row umavez.Row) umavez.Row {
			row.Route = row.Route[:min(len(row.Route), 64)]
			return row
		}),
		[]string{"record/route and fingerprint come back whole"},
	},
	{
		"a fingerprint's parts are kept as signed numbers", written(func(row umavez.Row) umavez.Row {
			for i, p := range row.Fingerprint.Parts {
				row.Fingerprint.Parts[i] = min(p, 1<<31-1)
			}
			return row
		}),
		[]string{"record/route and fingerprint come back whole", "claim/vacant key is granted"},
	},
	{
		"a lease is kept in seconds", written(func(row umavez.Row) umavez.Row {
			row.Until = (row.Until + 999_999) / 1_000_000 * 1_000_000
			return row
		}),
		[]string{"record/microseconds"},
	},
	{
		"the client's clock decides", func() bend { return bend{now: time.Now} },
		[]string{"record/the store's clock decides", "record/durations are true", "fence/follows the store's clock"},
	},
	{
		"a loss counts from the last claim", told(func(rec umavez.Record, row umavez.Row) umavez.Record {
			if rec.State == umavez.Lost {
				rec.Since = rec.Age
			}
			return rec
		}),
		[]string{"record/durations are true"},
	},
	{
		"a Get of a vacant key makes a record", told(func(rec umavez.Record, row umavez.Row) umavez.Record {
			if row.Phase == umavez.PhaseVacant {
				rec.State = umavez.Expired
			}
			return rec
		}),
		[]string{"record/vacant keys are vacant", "release/makes the key vacant"},
	},
	{
		"unfinished records end with time", func() bend {
			return bend{next: func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
				return umavez.Next(vanish(row, now), now, ev)
			}}
		},
		[]string{"retention/running and lost keys have none"},
	},
	{
		"retention counts from the claim", after(umavez.EventComplete, func(before, row umavez.Row, now umavez.Instant, ev umavez.Event) umavez.Row {
			if before.Phase == umavez.PhaseRunning {
				row.Until = before.Claimed.Add(ev.Keep.Retain)
			}
			return row
		}),
		[]string{"retention/counts from the completion"},
	},
	{
		"there are no tombstones", after(umavez.EventComplete, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Gone = row.Until
			return row
		}),
		[]string{"retention/then a tombstone refuses", "complete/repeat after retention"},
	},
	{
		"a tombstone stands for ever", after(umavez.EventComplete, func(_, row umavez.Row, now umavez.Instant, _ umavez.Event) umavez.Row {
			row.Gone = now.Add(100 * long)
			return row
		}),
		[]string{"retention/then the key is vacant"},
	},
}

// vanish forgets an unfinished row a day after its lease.
func vanish(row umavez.Row, now umavez.Instant) umavez.Row {
	if row.Phase == umavez.PhaseRunning && now > row.Until.Add(24*time.Hour) {
		return umavez.Row{}
	}
	return row
}

// keepingFlaws lose or mix up what is in their care.
var keepingFlaws = []flaw{
	{
		"keys are folded", func() bend {
			return bend{fold: func(id umavez.ID) umavez.ID {
				for i, b := range id {
					if b >= 'A' && b <= 'Z' {
						id[i] = b + 'a' - 'A'
					}
				}
				return id
			}}
		},
		[]string{"key/distinct IDs never meet"},
	},
	{
		"keys are cut in half", func() bend {
			return bend{fold: func(id umavez.ID) umavez.ID {
				clear(id[16:])
				return id
			}}
		},
		[]string{"key/distinct IDs never meet"},
	},
	{
		"keys end at a zero", func() bend {
			return bend{fold: func(id umavez.ID) umavez.ID {
				if i := bytes.IndexByte(id[:], 0); i >= 0 {
					clear(id[i:])
				}
				return id
			}}
		},
		[]string{"key/distinct IDs never meet"},
	},
	{
		// Fewer values than the rule has keys, so that two of them must meet.
		"keys are told apart by four bits", func() bend {
			return bend{fold: func(id umavez.ID) umavez.ID { return umavez.ID{id[0] & 15} }}
		},
		[]string{"key/distinct keys never meet"},
	},
	{
		"errors are bare", func() bend {
			return bend{over: func(string, func() error) error { return errors.New("broken pipe") }}
		},
		[]string{"cancel/failures are StoreErrors"},
	},
	{
		"no means perhaps", func() bend {
			return bend{over: func(op string, do func() error) error {
				_ = do()
				return &umavez.StoreError{Op: op, Applied: umavez.No, Err: context.Canceled}
			}}
		},
		[]string{"cancel/no means no"},
	},
	{
		"a restart forgets everything", func() bend {
			return bend{reopen: func(d *bentData) {
				clear(d.rows)
				clear(d.settings)
			}}
		},
		[]string{"restart/every record survives", "restart/settings survive"},
	},
	{
		"a restart forgets who was barred", func() bend {
			return bend{reopen: func(d *bentData) {
				for id, row := range d.rows {
					if row.Phase == umavez.PhaseVacant {
						delete(d.rows, id)
					}
				}
			}}
		},
		[]string{"restart/records live on"},
	},
	{
		"a peer has data of its own", func() bend {
			return bend{peer: func(*bent) umavez.Store { return newBent(bend{}) }}
		},
		[]string{"peer/sees what was written", "race/vacant key"},
	},
	{
		"a purge takes what is unfinished", func() bend {
			return bend{purge: func(row umavez.Row, now umavez.Instant) (umavez.Row, bool) {
				row = vanish(row, now)
				return row.Purge(now)
			}}
		},
		[]string{"purge/never a running or lost record"},
	},
	{
		"a purge takes tombstones", func() bend {
			return bend{purge: func(row umavez.Row, now umavez.Instant) (umavez.Row, bool) {
				row.Gone = row.Until
				return row.Purge(now)
			}}
		},
		[]string{"purge/leaves tombstones and answers"},
	},
	{
		"a purge takes released rows at once", func() bend {
			return bend{purge: func(row umavez.Row, now umavez.Instant) (umavez.Row, bool) {
				if row.Phase == umavez.PhaseVacant {
					return row, false
				}
				return row.Purge(now)
			}}
		},
		[]string{"purge/leaves a released attempt barred"},
	},
	{
		"a purge leaves released rows", func() bend {
			return bend{purge: func(row umavez.Row, now umavez.Instant) (umavez.Row, bool) {
				if row.Phase == umavez.PhaseVacant {
					return row, true
				}
				return row.Purge(now)
			}}
		},
		[]string{"purge/drops released rows in the end"},
	},
	{
		"a purge drops nothing", func() bend {
			return bend{purge: func(row umavez.Row, _ umavez.Instant) (umavez.Row, bool) { return row, true }}
		},
		[]string{"purge/drops what is over", "fence/rises through purge"},
	},
	{
		"a purge never ends", func() bend {
			return bend{count: func(_, limit int) int { return limit }}
		},
		[]string{"purge/drops what is over"},
	},
	{
		"the last proposal is kept", func() bend {
			return bend{settle: func(_ umavez.Settings, _ bool, propose umavez.Settings) umavez.Settings { return propose }}
		},
		[]string{"settings/first proposal is kept", "settings/accept changes the recipe alone"},
	},
	{
		"namespaces are folded", func() bend { return bend{space: strings.ToLower} },
		[]string{"settings/namespaces are apart"},
	},
	{
		"accepting a recipe draws a new key", func() bend {
			return bend{accept: func(_ umavez.Settings, _ bool, recipe string) (umavez.Settings, error) {
				fresh := proposal()
				fresh.Recipe = recipe
				return fresh, nil
			}}
		},
		[]string{"settings/accept changes the recipe alone", "settings/accept needs a row"},
	},
}

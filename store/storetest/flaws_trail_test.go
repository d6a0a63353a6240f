package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/umavez/umavez"
)

// lastEntry is a bend that spoils each entry of a trail as it is written.
func lastEntry(spoil func(e *umavez.AuditEntry)) func() bend {
	return settlingBend(func() bentSettling {
		return bentSettling{audit: func(trail []noted) []noted {
			spoil(&trail[len(trail)-1].entry)
			return trail
		}}
	})
}

// trailFlaws forget, or remember otherwise.
var trailFlaws = []flaw{
	{
		"there is no trail", settlingBend(func() bentSettling {
			return bentSettling{audit: func(trail []noted) []noted { return trail[:len(trail)-1] }}
		}),
		append(faultsOf("settle as what cannot happen", "contradicting complete"), "trail/tells of every change", "race/two settlers"),
	},
	{
		"the latest entry is the first", settlingBend(func() bentSettling {
			return bentSettling{recall: func(_ *bent, _ umavez.ID, trail []umavez.AuditEntry) []umavez.AuditEntry {
				slices.Reverse(trail)
				return trail
			}}
		}),
		[]string{"trail/tells of every change", "settle/a late owner contradicts"},
	},
	{
		"nobody knows when", settlingBend(func() bentSettling {
			return bentSettling{recall: func(_ *bent, _ umavez.ID, trail []umavez.AuditEntry) []umavez.AuditEntry {
				for i := range trail {
					trail[i].Ago = 0
				}
				return trail
			}}
		}),
		[]string{"trail/tells of every change"},
	},
	{
		"an entry does not say where the record stood", lastEntry(func(e *umavez.AuditEntry) { e.Before, e.BeforeReason = e.After, e.AfterReason }),
		[]string{"trail/tells of every change"},
	},
	{
		"an entry does not say why it was lost", lastEntry(func(e *umavez.AuditEntry) { e.BeforeReason = "" }),
		[]string{"trail/tells of every change"},
	},
	{
		"names are cut", lastEntry(func(e *umavez.AuditEntry) { e.Who = e.Who[:min(len(e.Who), 64)] }),
		[]string{"trail/words come back as they went in"},
	},
	{
		"reasons are trimmed", lastEntry(func(e *umavez.AuditEntry) { e.Why = strings.TrimSpace(e.Why) }),
		[]string{"trail/words come back as they went in"},
	},
	{
		"all keys share a trail", settlingBend(func() bentSettling {
			return bentSettling{trailOf: func(umavez.ID) umavez.ID { return umavez.ID{} }}
		}),
		[]string{"trail/belongs to its record"},
	},
	{
		"a key without a record has everybody's trail", settlingBend(func() bentSettling {
			return bentSettling{recall: func(s *bent, id umavez.ID, trail []umavez.AuditEntry) []umavez.AuditEntry {
				if _, known := s.rows[id]; known || len(trail) > 0 {
					return trail
				}
				for _, other := range s.trails {
					for _, n := range other {
						trail = append(trail, n.entry)
					}
				}
				return trail
			}}
		}),
		[]string{"trail/belongs to its record"},
	},
	{
		"a refused settlement is noted", on(umavez.EventSettle, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			next, eff := umavez.Next(row, now, ev)
			if eff.Err != nil {
				eff.Audit = &umavez.AuditEntry{Action: ev.Action, Who: ev.Who, Why: ev.Why, Fence: row.Fence}
			}
			return next, eff
		}),
		[]string{"trail/belongs to its record", "settle/only what was looked at", "settle/not before it is quiet"},
	},
	{
		"a purge takes entries after a year", settlingBend(func() bentSettling {
			return bentSettling{stale: func(n noted, now umavez.Instant) bool { return now >= n.at.Add(365*24*time.Hour) }}
		}),
		[]string{"trail/outlives its record"},
	},
	{
		"a new life of the key has a new trail", func() bend {
			return bend{then: func(s *bent, id umavez.ID, ev umavez.Event) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if ev.Kind == umavez.EventClaim && s.rows[id].Tries == 1 {
					delete(s.trails, id)
				}
			}}
		},
		[]string{"trail/outlives its record", "trail/tells of every change"},
	},
	{
		"entries stay for ever", settlingBend(func() bentSettling {
			return bentSettling{stale: func(noted, umavez.Instant) bool { return false }}
		}),
		[]string{"trail/purged in the end"},
	},
	{
		"a restart forgets the trails", func() bend { return bend{reopen: func(d *bentData) { clear(d.trails) }} },
		[]string{"restart/settlements survive"},
	},
	{
		"a restart forgets who holds, and who was settled", func() bend {
			return bend{reopen: func(d *bentData) {
				for id, row := range d.rows {
					row.Holder, row.HeldUntil, row.Overruled = umavez.AttemptID{}, 0, umavez.AttemptID{}
					d.rows[id] = row
				}
			}}
		},
		[]string{"restart/settlements survive"},
	},
}

package storetest

import (
	"sync"
	"time"

	"github.com/umavez/umavez"
)

// counting is a bend that counts other rows of a scope than it should.
func counting(whose func(row umavez.Row, scope umavez.ScopeID) bool) func() bend {
	return settlingBend(func() bentSettling { return bentSettling{whose: whose} })
}

// unsettledFlaws count wrongly, or whom they should not.
var unsettledFlaws = []flaw{
	{
		"a scope may have one more", settlingBend(func() bentSettling {
			return bentSettling{many: func(n int) int { return n - 1 }}
		}),
		[]string{"unsettled/vacant keys are bounded"},
	},
	{
		"what is lost is not counted", counting(func(row umavez.Row, scope umavez.ScopeID) bool {
			return row.Phase == umavez.PhaseRunning && row.Ended == "" && row.Scope == scope
		}),
		[]string{"unsettled/vacant keys are bounded", "unsettled/what has ended makes room"},
	},
	{
		"what was claimed without a bound is not counted", func() bend {
			free := map[umavez.AttemptID]bool{}
			return bend{
				next: func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
					if ev.Kind == umavez.EventClaim && ev.Claim.MaxUnsettled == 0 {
						free[ev.Attempt] = true
					}
					return umavez.Next(row, now, ev)
				},
				bentSettling: bentSettling{whose: func(row umavez.Row, scope umavez.ScopeID) bool {
					return row.Phase == umavez.PhaseRunning && row.Scope == scope && !free[row.Attempt]
				}},
			}
		},
		[]string{"unsettled/vacant keys are bounded"},
	},
	{
		"what was settled is counted", counting(func(row umavez.Row, scope umavez.ScopeID) bool {
			return (row.Phase == umavez.PhaseRunning || row.Settled) && row.Scope == scope
		}),
		[]string{"unsettled/what has ended makes room"},
	},
	{
		"what is done is counted", counting(func(row umavez.Row, scope umavez.ScopeID) bool {
			return row.Phase != umavez.PhaseVacant && row.Scope == scope
		}),
		[]string{"unsettled/what has ended makes room"},
	},
	{
		"all scopes are counted", counting(func(row umavez.Row, _ umavez.ScopeID) bool { return row.Phase == umavez.PhaseRunning }),
		[]string{"unsettled/vacant keys are bounded", "unsettled/what has ended makes room"},
	},
	{
		"a bound is for every claim", on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			if most := ev.Claim.MaxUnsettled; most > 0 && ev.Unsettled >= most {
				return row, umavez.Effect{Err: umavez.ErrTooManyUnsettled}
			}
			return umavez.Next(row, now, ev)
		}),
		append([]string{"unsettled/bars nothing but new keys"}, "fault/claim under a bound/reply lost", "fault/claim under a bound/slow"),
	},
	{
		"a claim beyond the bound bars its attempt", on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			next, eff := umavez.Next(row, now, ev)
			if eff.Err != nil {
				next.Attempt, next.Until, eff.Write = ev.Attempt, now.Add(long), true
			}
			return next, eff
		}),
		[]string{"unsettled/vacant keys are bounded"},
	},
	{
		"a claim is counted when it is written", func() bend { return bend{between: crowd(30)} },
		[]string{"unsettled/bounded for all clients"},
	},
	{
		"a peer counts nothing", func() bend {
			return bend{peer: func(s *bent) umavez.Store {
				return &bent{s.bentData, bend{bentSettling: bentSettling{many: func(int) int { return 0 }}}}
			}}
		},
		[]string{"unsettled/bounded for all clients"},
	},
	{
		"who resumes may claim", on(umavez.EventClaim, func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect) {
			req := *ev.Claim
			req.Resume, ev.Claim = false, &req
			return umavez.Next(row, now, ev)
		}),
		[]string{"claim/resume claims nothing vacant", "unsettled/bars nothing but new keys"},
	},
	{
		"a takeover makes a record the claimer's", after(umavez.EventClaim, func(before, row umavez.Row, _ umavez.Instant, ev umavez.Event) umavez.Row {
			if before.Attempt != ev.Attempt {
				row.Namespace, row.Scope = ev.Claim.Namespace, ev.Claim.Scope
			}
			return row
		}),
		[]string{"claim/whose it is stays with the record"},
	},
	{
		"labels are of what is unfinished", after(umavez.EventComplete, func(_, row umavez.Row, _ umavez.Instant, _ umavez.Event) umavez.Row {
			row.Label = ""
			return row
		}),
		[]string{"claim/whose it is stays with the record"},
	},
}

// crowd lets claims wait, between reading and writing, until so many have read.
func crowd(many int) func(umavez.ID, umavez.EventKind) {
	var mu sync.Mutex
	full := make(chan struct{})
	return func(_ umavez.ID, kind umavez.EventKind) {
		if kind != umavez.EventClaim {
			return
		}
		mu.Lock()
		if many--; many == 0 {
			close(full)
		}
		mu.Unlock()
		moment := time.NewTimer(patience)
		defer moment.Stop()
		select {
		case <-full:
		case <-moment.C:
		}
	}
}

package umavez

import (
	"bytes"
	"fmt"
	"strings"
)

// This file is the part of life.go that is for those outside an operation: who
// holds a lost record, who settles it, and the late owner who says otherwise.

// hold gives a lost row to one looker for a time. It touches neither attempt
// nor lease: a late owner completes all the same. Where nobody's outcome is in
// doubt, or somebody has set the row aside, there is nothing to look into; the
// row's Holder is the settlement then.
func (row Row) hold(now Instant, ev Event) (Row, Effect) {
	if row.State(now) != Lost || row.Fence != ev.Fence || row.cleared() || row.Ended == ReasonParked {
		return row, Effect{Err: ErrMoved}
	}
	if row.Holder != ev.Attempt && now < row.HeldUntil {
		return row, Effect{Err: ErrHeld}
	}
	row.Holder, row.HeldUntil = ev.Attempt, now.Add(ev.For)
	return row, Effect{Write: true}
}

// settle ends a row by outside knowledge, or sets it aside. Its Holder is then
// the settlement, so that its repeat is known.
func (row Row) settle(now Instant, ev Event) (Row, Effect) {
	state := row.State(now)
	switch {
	case row.Fence == 0:
		return row, Effect{Err: ErrMoved}
	case row.settledSo(now, ev):
		return row, Effect{}
	case row.Fence != ev.Fence:
		return row, Effect{Err: ErrMoved}
	case ev.Action == ActionForget && (state == Done || state == Expired):
		return row.audited(now, ev, row.forgotten(now, ev))
	case state != Lost || ev.Action == ActionForget:
		return row, Effect{Err: ErrMoved}
	}
	switch ev.Action {
	case ActionHappened:
		next := row.done(now, ev)
		next.Settled = true
		return row.audited(now, ev, row.overrule(next, ev))
	case ActionCannotHappen:
		if now < row.Until.Add(ev.For) {
			return row, Effect{Err: ErrNotQuiet}
		}
		return row.audited(now, ev, row.overrule(row.undone(now, ev), ev))
	case ActionPark:
		if row.Ended == ReasonParked {
			return row, Effect{Err: ErrMoved} // somebody else has done it
		}
		next := row
		next.Ended, next.Until = ReasonParked, min(row.Until, now)
		next.Holder, next.HeldUntil = ev.Attempt, 0
		return row.audited(now, ev, next)
	}
	return row, Effect{Err: errorf("settlement with an action that does not exist: %q", string(ev.Action))}
}

// settledSo reports whether the row stands where this very settlement led. No
// attempt has come between: a claim takes the settlement's name away.
func (row Row) settledSo(now Instant, ev Event) bool {
	if row.Holder != ev.Attempt || row.Holder == (AttemptID{}) {
		return false
	}
	if ev.Action == ActionCannotHappen && row.cleared() {
		return row.Ended == ReasonSettled && row.Fence > ev.Fence
	}
	if row.Fence != ev.Fence {
		return false
	}
	switch ev.Action {
	case ActionHappened:
		return row.Settled && row.State(now) != Vacant
	case ActionCannotHappen:
		return row.Phase == PhaseVacant
	case ActionPark:
		return row.Ended == ReasonParked
	case ActionForget:
		return row.Phase == PhaseDone && row.State(now) == Expired
	}
	return false
}

// cleared: the row is lost, and of nobody's attempt. Whoever had it was settled
// as one that cannot happen any more.
func (row Row) cleared() bool { return row.Phase == PhaseRunning && row.Attempt == (AttemptID{}) }

// undone is the row of an operation that cannot happen any more: vacant, unless
// the next attempt has to know what was before.
//
// Steps that are kept did happen, so the next attempt resumes after them. Notes
// that a step was about to be sent go: it will not happen by that sending. When
// that is so because time has passed, the time in which derived keys are honoured
// begins anew. When it is so by proof, the proof may be that the derived key is
// honoured; then the time goes on, and a stepped row stays for its sake alone.
//
// The fence rises, so that nobody settles the row once more by what was seen
// before.
func (row Row) undone(now Instant, ev Event) Row {
	var kept []KeptStep
	for _, s := range row.Steps {
		if !strings.HasPrefix(s.Name, sentMark) {
			kept = append(kept, s)
		}
	}
	byProof := ev.For == 0
	if len(kept) == 0 && (!byProof || row.Policy != Stepped) {
		barred := row.Attempt
		if row.cleared() {
			barred = row.Overruled
		}
		return row.vacated(now, barred)
	}
	next := row
	next.Steps, next.Last = kept, nil
	next.Attempt, next.Ended = AttemptID{}, ReasonSettled
	next.Fence = row.nextFence(now)
	next.Until, next.HeldUntil = now, 0
	if !byProof {
		next.Claimed = now
	}
	return next
}

// overrule notes in next which settlement it comes of, and whose outcome that
// settles, unless it is of nobody's attempt.
func (row Row) overrule(next Row, ev Event) Row {
	next.Holder = ev.Attempt
	if !row.cleared() {
		next.Overruled, next.Contradicted = row.Attempt, false
	}
	return next
}

// forgotten is a done row without what it holds: a tombstone, which stands at
// least as long as the row would have.
func (row Row) forgotten(now Instant, ev Event) Row {
	row.Answer, row.Label = nil, ""
	row.Until = min(row.Until, now)
	row.Gone = max(row.Gone, now.Add(ev.Keep.Tombstone))
	row.Holder = ev.Attempt
	return row
}

// audited is the effect of a change by somebody outside, with its entry.
func (row Row) audited(now Instant, ev Event, next Row) (Row, Effect) {
	entry := row.entry(now, next)
	entry.Action, entry.Who, entry.Why = ev.Action, ev.Who, ev.Why
	return next, Effect{Write: true, Audit: entry}
}

func (row Row) entry(now Instant, next Row) *AuditEntry {
	before, after := row.Record(now), next.Record(now)
	return &AuditEntry{
		Fence: row.Fence, Before: before.State, BeforeReason: before.Reason,
		After: after.State, AfterReason: after.Reason,
	}
}

// contradicted answers an attempt whose outcome was settled by others, if what
// it says now is not what they said. ok is false when it is not contradicted.
// Only the first time changes the row.
func (row Row) contradicted(now Instant, ev Event) (next Row, eff Effect, ok bool) {
	if row.Overruled == (AttemptID{}) || row.Overruled != ev.Attempt {
		return row, Effect{}, false
	}
	if _, keep := row.Purge(now); !keep {
		return row, Effect{}, false // a purge that came earlier would leave nothing to go by
	}
	says := row.contradiction(now, ev)
	if says == "" {
		return row, Effect{}, false
	}
	eff.Err = ErrContradicted
	if !row.Contradicted {
		row.Contradicted = true
		entry := row.entry(now, row)
		entry.Action, entry.Who, entry.Why = ActionContradicted, "attempt "+ev.Attempt.String(), says
		eff.Write, eff.Audit = true, entry
	}
	return row, eff, true
}

// contradiction is what the overruled attempt says against its settlement, or
// empty.
func (row Row) contradiction(now Instant, ev Event) string {
	happened := row.Phase == PhaseDone && row.Settled
	switch ev.Kind {
	case EventComplete:
		if !happened {
			return "it has completed, and was settled as one that cannot happen"
		}
		if row.State(now) == Done && !bytes.Equal(row.Answer, ev.Payload) { // later, the answer may be gone
			return "it has completed with another answer than it was settled with"
		}
	case EventCheckpoint:
		if happened || ev.Step == LastWord || strings.HasPrefix(ev.Step, sentMark) {
			return ""
		}
		if kept := row.step(ev.Step); row.cleared() && kept != nil && bytes.Equal(kept.Result, ev.Payload) {
			return "" // it was kept before, and is kept still
		}
		return fmt.Sprintf("its step %q has happened, and it was settled as one that cannot happen", ev.Step)
	case EventRelease:
		if happened {
			return "nothing happened, and it was settled as one that happened"
		}
	}
	return ""
}

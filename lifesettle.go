package umavez

import (
	"bytes"
	"fmt"
	"strings"
)

// This file is the part of life.go that is for those outside an operation: who
// holds a lost record, who settles it, and the late owner who says otherwise.

// hold gives a lost row to one looker for a time. It touches neither attempt
// nor lease: a late owner completes all the same.
func (row Row) hold(now Instant, ev Event) (Row, Effect) {
	if row.State(now) != Lost || row.Fence != ev.Fence {
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
	if row.Fence == 0 || row.Fence != ev.Fence {
		return row, Effect{Err: ErrMoved}
	}
	if row.settledSo(ev) {
		return row, Effect{}
	}
	if ev.Action == ActionForget {
		if state != Done && state != Expired {
			return row, Effect{Err: ErrMoved}
		}
		return row.audited(now, ev, row.forgotten(now, ev))
	}
	if state != Lost {
		return row, Effect{Err: ErrMoved}
	}
	switch ev.Action {
	case ActionHappened:
		next := row.done(now, ev)
		next.Settled, next.Overruled, next.Holder = true, row.Attempt, ev.Attempt
		return row.audited(now, ev, next)
	case ActionCannotHappen:
		if now < row.Until.Add(ev.For) {
			return row, Effect{Err: ErrNotQuiet}
		}
		return row.audited(now, ev, row.cleared(now, ev))
	case ActionPark:
		next := row
		next.Ended, next.Until = ReasonParked, min(row.Until, now)
		next.Holder, next.HeldUntil = ev.Attempt, 0
		return row.audited(now, ev, next)
	}
	return row, Effect{Err: errorf("settlement with an action that does not exist: %q", string(ev.Action))}
}

// settledSo reports whether the row stands where this very settlement led. The
// fence tells that no attempt has come between.
func (row Row) settledSo(ev Event) bool {
	if row.Holder != ev.Attempt {
		return false
	}
	switch ev.Action {
	case ActionHappened:
		return row.Phase == PhaseDone && row.Settled
	case ActionCannotHappen:
		return row.Phase == PhaseVacant || row.Ended == ReasonSettled
	case ActionPark:
		return row.Ended == ReasonParked
	case ActionForget:
		return row.Phase == PhaseDone && row.Answer == nil
	}
	return false
}

// cleared is the row of an operation that cannot happen any more. It is vacant,
// unless it holds steps: those did happen, so the next attempt resumes after
// them, and may send again what was in doubt. Its time begins anew, since what
// was in doubt before is so no more.
func (row Row) cleared(now Instant, ev Event) Row {
	var kept []KeptStep
	for _, s := range row.Steps {
		if !strings.HasPrefix(s.Name, sentMark) {
			kept = append(kept, s)
		}
	}
	next := row.vacated(now, row.Attempt)
	if len(kept) > 0 {
		next = row
		next.Steps, next.Last = kept, nil
		next.Attempt, next.Ended = AttemptID{}, ReasonSettled
		next.Claimed, next.Until, next.HeldUntil = now, now, 0
	}
	next.Overruled, next.Holder = row.Attempt, ev.Attempt
	return next
}

// forgotten is a done row without its answer: a tombstone.
func (row Row) forgotten(now Instant, ev Event) Row {
	row.Answer = nil
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
		Fence: row.Fence, Before: before.State, BeforeWhy: before.Reason,
		After: after.State, AfterWhy: after.Reason,
	}
}

// contradicted answers an attempt whose outcome was settled by others, if what
// it says now is not what they said. ok is false when it is not contradicted.
func (row Row) contradicted(now Instant, ev Event) (next Row, eff Effect, ok bool) {
	if row.Overruled == (AttemptID{}) || row.Overruled != ev.Attempt {
		return row, Effect{}, false
	}
	happened := row.Phase == PhaseDone && row.Settled
	says := ""
	switch {
	case ev.Kind == EventComplete && !happened:
		says = "it has completed, and was settled as one that cannot happen"
	case ev.Kind == EventComplete && row.Answer != nil && !bytes.Equal(row.Answer, ev.Payload):
		says = "it has completed with another answer than it was settled with"
	case ev.Kind == EventCheckpoint && ev.Step != LastWord && !strings.HasPrefix(ev.Step, sentMark) && !happened:
		says = fmt.Sprintf("its step %q has happened, and it was settled as one that cannot happen", ev.Step)
	case ev.Kind == EventRelease && happened:
		says = "nothing happened, and it was settled as one that happened"
	default:
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

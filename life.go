package umavez

import (
	"bytes"
	"time"
)

// This file is the life of a key: one pure function, Next, over what a store
// keeps for a key, without a clock, a goroutine or I/O.
//
//	            claim                     complete
//	  vacant ───────────▶ running ───────────────────────▶ done ──▶ expired ──▶ vacant
//	     ▲                 │   ▲                             ▲
//	     │     release     │   │ claim (take over)           │ settle: it happened
//	     ├─────────────────┘   │                             │ (or: completes late)
//	     │ settle: it cannot   └──────── lost ───────────────┘
//	     └── happen any more ──────────
//
// What cannot happen any more but holds kept steps stays lost, and so does what
// is parked. What is forgotten goes from done to expired.
//
// lifesettle.go is the part of it for those outside an operation.
//
// memstore and sqlitestore run it as it stands. Every other store is held
// against it by storetest. TestLife goes through every event in every state,
// and TestLifeKeepsItsPromises searches all that can come of a few attempts.

// EventKind names a transition.
type EventKind uint8

// The transitions. Claim to Extend are the calls of [Store]; Hold and Settle are
// those of [Settler].
const (
	EventClaim EventKind = iota
	EventCheckpoint
	EventComplete
	EventRelease
	EventAbandon
	EventExtend
	EventHold
	EventSettle
)

// Event is one call on a key, as data. Each kind reads the fields named after it.
type Event struct {
	Kind EventKind
	// Attempt is whose call it is: of Hold, the holder's; of Settle, the
	// settlement's own name.
	Attempt AttemptID

	Claim *ClaimRequest // Claim
	// Unsettled is how many running and lost records the scope of a Claim has,
	// as the store counts them. Read when the request bounds them.
	Unsettled int
	Step      string // Checkpoint
	// Payload is the step's result (Checkpoint), the answer (Complete, Settle),
	// or the last word (Abandon).
	Payload []byte
	Reason  Reason        // Abandon
	For     time.Duration // Extend: the lease; Hold: how long; Settle: the quiet time
	Keep    Retention     // Complete, Settle
	Fence   Fence         // Hold, Settle: what was looked at
	Action  Action        // Settle
	Who     string        // Settle
	Why     string        // Settle
}

// Effect is what a transition asks of the store.
type Effect struct {
	// Write: the row has changed and must be written before Err is answered.
	Write bool
	// Acquired is the answer to a claim.
	Acquired bool
	// Audit goes into the record's audit trail, in the same write. Nil: nothing.
	Audit *AuditEntry
	// Err is the answer to the caller.
	Err error
}

// Next applies an event to a row at an instant of the store's clock. When the
// effect says Write, next replaces row; otherwise next equals row. Repeating an
// event, as callers do after a lost reply, gives the same answer again.
func Next(row Row, now Instant, ev Event) (next Row, eff Effect) {
	switch ev.Kind {
	case EventClaim:
		return row.claim(now, ev)
	case EventRelease:
		if next, eff, ok := row.contradicted(now, ev); ok {
			return next, eff
		}
		return row.release(now, ev)
	case EventHold:
		return row.hold(now, ev)
	case EventSettle:
		return row.settle(now, ev)
	}
	if next, eff, ok := row.contradicted(now, ev); ok {
		return next, eff
	}
	if ev.Kind == EventComplete && row.Phase == PhaseDone {
		return row.completeAgain(now, ev)
	}
	// What is left is the owner's: it counts while the row carries its
	// attempt, lease or no lease. Expiry permits a takeover; it revokes nothing.
	// A row of nobody's attempt has no owner, not even one without a name.
	if row.Phase != PhaseRunning || row.Attempt != ev.Attempt || row.cleared() {
		return row, Effect{Err: ErrLeaseLost}
	}
	switch ev.Kind {
	case EventCheckpoint:
		return row.checkpoint(ev)
	case EventComplete:
		return row.done(now, ev), Effect{Write: true}
	case EventAbandon:
		return row.abandon(now, ev)
	case EventExtend:
		return row.extend(now, ev)
	}
	return row, Effect{Err: errorf("event of unknown kind %d", ev.Kind)}
}

// claim grants a vacant key, or a lost one whose own policy lets the next
// attempt take it over. An attempt that holds the row already is granted again,
// with its lease set anew.
func (row Row) claim(now Instant, ev Event) (Row, Effect) {
	req := ev.Claim
	switch row.State(now) {
	case Vacant:
		if row.Phase == PhaseVacant && row.Attempt == ev.Attempt {
			return row, Effect{} // it was released, and this claim comes late
		}
		switch {
		case req.Resume:
			return row, Effect{} // what it would resume is not there any more
		case req.MaxUnsettled > 0 && ev.Unsettled >= req.MaxUnsettled:
			return row, Effect{Err: ErrTooManyUnsettled}
		}
		row = row.remembered(now, Row{
			Phase: PhaseRunning, Policy: req.Policy,
			Namespace: req.Namespace, Scope: req.Scope, Route: req.Route, Label: req.Label,
			Fingerprint: req.Fingerprint, Request: req.Request,
			Fence: row.Fence, Claimed: now,
		})
	case Running, Lost:
		if row.Attempt == ev.Attempt {
			if row.Ended != "" {
				return row, Effect{}
			}
			row.Until = max(row.Until, now.Add(req.Lease))
			return row, Effect{Write: true, Acquired: true}
		}
		if !row.mayTakeOver(now, req) {
			return row, Effect{}
		}
		// What was known of the lost attempt goes with it, and so does the hold
		// of whoever was looking into it: that looker saw another fence.
		row.Ended, row.Last = "", nil
		row.Holder, row.HeldUntil = AttemptID{}, 0
	case Done, Expired:
		return row, Effect{}
	}
	row.Attempt = ev.Attempt
	row.Fence = row.nextFence(now)
	row.Tries++
	row.Since = now
	row.Until = now.Add(req.Lease)
	return row, Effect{Write: true, Acquired: true}
}

// nextFence is one more than before, or the clock where that is ahead, so that it
// rises also when the row was purged in between.
func (row Row) nextFence(now Instant) Fence { return max(row.Fence+1, Fence(now)) }

// mayTakeOver: the claimer saw this very attempt lost, the policy under which
// the lost attempt ran allows it and its reason does not forbid it, and it is the
// same request.
func (row Row) mayTakeOver(now Instant, req *ClaimRequest) bool {
	return row.State(now) == Lost && !row.Ended.Parks() && req.TakeOver == row.Fence && row.Fence != 0 &&
		row.Policy.TakesOver() && row.Fingerprint == req.Fingerprint
}

// checkpoint keeps a step's result, or notes the last word.
func (row Row) checkpoint(ev Event) (Row, Effect) {
	if ev.Step == LastWord {
		if row.Ended != "" {
			return row, Effect{Err: ErrLeaseLost} // a note that comes after the end
		}
		row.Last = ev.Payload
		return row, Effect{Write: true}
	}
	if kept := row.step(ev.Step); kept != nil {
		if bytes.Equal(kept.Result, ev.Payload) {
			return row, Effect{}
		}
		return row, Effect{Err: ErrStepKept}
	}
	steps := make([]KeptStep, len(row.Steps), len(row.Steps)+1)
	copy(steps, row.Steps)
	row.Steps = append(steps, KeptStep{Name: ev.Step, Result: ev.Payload})
	return row, Effect{Write: true}
}

// step is what the row keeps of a step, or nil.
func (row Row) step(name string) *KeptStep {
	for i := range row.Steps {
		if row.Steps[i].Name == name {
			return &row.Steps[i]
		}
	}
	return nil
}

// done keeps the answer and drops what only an unfinished operation needs.
func (row Row) done(now Instant, ev Event) Row {
	return Row{
		Phase: PhaseDone, Policy: row.Policy, Tries: row.Tries,
		Namespace: row.Namespace, Scope: row.Scope, Route: row.Route, Label: row.Label,
		Attempt: row.Attempt, Fingerprint: row.Fingerprint, Fence: row.Fence,
		Overruled: row.Overruled, Contradicted: row.Contradicted,
		Claimed: row.Claimed, Since: now,
		Until:  now.Add(ev.Keep.Retain),
		Gone:   now.Add(ev.Keep.Retain).Add(ev.Keep.Tombstone),
		Answer: ev.Payload,
	}
}

// completeAgain answers the repeat of a completion: yes when it is the one that
// stands. A done answer never changes. After its retention the answer may be
// gone, and the attempt alone decides.
func (row Row) completeAgain(now Instant, ev Event) (Row, Effect) {
	same := now >= row.Until || bytes.Equal(row.Answer, ev.Payload)
	if row.Attempt == ev.Attempt && !row.Settled && same {
		return row, Effect{}
	}
	return row, Effect{Err: ErrLeaseLost}
}

// release makes the key vacant again: nothing happened. It also bars the
// attempt, so that a claim still on its way cannot leave a running row that
// nobody runs.
func (row Row) release(now Instant, ev Event) (Row, Effect) {
	switch row.Phase {
	case PhaseVacant:
		if row.Attempt == ev.Attempt {
			return row, Effect{}
		}
	case PhaseRunning:
		if row.Attempt != ev.Attempt || row.Ended != "" {
			return row, Effect{Err: ErrLeaseLost}
		}
		// An attempt may vouch for itself that it did nothing, and not for one that
		// was lost before it; the record alone knows of that one.
		if len(row.Steps) > 0 || row.Tries > 1 {
			return row, Effect{Err: ErrHasSteps}
		}
	case PhaseDone:
		// A done row past its tombstone is a vacant key, purged or not, so that
		// what a release bars does not depend on when the store was purged.
		if row.State(now) != Vacant {
			return row, Effect{Err: ErrLeaseLost}
		}
	}
	return row.vacated(now, ev.Attempt), Effect{Write: true}
}

func (row Row) vacated(now Instant, barred AttemptID) Row {
	return row.remembered(now, Row{
		Phase: PhaseVacant, Attempt: barred, Fence: row.Fence,
		Since: now, Until: now.Add(ReleasedKept),
	})
}

// remembered hands on whose outcome was settled to a new life of the key, for as
// long as the row that says so would stay without one.
func (row Row) remembered(now Instant, next Row) Row {
	if _, keep := row.Purge(now); keep {
		next.Overruled, next.Contradicted = row.Overruled, row.Contradicted
	}
	return next
}

// abandon ends the lease now. The row still carries the attempt: a late
// completion counts.
func (row Row) abandon(now Instant, ev Event) (Row, Effect) {
	if row.Ended != "" {
		return row, Effect{}
	}
	row.Ended = ev.Reason
	if row.Ended == "" {
		row.Ended = ReasonError
	}
	// Also when the lease was over: until this moment its owner was at work, and
	// may have sent something just now. The loss counts from here.
	row.Until = now
	if ev.Payload != nil {
		row.Last = ev.Payload
	}
	return row, Effect{Write: true}
}

// extend moves the end of the lease away, never nearer. A heartbeat that comes
// after its owner abandoned the lease revives nothing.
func (row Row) extend(now Instant, ev Event) (Row, Effect) {
	if row.Ended != "" {
		return row, Effect{Err: ErrLeaseLost}
	}
	row.Until = max(row.Until, now.Add(ev.For))
	return row, Effect{Write: true}
}

package umavez

import (
	"context"
	"time"
)

// Action names what somebody outside an operation does to its record.
type Action string

// The actions. They are also the names under which the audit trail keeps them.
const (
	// ActionHappened: the lost operation happened, with this answer. The record
	// is done.
	ActionHappened Action = "happened"
	// ActionCannotHappen: the lost operation did not happen and cannot happen
	// any more. The key is vacant again. A record that holds kept steps stays, of
	// nobody's attempt and with a fence of its own, and the next attempt resumes
	// after them. So does a stepped one that is settled by proof.
	ActionCannotHappen Action = "cannot-happen"
	// ActionPark: nobody shall take the lost record over. It is unknown until it
	// is settled.
	ActionPark Action = "park"
	// ActionForget: the answer of a done record goes, and a tombstone stays.
	ActionForget Action = "forget"
	// ActionContradicted is no settlement: an attempt whose outcome was settled
	// came back and says otherwise. It stands in the audit trail.
	ActionContradicted Action = "contradicted"
)

// Settlement ends a record by outside knowledge, or sets it aside.
type Settlement struct {
	// ID names this settlement. A repeat after a lost reply has the same one;
	// somebody else's equal settlement has another, and is refused.
	ID     AttemptID
	Action Action
	// Fence is that of the record that was looked at. One that has moved since
	// is left as it is.
	Fence Fence
	// Answer is what every attempt gets from now on. ActionHappened only.
	Answer []byte
	// Keep says how long the answer stands, and its tombstone. ActionHappened;
	// for ActionForget, Tombstone is how long the tombstone stays at the least.
	Keep Retention
	// Quiet is how long after the loss ActionCannotHappen may be said: what was
	// on the wire must have arrived by then. Zero only with proof; since that may
	// be that derived keys are honoured, the time in which they are goes on from
	// the record's first claim. It begins anew when Quiet is more than zero.
	Quiet time.Duration
	// Who and Why go into the audit trail; at most MaxWho and MaxWhy bytes.
	Who, Why string
}

// Limits of what an entry of the audit trail holds, in bytes: a name and a host;
// a sentence and a ticket's address.
const (
	MaxWho = 255
	MaxWhy = 4096
)

// AuditKept is how long an entry of the audit trail stays, whatever becomes of
// its record: longer than a financial year and the weeks in which it is audited.
const AuditKept = 400 * 24 * time.Hour

// AuditEntry is what the audit trail says of one change.
type AuditEntry struct {
	Action Action
	// Who made it, and why. Of a contradiction: the attempt, and what it said.
	Who, Why string
	Fence    Fence
	// Before and After are where the record stood.
	Before, After             State
	BeforeReason, AfterReason Reason // set when it stood at Lost
	// Ago is how long ago it was, by the store's clock.
	Ago time.Duration
}

// Settler is implemented by stores whose records can be settled. Package
// storetest tests every sentence of it.
type Settler interface {
	// Hold gives a lost record to one looker, alone, for d from now; the same
	// holder may hold it anew, for longer or shorter. It touches neither the
	// attempt nor the lease: a late owner completes all the same. ErrMoved: the
	// record is not lost, has another fence, is parked, or is of nobody's attempt
	// any more. ErrHeld: another holder has it.
	Hold(ctx context.Context, id ID, fence Fence, holder AttemptID, d time.Duration) error

	// Settle applies a settlement to a record that is as it was looked at: lost,
	// or, for ActionForget, done or expired; else ErrMoved. What it takes from
	// its attempt, the attempt learns of by ErrLeaseLost. ActionCannotHappen
	// before its Quiet is over is ErrNotQuiet, ActionPark of a parked record
	// ErrMoved. The repeat of a settlement that stands is a no-op. The change and
	// its entry in the audit trail are one write.
	//
	// A Complete, Checkpoint or Release of an attempt whose outcome was settled,
	// and that says otherwise, is ErrContradicted from then on, for as long as the
	// record stays; the first one leaves an entry in the audit trail.
	Settle(ctx context.Context, id ID, s Settlement) error

	// Trail returns the audit trail of a record, the oldest entry first. It
	// outlives the record, for AuditKept.
	Trail(ctx context.Context, id ID) ([]AuditEntry, error)
}

// Event is the settlement as data, for stores.
func (s Settlement) Event() Event {
	return Event{
		Kind: EventSettle, Action: s.Action, Attempt: s.ID, Fence: s.Fence, Payload: s.Answer,
		Keep: s.Keep, For: s.Quiet, Who: s.Who, Why: s.Why,
	}
}

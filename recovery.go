package umavez

import (
	"context"
	"time"
)

// LostRecord is a lost record, as those who look into it see it.
type LostRecord struct {
	ID ID
	Record
}

// DerivedKey is the key that a step of the lost operation was sent with.
func (l *LostRecord) DerivedKey(step string) string { return l.ID.DerivedKey(step) }

// Reconciler finds out from the foreign system what became of lost operations.
type Reconciler struct {
	// After is how long after the loss it is asked first. Default 10 s: a late
	// owner may still complete.
	After time.Duration
	// Every is the pause after the first time; it grows with the age of the loss,
	// up to an hour. Default 30 s.
	Every time.Duration
	// Park is how long after the loss it is asked no more; the record is parked
	// then, until somebody settles it. Default 24 h.
	Park time.Duration
	// Quiet is how long after the loss a CannotHappen without proof counts as
	// StillUnknown. Default and least: [Engine.Quiet].
	Quiet time.Duration
	// Timeout bounds one call of Ask. Default 30 s.
	Timeout time.Duration
	// Who stands in the audit trail. Default "reconciler".
	Who string
	// Ask says what became of a lost operation. An error beats the verdict, and
	// counts as StillUnknown, as a panic does. It must return when ctx ends: by
	// Timeout, or when Close has waited long enough.
	//
	// A caller whose claim has it asked waits for it as for a running attempt, or
	// for ClaimTimeout if that is longer; the asking goes on without it.
	Ask func(ctx context.Context, l LostRecord) (Verdict, error)
}

// Verdict is what a [Reconciler] knows of a lost operation. The zero Verdict is
// that of StillUnknown.
type Verdict struct {
	action Action
	answer []byte
	proof  string
}

// Happened: the operation happened, with this answer.
func Happened(answer []byte) Verdict { return Verdict{action: ActionHappened, answer: answer} }

// CannotHappen: the operation did not happen, and cannot happen any more. That
// nothing was found proves nothing while a request may be on the wire: without
// [Verdict.Proven] it counts as StillUnknown until Reconciler.Quiet is over.
func CannotHappen() Verdict { return Verdict{action: ActionCannotHappen} }

// StillUnknown: it is to be asked again.
func StillUnknown() Verdict { return Verdict{} }

// Proven says why a CannotHappen holds at once: the foreign system has cancelled
// the key, or runs a derived key only once. It stands in the audit trail. Empty,
// it proves nothing; of another verdict it is not looked at.
func (v Verdict) Proven(why string) Verdict {
	v.proof = why
	return v
}

// Answer is the answer of [Happened]. ok is false of every other verdict.
func (v Verdict) Answer() (answer []byte, ok bool) {
	return v.answer, v.action == ActionHappened
}

// Completer finishes lost operations whose client never comes back.
type Completer struct {
	// After is how long after the loss it begins. Default 60 s: the client's own
	// retries come first.
	After time.Duration
	// Until is how long after the first claim it begins no more, to the store
	// call before the operation: see [ErrTooLate]. Default 10 min: charging after
	// the client has left is a business decision.
	Until time.Duration
	// Tries is how many attempts a record may have had; after that it is parked.
	// Default 5.
	Tries int
	// Complete takes the record over, by [Engine.Resume], and runs its operation
	// to its end. Its error is observed, as is a panic. ctx ends only when Close
	// has waited long enough. When it fails before the record was taken over, it
	// is not tried again before After has passed.
	Complete func(ctx context.Context, l LostRecord) error
}

// Recovery is what is done about the lost operations of a route.
type Recovery struct {
	Namespace, Route string
	Reconciler       *Reconciler
	Completer        *Completer
	// Retain and Tombstone are those of the route's operations: see [Operation].
	Retain, Tombstone time.Duration
}

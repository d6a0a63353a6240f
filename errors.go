package umavez

import (
	"errors"
	"fmt"
)

// What a store answers when a call changes nothing. Stores return these
// themselves (possibly wrapped), never inside a [StoreError].
var (
	// ErrLeaseLost: the record no longer carries this attempt, or is no longer
	// running. Whatever the record says now is the answer.
	ErrLeaseLost = errors.New("umavez: the record no longer belongs to this attempt")
	// ErrHasSteps: a record that holds a step, or whose earlier attempt was lost,
	// is never released.
	ErrHasSteps = errors.New("umavez: the record holds a step, or has lost an attempt before, and cannot be released")
	// ErrStepKept: the step is kept already, with another result.
	ErrStepKept = errors.New("umavez: the step is kept already with another result")
	// ErrMoved: the record is not the one that was looked at: its fence has
	// moved, or it is no longer lost.
	ErrMoved = errors.New("umavez: the record has moved since it was looked at")
	// ErrHeld: somebody else holds the record.
	ErrHeld = errors.New("umavez: the record is held by someone else")
	// ErrNotQuiet: it is too early to say that the operation cannot happen any
	// more; something of it may still be on the wire.
	ErrNotQuiet = errors.New("umavez: too early to say that it cannot happen: a request may still be on its way")
	// ErrContradicted: the attempt's outcome was settled by others, and it says
	// otherwise. Like ErrLeaseLost, which it is too, it means that the record
	// answers; somebody must find out which of the two is true.
	ErrContradicted = fmt.Errorf("umavez: the attempt contradicts what its record was settled as: %w", ErrLeaseLost)
	// ErrTooManyUnsettled: the scope has too many running and lost records. The
	// engine hands it on; nothing was run.
	ErrTooManyUnsettled = errors.New("umavez: too many operations of this caller are running or unsettled")
)

// What the engine answers when it does not run an operation.
var (
	// ErrKeyReused: the key belongs to another request.
	ErrKeyReused = errors.New("umavez: the key was used for another request")
	// ErrRecipeUnknown: the record's fingerprint was made by a recipe that
	// this process does not know, so it cannot say whether the request is the
	// same one.
	ErrRecipeUnknown = errors.New("umavez: the record's fingerprint recipe is not known here")
	// ErrUnavailable: the store did not confirm a claim, or too much is waiting
	// for it; nothing was run.
	ErrUnavailable = errors.New("umavez: the store is not available; nothing was run")
	// ErrClosed: the engine is draining and takes no new claims.
	ErrClosed = errors.New("umavez: the engine is closed; nothing was run")
	// ErrUnsaved: the operation ran, and its answer is not in the store yet.
	// The engine goes on trying to save it.
	ErrUnsaved = errors.New("umavez: the answer is not saved yet")
)

// Applied says whether a failed write may have happened.
type Applied uint8

const (
	// Maybe: it is not known whether the write happened. The zero value, so
	// that an error nobody thought about is never taken for a No.
	Maybe Applied = iota
	// No: the write did not happen, and cannot happen any more.
	No
)

// String returns "maybe" or "no".
func (a Applied) String() string {
	if a == No {
		return "no"
	}
	return "maybe"
}

// StoreError is a failure of a store, as opposed to an answer from it.
type StoreError struct {
	// Op is the contract's name of the call: "claim", "complete", …
	Op string
	// Applied says whether the write may have happened.
	Applied Applied
	// Err is the cause. It may tell of the store's inside: log it, never show it.
	Err error
}

// Error names the call, whether it may have been applied, and the cause.
func (e *StoreError) Error() string {
	return fmt.Sprintf("umavez: store: %s (applied: %v): %v", e.Op, e.Applied, e.Err)
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// AppliedOf says whether the write that failed with err may have happened: what
// its StoreError says, or Maybe when there is none.
func AppliedOf(err error) Applied {
	if se, ok := errors.AsType[*StoreError](err); ok {
		return se.Applied
	}
	return Maybe
}

// isAnswer reports whether err is a store's answer (nothing changed, and it
// will be the same next time) rather than a failure to answer.
func isAnswer(err error) bool {
	return err == nil || errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrHasSteps) ||
		errors.Is(err, ErrStepKept) || errors.Is(err, ErrMoved) || errors.Is(err, ErrHeld) ||
		errors.Is(err, ErrNotQuiet) || errors.Is(err, ErrTooManyUnsettled)
}

func errorf(format string, args ...any) error {
	return fmt.Errorf("umavez: "+format, args...)
}

package umavez

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Result is what [Do] knows of an operation that happened.
type Result[T any] struct {
	Value T
	// Replayed: the value is from the record, not from this call.
	Replayed bool
}

// Do runs an operation once for its key, and gives every other call with that
// key the same value. T is kept as JSON.
//
// What run returns decides:
//
//   - nil: it happened; the value is kept;
//   - [Final]: it ended, with this error as its answer, which is kept too;
//   - [NotDone]: nothing happened, and nothing will; the key is released;
//   - any other error, a panic, and what [Release], [Keep] and [Unknown] mark:
//     as marked, else it is not known whether it happened.
//
// Without running, Do returns a [*FinalError] that was kept, an
// [*InProgressError], an [*OutcomeUnknownError], or what [Engine.Claim] returns.
// With [ErrUnsaved] the result is good, and not in the store yet.
func Do[T any](ctx context.Context, e *Engine, op Operation, run func(context.Context) (T, error)) (Result[T], error) {
	a, rec, err := e.Claim(ctx, op)
	switch {
	case err != nil:
		return Result[T]{}, err
	case a == nil:
		return fromRecord[T](rec)
	}
	returned := false
	defer func() {
		if !returned { // it panicked, or its goroutine exits
			_ = a.Abandon(ReasonPanic, nil)
		}
	}()
	value, err := run(a.Context())
	returned = true
	return finishDo(ctx, e, a, &op, value, err)
}

// finishDo ends the attempt as the operation's error and marks say.
func finishDo[T any](ctx context.Context, e *Engine, a *Attempt, op *Operation, value T, failed error) (Result[T], error) {
	result := Result[T]{Value: value}
	mark, why := a.Mark()
	final, isFinal := errors.AsType[*FinalError](failed)
	switch {
	case mark == MarkRelease, mark == MarkNone && isNotDone(failed):
		if err := a.Release(nil); err != nil && !errors.Is(err, ErrUnsaved) {
			failed = errors.Join(failed, err)
		}
		return result, ofThisKey(failed)
	case mark == MarkUnknown:
		return result, errors.Join(failed, a.Abandon(why, nil))
	case failed != nil && !isFinal && mark == MarkNone:
		return result, errors.Join(failed, a.Abandon(ReasonError, nil))
	}
	kept := doAnswer{}
	var err error
	if kept.Value, err = json.Marshal(value); err != nil {
		// It happened, but there is no answer to keep: that must not look vacant.
		return result, errors.Join(fmt.Errorf("umavez: the value cannot be kept: %w", err), a.Abandon(ReasonError, nil))
	}
	if mark == MarkKeepWithoutBody {
		kept.Value, kept.NotKept = nil, true
	}
	switch {
	case isFinal:
		kept.Final = &final.Message
	case failed != nil:
		message := failed.Error()
		kept.Final = &message
	}
	answer, err := json.Marshal(kept)
	if err != nil {
		return result, errors.Join(err, a.Abandon(ReasonError, nil))
	}
	err = a.Complete(answer)
	if errors.Is(err, ErrLeaseLost) {
		// The key went to someone else: the record answers, if it is about this request.
		if rec, err := e.Get(context.WithoutCancel(ctx), op.Key); err == nil && e.sameRequest(op, &rec) == nil {
			return fromRecord[T](rec)
		}
	}
	return result, errors.Join(failed, err)
}

// doAnswer is how Do keeps an answer.
type doAnswer struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Final   *string         `json:"final,omitempty"`
	NotKept bool            `json:"notKept,omitempty"`
}

// fromRecord answers from what the store says.
func fromRecord[T any](rec Record) (Result[T], error) {
	result := Result[T]{Replayed: true}
	switch rec.State {
	case Running:
		return result, &InProgressError{Record: rec}
	case Vacant:
		return result, &InProgressError{Record: rec} // released a moment ago: try again
	case Lost:
		return result, &OutcomeUnknownError{Record: rec}
	case Expired:
		return result, ErrKeyExpired
	case Done:
	}
	if rec.Unreadable != nil {
		return result, fmt.Errorf("%w: %w", ErrNotKept, rec.Unreadable)
	}
	var kept doAnswer
	if err := json.Unmarshal(rec.Answer, &kept); err != nil {
		return result, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	if kept.NotKept {
		return result, ErrNotKept
	}
	if len(kept.Value) > 0 {
		if err := json.Unmarshal(kept.Value, &result.Value); err != nil {
			return result, fmt.Errorf("%w: %w", ErrNotKept, err)
		}
	}
	if kept.Final != nil {
		return result, &FinalError{Message: *kept.Final}
	}
	return result, nil
}

var (
	// ErrKeyExpired: the key was used, and its answer is no longer kept.
	ErrKeyExpired = errors.New("umavez: the key has expired; its answer is no longer kept")
	// ErrNotKept: the operation happened, and its answer cannot be given again.
	ErrNotKept = errors.New("umavez: the operation happened, and its answer was not kept")
)

// FinalError is an error that is an operation's answer.
type FinalError struct {
	Message string
	cause   error
}

// Error returns the message, which is what is kept.
func (e *FinalError) Error() string { return e.Message }

// Unwrap returns the error that was made final; nil when it comes from the record.
func (e *FinalError) Unwrap() error { return e.cause }

// Final makes err an answer: the operation ended with it, and every other
// attempt gets it too. Its text is what is kept.
func Final(err error) error { return &FinalError{Message: err.Error(), cause: err} }

// NotDone says that err came before anything happened, and that nothing will
// happen any more: the key is released. It speaks of the one operation that
// returns it: an outer one, around the call of [Do] that returned it in turn,
// may have done something, and must say NotDone itself.
func NotDone(err error) error { return &notDoneError{err} }

type notDoneError struct{ error }

func (e *notDoneError) Unwrap() error { return e.error }
func (e *notDoneError) notDone() bool { return true }

// pastError is a NotDone error that has had its effect, on its own key.
type pastError struct{ error }

func (e *pastError) Unwrap() error { return e.error }
func (e *pastError) notDone() bool { return false }

// isNotDone reports whether an operation returned NotDone.
func isNotDone(err error) bool {
	said, ok := errors.AsType[interface {
		error
		notDone() bool
	}](err)
	return ok && said.notDone()
}

// ofThisKey keeps what NotDone said of one key from releasing another one.
func ofThisKey(err error) error {
	if isNotDone(err) {
		return &pastError{err}
	}
	return err
}

// InProgressError: another attempt runs, or was released a moment ago.
type InProgressError struct{ Record Record }

// Error says what to do.
func (e *InProgressError) Error() string {
	return "umavez: another attempt with this key is in progress; try again soon"
}

// OutcomeUnknownError: an attempt was lost, and it is not known whether the
// operation happened. It is not run again.
type OutcomeUnknownError struct{ Record Record }

// Error gives the reason.
func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("umavez: it is not known whether the operation happened (%s)", e.Record.Reason)
}

// HappenedWith is the [Verdict] of a [Reconciler] that the operation of a [Do]
// happened, with this value: what every other call with its key gets.
func HappenedWith[T any](value T) (Verdict, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return Verdict{}, fmt.Errorf("umavez: the value cannot be kept: %w", err)
	}
	answer, err := json.Marshal(doAnswer{Value: text})
	return Happened(answer), err
}

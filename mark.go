package umavez

import (
	"context"
	"errors"
)

// Mark is what the operation itself said of its outcome. It outranks what its
// answer seems to say, and acts when the operation returns; the last one wins.
type Mark uint8

// The marks.
const (
	// MarkNone: the operation said nothing; its answer decides.
	MarkNone Mark = iota
	// MarkRelease: nothing happened, and nothing will.
	MarkRelease
	// MarkKeep: the answer is to be kept, whatever it looks like.
	MarkKeep
	// MarkKeepWithoutBody: it happened, and its body must not be kept.
	MarkKeepWithoutBody
	// MarkUnknown: the operation does not know whether it happened.
	MarkUnknown
)

var (
	// ErrNoAttempt: the context is not that of an operation under a key.
	ErrNoAttempt = errors.New("umavez: the context belongs to no attempt")
	// ErrAnswered: the first byte of the answer is out; marks come too late.
	ErrAnswered = errors.New("umavez: the answer has begun; it can no longer be marked")
)

// Release marks the running operation as one that did nothing and will do
// nothing: its key is released when it returns, and the next attempt runs.
func Release(ctx context.Context) error { return mark(ctx, MarkRelease, "") }

// Keep marks the running operation's answer as one to keep.
func Keep(ctx context.Context) error { return mark(ctx, MarkKeep, "") }

// KeepWithoutBody marks the running operation as done, and its answer's body as
// one that must not be kept.
func KeepWithoutBody(ctx context.Context) error { return mark(ctx, MarkKeepWithoutBody, "") }

// Unknown marks the running operation as one that does not know whether it
// happened, and why: the key becomes lost when it returns.
func Unknown(ctx context.Context, why Reason) error { return mark(ctx, MarkUnknown, why) }

func mark(ctx context.Context, m Mark, why Reason) error {
	a := FromContext(ctx)
	if a == nil {
		return ErrNoAttempt
	}
	return a.setMark(m, why)
}

package umavez

import (
	"context"
	"errors"
)

// ErrTooLate: a lost record was taken over too late for its completer, and was
// given up again. Nothing was run.
var ErrTooLate = errors.New("umavez: too late to complete it; nothing was run")

// Resume takes over the lost record with this fence, to finish what its client
// gave up. It is [Engine.Claim], but for one thing: nothing else is granted. A
// key that has become vacant, is done, or was taken over meanwhile comes back as
// its record, and a record that others took over and lost again is Lost.
//
// On the attempt's context [Completing] is true. Where a [Completer] is
// registered for the operation's namespace and route, an attempt that would
// begin at its Until or later is abandoned instead, with [ErrTooLate]. The
// record comes back with it.
func (e *Engine) Resume(ctx context.Context, op Operation, fence Fence) (*Attempt, Record, error) {
	if fence == 0 {
		return nil, Record{}, errorf("Resume needs the fence of a lost record")
	}
	op.resume, op.Wait, op.Request = fence, 0, nil
	return e.Claim(ctx, op)
}

// Completing reports whether the operation that ctx runs under was taken up by
// a completer: its client is not there any more.
func Completing(ctx context.Context) bool {
	a := FromContext(ctx)
	return a != nil && a.completing
}

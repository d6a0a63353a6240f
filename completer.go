package umavez

import (
	"context"
	"errors"
	"fmt"
)

// This file is what the worker does with one lost record that can be resumed.

// mayComplete returns the completer that is to take up the record now, or nil. A
// record that was settled to be resumed is not for it: nobody asked for that to
// happen without the client.
func (e *Engine) mayComplete(rec *Record) *Completer {
	if rec.State != Lost || rec.Unknown() || rec.Reason == ReasonSettled || rec.HeldLeft > 0 {
		return nil
	}
	c := e.recoveries.completer(rec.Namespace, rec.Route)
	if c == nil || rec.Since < c.After || rec.Age >= c.Until || e.keeper.owns(rec.Attempt) {
		return nil
	}
	return c
}

// complete takes up one record. Who else does it at the same time, or whether its
// client comes back this moment, need not be known: of all of them one takes the
// record over. If the process dies before that, nothing has changed; after it, the
// record is lost again, with one try more.
//
//nolint:contextcheck // what is written does not end with ctx
func (e *Engine) complete(ctx context.Context, id ID, fence Fence, c *Completer) {
	rec, err := e.look(ctx, id)
	if err != nil || rec.Fence != fence || e.mayComplete(&rec) != c || rec.Request == nil {
		return
	}
	if rec.Tries >= c.Tries {
		e.park(id, &rec, "completer", fmt.Sprintf("%d attempts were lost, and nobody tries again", rec.Tries))
		return
	}
	o := Observation{Attempt: rec.Attempt, Fence: fence, Reason: rec.Reason}
	e.tell(MomentCompleter, id, rec.Route, rec.Policy, o)
	if o.Err = callComplete(ctx, c, LostRecord{ID: id, Record: rec}); o.Err == nil {
		return
	}
	e.tell(MomentRecoveryFailed, id, rec.Route, rec.Policy, o)
	// If it has failed before it took the record over, the next pass would try
	// again at once, in every process. A hold does not keep the client's own retry
	// from taking over; and a record that was taken over has another fence.
	_ = e.hold(id, fence, NewAttemptID(), c.After)
}

// errCompleteGone: Complete ended its goroutine.
var errCompleteGone = errors.New("umavez: Complete ended its goroutine instead of returning")

// callComplete calls Complete. Whatever goes wrong is an error.
func callComplete(ctx context.Context, c *Completer, l LostRecord) error {
	done := make(chan error, 1)
	go func() {
		err := errCompleteGone
		defer func() {
			if p := recover(); p != nil {
				err = errorf("Complete panicked: %v", p)
			}
			done <- err
		}()
		err = c.Complete(ctx, l)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // Close has given up waiting; the operation is left to itself
		return context.Cause(ctx)
	}
}

package umavez

import (
	"context"
	"fmt"
)

// This file is how the next attempt with a lost key has a reconciler asked. The
// asking is a flight: who comes meanwhile joins it, as if the operation ran.

// askOnClaim starts an asking about the lost record that answered a claim, and
// carries the flight on. It goes on when the caller has left, and Close waits for
// it. false: nobody is asked now, and the record answers as it is. It is not for
// another request's sake that anybody is asked.
func (e *Engine) askOnClaim(ctx context.Context, f *flight, op *Operation, rec Record) bool {
	r := e.mayAsk(&rec)
	if r == nil || op.resume != 0 || e.sameRequest(op, &rec) != nil || !e.asks.try() {
		return false
	}
	id, fence := f.id, rec.Fence
	rec.HeldLeft = e.holdFor(r)
	e.flights.asking(f, rec)
	ctx = context.WithoutCancel(ctx)
	e.gate.again()
	started := e.goroutines.start(func() {
		defer e.gate.leave()
		defer e.asks.give()
		ctx, cancel := e.untilStopped(ctx)
		defer cancel()
		e.reconcile(ctx, id, fence, r)
		e.landAsked(ctx, f)
	})
	if !started {
		e.gate.leave()
		e.asks.give()
	}
	return started
}

// landAsked gives those who have waited what the store says now: what was settled,
// or a record that is held until the next turn. Of anything else, they look anew.
func (e *Engine) landAsked(ctx context.Context, f *flight) {
	sent := e.clock()
	rec, err := e.look(ctx, f.id)
	if err == nil && (rec.State == Done || rec.State == Expired || rec.State == Lost) {
		f.sent = sent.mono // nobody looks at it before the flight has landed
		e.flights.land(f, endAnswered, rec, nil)
		return
	}
	e.flights.land(f, endRetry, Record{}, nil)
}

// stillAsked answers a duplicate that does not wait any longer for an asking. It
// asks the store: a late owner may have completed since the asking began, and
// whoever came after that must not be told that the outcome is unknown.
func (e *Engine) stillAsked(ctx context.Context, id ID, op *Operation) (Record, error) {
	rec, err := e.look(context.WithoutCancel(ctx), id)
	if err != nil {
		return Record{}, e.observeErr(MomentUnavailable, id, op, fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	if rec.State == Vacant { // it was settled this moment: come again
		rec = Record{State: Running, Policy: op.Policy, Route: op.Route, Fingerprint: op.Fingerprint, Fence: rec.Fence}
	}
	rec, err = e.judge(id, op, rec)
	if err == nil && rec.State == Running {
		e.observe(MomentInProgress, id, op, Observation{Fence: rec.Fence})
	}
	return rec, err
}

// untilStopped gives what the engine does for itself an end: when Close has given
// up waiting.
func (e *Engine) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

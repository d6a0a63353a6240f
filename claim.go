package umavez

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// won is what a claim came back with.
type won struct {
	rec      Record
	acquired bool
	over     bool    // a lost record was to be taken over
	took     bool    // and it was
	sent     reading // just before the call was sent that was answered
	err      error
}

// peek answers from a record that is done, as most records are: its answer never
// changes, so it is good whatever else is under way. It is for prompt stores,
// where a look costs less than what a claim needs: an attempt's id, a flight and
// the clocks. For a store that is asked over a wire, the claim is the look.
func (e *Engine) peek(id ID, op *Operation) (rec Record, err error, ok bool) {
	rec, err = e.store.Get(context.Background(), id)
	if err != nil || rec.State != Done {
		return Record{}, nil, false // the claim will tell
	}
	rec, err = e.judge(id, op, rec)
	return rec, err, true
}

// lead carries a flight: it claims, and lands the flight or hands it to the
// attempt. again: the caller joins the flight, or looks anew.
func (e *Engine) lead(ctx context.Context, f *flight, op *Operation, now reading) (a *Attempt, rec Record, again bool, err error) {
	req := ClaimRequest{
		Attempt: NewAttemptID(), Fingerprint: op.Fingerprint, Policy: op.Policy,
		Namespace: op.Key.Scope.Namespace, Scope: op.Key.ScopeID(), Route: op.Route, Label: op.Label,
		Lease: e.opt.Lease, MaxUnsettled: e.opt.MaxUnsettled, Request: op.Request,
		TakeOver: op.resume, Resume: op.resume != 0,
	}
	w, left := e.claim(ctx, f, op, &req, now)
	switch {
	case left:
		return nil, Record{}, false, context.Cause(ctx)
	case errors.Is(w.err, ErrTooManyUnsettled):
		err = e.observeErr(MomentTooManyUnsettled, f.id, op, ErrTooManyUnsettled)
		e.flights.land(f, endFailed, Record{}, err)
		return nil, Record{}, false, err
	case w.err != nil:
		err = e.observeErr(MomentUnavailable, f.id, op, fmt.Errorf("%w: %w", ErrUnavailable, w.err))
		e.flights.land(f, endFailed, Record{}, err)
		return nil, Record{}, false, err
	case w.acquired:
		return e.begin(ctx, f, op, req.Attempt, w)
	case w.rec.State == Running:
		// Another process runs it. The caller follows, and so learns of a
		// reused key, an end of its patience, or the answer.
		e.flights.watch(f, w.rec)
		return nil, Record{}, true, nil
	case w.rec.State == Vacant:
		// The attempt's id was barred by a release that overtook its claim; or
		// what was to be resumed is not there any more.
		e.flights.land(f, endRetry, Record{}, nil)
		return nil, w.rec, op.resume == 0, nil
	default:
		if e.askOnClaim(ctx, f, op, w.rec) {
			return nil, Record{}, true, nil
		}
		rec, err = e.judge(f.id, op, w.rec)
		f.sent = w.sent.mono // nobody looks at it before the flight has landed
		e.flights.land(f, endAnswered, w.rec, nil)
		e.flights.recycle(f)
		return nil, rec, false, err
	}
}

// begin starts an attempt that was won, unless its caller has left or its lease
// is no longer good. An attempt that does not start is released.
func (e *Engine) begin(ctx context.Context, f *flight, op *Operation, id AttemptID, w won) (*Attempt, Record, bool, error) {
	a := e.newAttempt(ctx, f, op, id, w)
	e.flights.run(f, a)
	// From here on the flight is the attempt's, which may land it any moment.
	begun := false
	defer func() {
		if !begun { // Observe panicked: the key must not wait for an attempt that nobody runs
			a.unstarted()
		}
	}()
	if w.took {
		a.observe(MomentTakenOver, a.observation())
	}
	a.observe(MomentClaimed, a.observation())
	begun = true
	if ctx.Err() != nil {
		a.unstarted()
		return nil, Record{}, false, context.Cause(ctx)
	}
	if err := a.start(); err != nil {
		a.unstarted()
		if errors.Is(err, ErrLeaseLost) {
			return nil, Record{}, true, nil
		}
		return nil, Record{}, false, e.observeErr(MomentUnavailable, a.lease.ID, op, fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	if e.tooLate(op, &w) {
		// As it was lost before, so it is now: a retry of its client may still
		// go on with it.
		return nil, w.rec, false, errors.Join(ErrTooLate, a.Abandon(ReasonKilled, nil))
	}
	a.observe(MomentStarted, a.observation())
	return a, Record{}, false, nil
}

// tooLate: a completer would begin now, and may not any more. It looks after the
// last store call before the operation, by what the store said of the record's
// age and this process's clocks have seen since that was asked.
func (e *Engine) tooLate(op *Operation, w *won) bool {
	if op.resume == 0 {
		return false
	}
	c := e.recoveries.completer(op.Key.Scope.Namespace, op.Route)
	return c != nil && w.rec.Age+e.clock().since(w.sent) >= c.Until
}

// claim claims on a context of its own, so that a caller who leaves cannot cut
// a claim in half. left: the caller has left, and the claim is cleaned up in
// the background.
func (e *Engine) claim(ctx context.Context, f *flight, op *Operation, req *ClaimRequest, now reading) (w won, left bool) {
	if e.prompt {
		return e.claimKnown(context.Background(), f.id, op, req, now), false
	}
	return e.claimDetached(ctx, f, *op, *req, now)
}

func (e *Engine) claimDetached(ctx context.Context, f *flight, op Operation, req ClaimRequest, now reading) (w won, left bool) {
	call := &claimCall{done: make(chan won, 1)}
	detached := context.WithoutCancel(ctx)
	started := e.goroutines.start(func() {
		w := e.claimKnown(detached, f.id, &op, &req, now)
		if !call.taken.Swap(true) {
			call.done <- w
			return
		}
		// Nobody waits for it any more, but for Close.
		defer e.gate.leave()
		if w.acquired {
			a := e.newAttempt(detached, f, &op, req.Attempt, w)
			e.flights.run(f, a)
			a.unstarted()
			return
		}
		e.flights.land(f, endRetry, Record{}, nil)
	})
	if !started {
		return won{err: ErrClosed}, false
	}
	select {
	case w = <-call.done:
		return w, false
	case <-ctx.Done():
		e.gate.again()
		if call.taken.Swap(true) {
			e.gate.leave()
			return <-call.done, false // it was answered at the same moment
		}
		return won{}, true
	}
}

// claimCall decides who has the result of a claim: the caller who waits for it,
// or, if the caller left first, the goroutine that made it.
type claimCall struct {
	taken atomic.Bool
	done  chan won
}

// claimKnown claims until the store's answer is known, for at most ClaimTimeout.
// A claim that may have happened and stays unknown is given back in the
// background; the operation does not run.
func (e *Engine) claimKnown(ctx context.Context, id ID, op *Operation, req *ClaimRequest, began reading) won {
	var maybe, over bool
	sent := began
	for pause := repeatFirst; ; pause = min(2*pause, repeatLast) {
		w := e.claimOnce(ctx, id, op, req, sent)
		refused := errors.Is(w.err, ErrTooManyUnsettled)
		if w.err == nil {
			return w
		}
		if !refused && AppliedOf(w.err) == Maybe {
			maybe, over = true, over || w.over
		}
		// Refused as it may be now, a claim before may still be on its way.
		if refused || e.clock().since(began)+pause >= e.opt.ClaimTimeout || !e.pause(pause) {
			if maybe {
				e.backlog.add(giveBack(&Lease{ID: id, Attempt: req.Attempt}, over))
			}
			return w
		}
		sent = e.clock()
	}
}

// claimOnce is one round: the claim, and the takeover of a lost record that
// allows it.
func (e *Engine) claimOnce(ctx context.Context, id ID, op *Operation, req *ClaimRequest, sent reading) won {
	w := e.claimCall(ctx, id, req, sent)
	if w.err != nil || w.acquired || !e.mayTakeOver(op, &w.rec) || req.Resume && w.rec.Fence != req.TakeOver {
		w.over, w.took = req.Resume, req.Resume && w.acquired
		return w
	}
	over := *req
	over.TakeOver, over.Fingerprint = w.rec.Fence, w.rec.Fingerprint
	w = e.claimCall(ctx, id, &over, e.clock())
	w.over, w.took = true, w.acquired
	return w
}

func (e *Engine) claimCall(ctx context.Context, id ID, req *ClaimRequest, sent reading) won {
	ctx, cancel := e.callContext(ctx, e.opt.ClaimTimeout/2)
	defer cancel()
	rec, acquired, err := e.store.Claim(ctx, id, *req)
	return won{rec: rec, acquired: acquired, sent: sent, err: err}
}

// callContext bounds one store call. A store that never waits needs no bound.
func (e *Engine) callContext(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if e.prompt {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// How soon, and how often at the least, a store call is repeated that got no answer.
const (
	repeatFirst = 10 * time.Millisecond
	repeatLast  = 500 * time.Millisecond
)

// pause waits before a repeat. It returns false when the engine stops.
func (e *Engine) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.stop:
		return false
	}
}

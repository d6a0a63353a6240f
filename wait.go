package umavez

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// How often a process asks the store after a key that another process runs: at
// first soon, since most operations are short, then ever less often.
const (
	pollFirst = 20 * time.Millisecond
	pollLast  = 500 * time.Millisecond
)

// follow waits for a flight that somebody else carries, on behalf of a caller
// who came at one time and waits until another. again: the flight is over
// without an answer for this caller, who looks anew.
//
// While a reconciler is asked, a caller waits for at least as long as any claim
// may take: else one who does not wait for others would never profit by it.
func (e *Engine) follow(ctx context.Context, f *flight, op *Operation, came, until time.Duration) (rec Record, again bool, err error) {
	s := e.flights.shard(f.id)
	defer e.unwatch(f)
	s.mu.Lock()
	for {
		switch f.phase {
		case flightClaiming:
			// Not counted as waiting: a claim ends by its own timeout.
			changed := f.changed.wait()
			s.mu.Unlock()
			select {
			case <-changed:
			case <-ctx.Done():
				return Record{}, false, context.Cause(ctx)
			}
		case flightRunning:
			rec, patience := f.running(), until
			if f.asked() {
				patience = max(until, came+e.opt.ClaimTimeout)
			}
			s.mu.Unlock()
			if err := e.sameRequest(op, &rec); err != nil {
				return rec, false, e.observeErr(MomentKeyReused, f.id, op, err)
			}
			waited, err := e.waitRunning(ctx, f, op, patience)
			if err != nil {
				return Record{}, false, err
			}
			if !waited {
				rec, over, err := e.inProgress(ctx, f, op)
				if !over {
					return rec, false, err
				}
			}
		case flightOver:
			end := f.landedFor(op, came)
			s.mu.Unlock()
			// A flight that is over does not change any more.
			return e.landed(f, end, op)
		}
		s.mu.Lock()
	}
}

// unwatch lands a flight that runs elsewhere and that nobody watches: the next
// comer must ask the store, not believe what was true a moment ago.
func (e *Engine) unwatch(f *flight) {
	s := e.flights.shard(f.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.phase == flightRunning && f.attempt == nil && !f.watched {
		s.land(f, endRetry, Record{}, nil)
	}
}

// landedFor is how a flight ended for one of those who followed it: a released
// one sends the first of them to claim. Called with the mutex held.
//
// That a key was lost is an answer only to those who came before the claim that
// found it so was sent. Whoever came later may have been told meanwhile, by
// another process, that the late answer is saved after all. (What is done stays
// done, and "running" says no more than "come again".)
func (f *flight) landedFor(op *Operation, came time.Duration) flightEnd {
	if f.end == endAnswered && f.rec.State == Lost && f.sent < came {
		return endRetry
	}
	if f.end != endReleased {
		return f.end
	}
	if f.rec.Fingerprint != op.Fingerprint {
		return endRetry
	}
	if !f.baton {
		f.baton = true
		return endRetry
	}
	return endReleased
}

// landed turns the end of a flight into an answer for one of those who followed.
func (e *Engine) landed(f *flight, end flightEnd, op *Operation) (rec Record, again bool, err error) {
	switch end {
	case endFailed:
		return Record{}, false, f.err
	case endReleased:
		return *f.rec, false, nil
	case endAnswered:
		if !e.mayTakeOver(op, f.rec) {
			rec, err = e.judge(f.id, op, *f.rec)
			return rec, false, err
		}
	case endRetry:
	}
	return Record{}, true, nil
}

// waitRunning waits for a change of a running flight, as one of a bounded
// number. It returns false when the wait is over, or was not granted.
func (e *Engine) waitRunning(ctx context.Context, f *flight, op *Operation, until time.Duration) (bool, error) {
	left := until - e.clock().mono
	if left <= 0 {
		return false, nil
	}
	s := e.flights.shard(f.id)
	s.mu.Lock()
	if f.phase != flightRunning {
		s.mu.Unlock()
		return true, nil
	}
	if f.waiters >= e.opt.MaxWaitersPerKey || !e.addWaiter() {
		s.mu.Unlock()
		return false, nil
	}
	f.waiters++
	if f.attempt == nil && !f.watched {
		f.watched = e.goroutines.start(func() { e.watch(f) })
	}
	changed := f.changed.wait()
	s.mu.Unlock()
	defer func() {
		e.waiters.Add(-1)
		s.mu.Lock()
		f.waiters--
		s.mu.Unlock()
	}()
	e.observe(MomentWaiting, f.id, op, Observation{})
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-changed:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-e.stop:
		return false, ErrClosed
	}
}

// addWaiter counts one more waiter of this process, if it may have one more.
func (e *Engine) addWaiter() bool {
	if e.waiters.Add(1) <= int64(e.opt.MaxWaiters) {
		return true
	}
	e.waiters.Add(-1)
	return false
}

// inProgress is what a duplicate gets that does not wait any longer. over: the
// flight has ended meanwhile, and has an answer.
func (e *Engine) inProgress(ctx context.Context, f *flight, op *Operation) (rec Record, over bool, err error) {
	s := e.flights.shard(f.id)
	s.mu.Lock()
	if f.phase == flightOver {
		s.mu.Unlock()
		return Record{}, true, nil
	}
	rec, a, asked := f.running(), f.attempt, f.asked()
	s.mu.Unlock()
	if asked {
		rec, err = e.stillAsked(ctx, f.id, op)
		return rec, false, err
	}
	if a != nil {
		rec.LeaseLeft = a.leaseLeft()
	}
	rec.State = Running
	e.observe(MomentInProgress, f.id, op, Observation{Fence: rec.Fence})
	return rec, false, nil
}

// watch asks the store after a key that another process runs, for as long as
// somebody here waits for it. There is at most one for each such key.
func (e *Engine) watch(f *flight) {
	pause := pollFirst
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-e.stop:
			e.flights.land(f, endRetry, Record{}, nil)
			return
		}
		if e.unwatched(f) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), e.opt.ClaimTimeout)
		rec, err := e.store.Get(ctx, f.id)
		cancel()
		switch {
		case err != nil && !errors.Is(err, ErrUnreadable) || rec.State == Running:
			// Not over, or not known to be: those who wait have an end of their own.
		case rec.State == Done || rec.State == Expired:
			e.flights.land(f, endAnswered, rec, nil)
			return
		default:
			e.flights.land(f, endRetry, Record{}, nil)
			return
		}
		pause = min(2*pause, pollLast)
		timer.Reset(pause/2 + rand.N(pause/2+1))
	}
}

// unwatched ends a flight that nobody waits for any more.
func (e *Engine) unwatched(f *flight) bool {
	s := e.flights.shard(f.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters > 0 {
		return false
	}
	s.land(f, endRetry, Record{}, nil)
	return true
}

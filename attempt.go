package umavez

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Attempt is a won claim: one try at an operation, in this process.
type Attempt struct {
	eng    *Engine
	flight *flight // nil once it has landed for good; guarded by mu
	lease  Lease
	began  reading
	beat   beat // guarded by the keeper
	end    job  // how it ended; set once

	// What of its operation matters until then. Attempts are all the garbage
	// that the engine makes of an operation, so they hold no more than that.
	route       string
	policy      Policy
	fingerprint Fingerprint
	retention   Retention
	steps       *stepBook // nil: it is not stepped
	completing  bool      // its client is gone
	retried     bool      // earlier attempts may have done something

	base   attemptContext
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	leaseEnd reading // by this process's clocks
	mark     Mark
	why      Reason
	sealed   bool
	ended    bool
}

var (
	// ErrEnded: the attempt was completed, released or abandoned already.
	ErrEnded = errors.New("umavez: the attempt has ended already")
	// ErrLeaseRanOut cancels the context of a rerunnable operation whose lease
	// could not be extended: another attempt may be running it.
	ErrLeaseRanOut = errors.New("umavez: the lease ran out and could not be extended")
)

func (e *Engine) newAttempt(ctx context.Context, f *flight, op *Operation, id AttemptID, w won) *Attempt {
	a := &Attempt{
		eng: e, flight: f,
		lease: Lease{ID: f.id, Attempt: id, Fence: w.rec.Fence},
		route: op.Route, policy: op.Policy, fingerprint: op.Fingerprint,
		retention:  e.opt.retention(op),
		completing: op.resume != 0, retried: w.rec.Tries > 1,
		began:    w.sent,
		leaseEnd: w.sent.plus(e.opt.Lease),
	}
	if op.Policy == Stepped {
		a.steps = newStepBook(w)
	}
	a.base = attemptContext{parent: ctx, attempt: a}
	a.ctx, a.cancel = context.WithCancelCause(&a.base)
	return a
}

// start does what must happen between the claim and the operation: it makes
// sure that the lease is still good, hands it to the keeper, and has the store
// note the start.
func (a *Attempt) start() error {
	e := a.eng
	a.began = e.clock()
	// The process may have been stopped since it claimed. By now the lease may
	// be nearly over, or the key someone else's.
	if a.leaseEnd.left(a.began) < e.opt.Lease/3 {
		ctx, cancel := e.callContext(context.Background(), e.opt.ClaimTimeout/2)
		defer cancel()
		if err := e.store.Extend(ctx, a.lease, e.opt.Lease); err != nil {
			return err
		}
		a.mu.Lock() // duplicates ask already how much of the lease is left
		a.leaseEnd = a.began.plus(e.opt.Lease)
		a.mu.Unlock()
	}
	if e.marker != nil {
		if err := e.marker.Started(a.lease); err != nil {
			return err
		}
	}
	e.keeper.add(a)
	return nil
}

// unstarted gives back a key whose operation never started, in the background.
func (a *Attempt) unstarted() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	j := giveBack(&a.lease, a.retried)
	j.attempt = a
	a.eng.backlog.add(j)
	a.observe(MomentUnstarted, a.observation())
}

// Context is the operation's: it has the values of the caller's context but not
// its cancellation or deadline, since a client that hangs up changes nothing.
// It ends, with a cause, only when the attempt must stop: its key was settled,
// or, if it is not opaque, its lease ran out.
func (a *Attempt) Context() context.Context { return a.ctx }

// Stop cancels the context of an attempt that has ended, for what runs on after
// its end: a stream whose client has left. Before the end it does nothing.
func (a *Attempt) Stop(cause error) {
	if a.hasEnded() {
		a.cancel(cause)
	}
}

func (a *Attempt) hasEnded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// Lease names the attempt's hold on its record.
func (a *Attempt) Lease() Lease { return a.lease }

// Retention is how long the attempt's answer stands once it is completed.
func (a *Attempt) Retention() Retention { return a.retention }

// Complete saves the answer. nil: the store has acknowledged it. ErrUnsaved: it
// goes on in the background, and the caller may answer "unsaved". ErrLeaseLost:
// the key went to someone else; the record answers. A [*StepError]: the steps do
// not allow it, and the attempt was abandoned instead.
func (a *Attempt) Complete(answer []byte) error {
	a.observe(MomentCompleting, a.observation())
	return a.finish(job{kind: jobComplete, payload: answer})
}

// Release says that nothing happened and nothing will: the key is vacant again.
// Duplicates that wait get answer, which is not stored, but for one, who
// claims; when answer is nil, all of them look again. An attempt that has sent a
// step, or took a lost one over, is abandoned instead: something may have happened.
func (a *Attempt) Release(answer []byte) error {
	a.observe(MomentReleasing, a.observation())
	return a.finish(job{kind: jobRelease, payload: answer})
}

// Abandon says that the attempt has ended and its outcome is not known. last is
// the last answer that was seen of it, or nil.
func (a *Attempt) Abandon(reason Reason, last []byte) error {
	return a.finish(job{kind: jobAbandon, payload: last, reason: reason})
}

// Note keeps what is known of an answer that goes out live, before it ends. It
// answers when the store does, and waits for it as long as a save.
func (a *Attempt) Note(last []byte) error {
	if a.hasEnded() {
		return ErrEnded
	}
	e := a.eng
	return e.repeat(func(ctx context.Context) error {
		return e.store.Checkpoint(ctx, a.lease, LastWord, last)
	})
}

// finish ends the attempt, once: at first while its caller waits, then in the
// background.
func (a *Attempt) finish(end job) error {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return ErrEnded
	}
	a.ended = true
	a.mu.Unlock()
	var broken error
	if a.steps != nil {
		end, broken = a.steps.verdict(end)
	}
	if end.kind == jobRelease && a.retried {
		// It may vouch for itself, and not for the attempt that was lost before it.
		end = job{kind: jobAbandon, reason: ReasonStatus, payload: end.payload}
	}
	a.end = end
	a.end.attempt, a.end.lease = a, &a.lease
	e, j := a.eng, &a.end
	err := e.repeat(func(ctx context.Context) error { return j.call(ctx, e.store) })
	if isAnswer(err) {
		if err := e.conclude(j, err); err != nil {
			return err
		}
		return broken
	}
	o := a.observation()
	o.Err = err
	a.observe(MomentUnsaved, o)
	e.backlog.add(j)
	if broken != nil {
		return errors.Join(broken, err)
	}
	return fmt.Errorf("%w: %w", ErrUnsaved, err)
}

// land ends the attempt's flight for good, when the store has acknowledged the
// attempt's end.
func (a *Attempt) land(end flightEnd, rec Record) {
	a.mu.Lock()
	f := a.flight
	a.flight = nil
	a.mu.Unlock()
	a.eng.flights.land(f, end, rec, nil)
	a.eng.flights.recycle(f)
}

// leaseLeft is what is left of the lease by this process's clocks.
func (a *Attempt) leaseLeft() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaseEnd.left(a.eng.clock())
}

// Mark returns what the operation said of its outcome, and why if it is
// MarkUnknown.
func (a *Attempt) Mark() (Mark, Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mark, a.why
}

// Seal ends the time for marks: the answer's first byte is about to go out.
func (a *Attempt) Seal() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sealed = true
}

func (a *Attempt) setMark(m Mark, why Reason) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ended:
		return ErrEnded
	case a.sealed:
		return ErrAnswered
	}
	a.mark, a.why = m, why
	return nil
}

// observe tells of a moment of the attempt.
func (a *Attempt) observe(m Moment, o Observation) {
	a.eng.tell(m, a.lease.ID, a.route, a.policy, o)
}

func (a *Attempt) observation() Observation {
	return Observation{Attempt: a.lease.Attempt, Fence: a.lease.Fence}
}

// attemptContext gives the operation the values of its caller's context, and
// nothing of its end.
type attemptContext struct {
	parent  context.Context
	attempt *Attempt
}

type attemptKey struct{}

func (c *attemptContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *attemptContext) Done() <-chan struct{}       { return nil }
func (c *attemptContext) Err() error                  { return nil }

func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.attempt
	}
	return c.parent.Value(key)
}

// FromContext returns the attempt that ctx runs under, or nil.
func FromContext(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

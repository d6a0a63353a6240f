package umavez

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Engine runs operations once. Make one for each store with [New], and end it
// with Close. It is safe for concurrent use.
//
// What it does for one key is spread over files by idea: claim.go wins the key,
// flight.go and wait.go hold duplicates back, attempt.go ends what was won,
// heartbeat.go keeps it alive, and backlog.go repeats what the store has not
// answered yet. reconcile.go, asking.go and completer.go are for what was lost all
// the same.
type Engine struct {
	base   Store       // what New was given
	store  Store       // the same, behind the sealer
	prompt bool        // the store never waits
	marker StartMarker // nil: the store does not tell claimed from started
	opt    Options
	clock  clock

	flights *flights
	keeper  keeper
	leaps   leaps
	backlog backlog
	waiters atomic.Int64

	recoveries recoveries
	asks       slots // calls of Ask
	completes  slots // calls of Complete

	gate       gate
	stop       chan struct{}   // closed when Close is done with waiting
	life       context.Context // ends then, too
	endLife    context.CancelFunc
	goroutines goroutines
}

// New checks the options. It starts nothing.
func New(store Store, o Options) (*Engine, error) {
	if store == nil {
		return nil, errorf("New needs a store")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.clock == nil {
		o.clock = systemClock()
	}
	e := &Engine{base: store, store: store, opt: o, clock: o.clock, flights: newFlights(), stop: make(chan struct{})}
	e.life, e.endLife = context.WithCancel(context.Background())
	e.asks, e.completes = make(slots, o.MaxRecovering), make(slots, o.MaxRecovering)
	_, e.prompt = store.(Prompt)
	e.marker, _ = store.(StartMarker)
	if o.Sealer != nil {
		// What the engine asserts of the base above is about calls that carry
		// nothing to seal.
		e.store = &sealedStore{base: store, sealer: o.Sealer}
	}
	e.keeper.eng, e.backlog.eng = e, e
	return e, nil
}

// Claim tries to win the operation's key. Exactly one of three things comes back:
//
//   - an attempt: the caller runs the operation now, on the attempt's Context,
//     and ends the attempt with exactly one of Complete, Release and Abandon;
//   - a record that answers instead, by its State: Done (replay its Answer),
//     Running (still in progress after the wait), Lost (outcome unknown; may
//     have a Last), Expired (a tombstone), or Vacant: the attempt that this
//     caller waited for was released, with rec.Answer as its answer;
//   - an error: ErrKeyReused (rec is the record whose fingerprint differs),
//     ErrRecipeUnknown, ErrTooManyUnsettled, ErrUnavailable, ErrClosed, or the
//     context's cause.
//     Nothing was run.
//
// A caller whose context ends gets its answer at once. Claims run on a context
// of their own; one that is won after its caller left is given back.
func (e *Engine) Claim(ctx context.Context, op Operation) (*Attempt, Record, error) {
	if !e.gate.enter() {
		return nil, Record{}, ErrClosed
	}
	defer e.gate.leave()
	if err := e.admit(&op); err != nil {
		return nil, Record{}, err
	}
	id := op.Key.ID()
	if e.prompt {
		if rec, err, ok := e.peek(id, &op); ok {
			return nil, rec, err
		}
	}
	now := e.clock()
	came, until := now.mono, now.mono+op.Wait
	if !op.Asked.IsZero() {
		until -= max(now.wall.Sub(op.Asked), 0)
	}
	for ; ; now = e.clock() {
		f, lead := e.flights.join(id)
		if lead {
			a, rec, again, err := e.lead(ctx, f, &op, now)
			if !again {
				return a, rec, err
			}
			// The flight is not the leader's any more. To follow it, it joins it
			// like everybody else: what nobody has joined is used again.
			continue
		}
		rec, again, err := e.follow(ctx, f, &op, came, until)
		if !again {
			return nil, rec, err
		}
	}
}

// admit refuses an operation that this engine cannot take on now.
func (e *Engine) admit(op *Operation) error {
	switch {
	case !op.Policy.Valid():
		return errorf("operation with invalid policy %d", op.Policy)
	case op.Policy == Atomic:
		return errorf("policy %v is not offered yet", op.Policy)
	case e.backlog.full():
		return e.observeErr(MomentUnavailable, op.Key.ID(), op,
			fmt.Errorf("%w: too much waits for the store to take it", ErrUnavailable))
	}
	if len(op.Route) > MaxRoute {
		op.Route = op.Route[:MaxRoute]
	}
	if len(op.Label) > MaxLabel {
		op.Label = op.Label[:MaxLabel]
	}
	return nil
}

// judge turns a record that was not won into the caller's answer.
func (e *Engine) judge(id ID, op *Operation, rec Record) (Record, error) {
	if err := e.sameRequest(op, &rec); err != nil {
		return rec, e.observeErr(MomentKeyReused, id, op, err)
	}
	o := Observation{Attempt: rec.Attempt, Fence: rec.Fence, Reason: rec.Reason, Err: rec.Unreadable}
	switch rec.State {
	case Done:
		e.observe(MomentReplayed, id, op, o)
	case Lost:
		e.observe(MomentUnknown, id, op, o)
	case Expired:
		e.observe(MomentExpired, id, op, o)
	case Vacant, Running: // answered elsewhere
	}
	return rec, nil
}

// sameRequest compares the operation's fingerprint with the record's, by the
// record's recipe.
func (e *Engine) sameRequest(op *Operation, rec *Record) error {
	fp, ok := op.Fingerprint, true
	if fp.Recipe != rec.Fingerprint.Recipe {
		if op.Refingerprint == nil {
			return ErrRecipeUnknown
		}
		if fp, ok = op.Refingerprint(rec.Fingerprint.Recipe); !ok {
			return ErrRecipeUnknown
		}
	}
	if fp.Sum != rec.Fingerprint.Sum {
		return ErrKeyReused
	}
	return nil
}

// mayTakeOver: the attempt is lost, both the record and the code that would run
// now say that the next attempt may run, and its steps can be read.
func (e *Engine) mayTakeOver(op *Operation, rec *Record) bool {
	return rec.State == Lost && rec.Policy.TakesOver() && !rec.Reason.Parks() && op.Policy == rec.Policy &&
		rec.resumable() && e.sameRequest(op, rec) == nil
}

// Get returns the record of a key as the store has it. With ErrUnreadable it is
// what of the record can be opened.
func (e *Engine) Get(ctx context.Context, k Key) (Record, error) {
	return e.store.Get(ctx, k.ID())
}

// observe tells of a moment of a caller's operation.
func (e *Engine) observe(m Moment, id ID, op *Operation, o Observation) {
	e.tell(m, id, op.Route, op.Policy, o)
}

func (e *Engine) tell(m Moment, id ID, route string, policy Policy, o Observation) {
	if e.opt.Observe == nil {
		return
	}
	o.Moment, o.ID, o.Route, o.Policy = m, id, route, policy
	e.opt.Observe(o)
}

// observeErr observes an error and returns it.
func (e *Engine) observeErr(m Moment, id ID, op *Operation, err error) error {
	e.observe(m, id, op, Observation{Err: err})
	return err
}

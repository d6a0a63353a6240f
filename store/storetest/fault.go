package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/umavez/umavez"
)

// Fault is what happens to a call on its way to the store or back.
type Fault uint8

// The faults.
const (
	// Refused: the call does not reach the store, and its error says that it
	// was not applied, like that of a connection that could not be opened.
	Refused Fault = iota + 1
	// NotApplied: the call does not reach the store, and nobody knows.
	NotApplied
	// ReplyLost: the call is applied, and nobody knows.
	ReplyLost
	// CutOff: the caller's context ends while the store is at the call, after
	// Faulty.CutAfter.
	CutOff
)

// ErrInjected is the cause of the errors that a [Faulty] makes up.
var ErrInjected = errors.New("umavez: storetest: injected fault")

// Faulty is a store whose calls meet faults: each as often as it was asked for,
// and else passed through. It stands in front of any store, in tests of stores
// and of what is built on them. It is safe for concurrent use.
//
// It passes on the calls of [umavez.Store] alone: what else the store can do is
// not seen through it. [FaultySettling] shows more.
type Faulty struct {
	// CutAfter is when CutOff ends a call's context. Zero: while the call begins.
	CutAfter time.Duration

	store umavez.Store
	mu    sync.Mutex
	plans map[string][]plan
}

// plan is what the next call of a kind meets: a fault, or a gate.
type plan struct {
	fault Fault
	held  *HeldUp
}

var _ umavez.Store = (*Faulty)(nil)

// NewFaulty puts a Faulty in front of a store.
func NewFaulty(s umavez.Store) *Faulty { return &Faulty{store: s, plans: map[string][]plan{}} }

// Inject makes the next call op meet the fault. op is the call's name in a
// [umavez.StoreError]: "claim", "get" and so on. Several are met in turn.
func (f *Faulty) Inject(op string, fault Fault) { f.plan(op, plan{fault: fault}) }

// HoldUp stops the next call op on its way to the store, until the HeldUp lets it go
// on. A caller whose context ends meanwhile is told that nobody knows; its call
// stays on its way all the same.
func (f *Faulty) HoldUp(op string) *HeldUp {
	h := &HeldUp{arrived: make(chan struct{}), gate: make(chan struct{}), applied: make(chan struct{})}
	f.plan(op, plan{held: h})
	return h
}

func (f *Faulty) plan(op string, p plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[op] = append(f.plans[op], p)
}

func (f *Faulty) next(op string) (p plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if planned := f.plans[op]; len(planned) > 0 {
		p, f.plans[op] = planned[0], planned[1:]
	}
	return p
}

// HeldUp is a call that was stopped on its way.
type HeldUp struct{ arrived, gate, applied chan struct{} }

// Arrived is closed when the call has come to the gate.
func (h *HeldUp) Arrived() <-chan struct{} { return h.arrived }

// Go lets the call go on to the store, and returns when the store has answered.
// It is called once, after Arrived.
func (h *HeldUp) Go() {
	close(h.gate)
	<-h.applied
}

// through takes a call through what is planned for it.
func (f *Faulty) through(ctx context.Context, op string, do func(context.Context) reply) reply {
	p := f.next(op)
	if p.held != nil {
		return p.held.through(ctx, op, do)
	}
	switch p.fault {
	case Refused:
		return failed(op, umavez.No, ErrInjected)
	case NotApplied:
		return failed(op, umavez.Maybe, ErrInjected)
	case ReplyLost:
		do(ctx)
		return failed(op, umavez.Maybe, ErrInjected)
	case CutOff:
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(f.CutAfter, cancel)
		defer timer.Stop()
		return do(ctx)
	}
	return do(ctx)
}

func (h *HeldUp) through(ctx context.Context, op string, do func(context.Context) reply) reply {
	answered := make(chan reply, 1)
	go func() {
		defer close(h.applied)
		<-h.gate
		answered <- do(context.WithoutCancel(ctx))
	}()
	close(h.arrived)
	select {
	case r := <-answered:
		return r
	case <-ctx.Done():
		return failed(op, umavez.Maybe, ctx.Err())
	}
}

func failed(op string, applied umavez.Applied, cause error) reply {
	return reply{err: &umavez.StoreError{Op: op, Applied: applied, Err: cause}}
}

// Claim implements [umavez.Store].
func (f *Faulty) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	r := f.through(ctx, "claim", func(ctx context.Context) (r reply) {
		r.rec, r.acquired, r.err = f.store.Claim(ctx, id, req)
		return r
	})
	return r.rec, r.acquired, r.err
}

// Checkpoint implements [umavez.Store].
func (f *Faulty) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return f.through(ctx, "checkpoint", func(ctx context.Context) reply {
		return reply{err: f.store.Checkpoint(ctx, l, step, result)}
	}).err
}

// Complete implements [umavez.Store].
func (f *Faulty) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return f.through(ctx, "complete", func(ctx context.Context) reply {
		return reply{err: f.store.Complete(ctx, l, answer, keep)}
	}).err
}

// Release implements [umavez.Store].
func (f *Faulty) Release(ctx context.Context, l umavez.Lease) error {
	return f.through(ctx, "release", func(ctx context.Context) reply {
		return reply{err: f.store.Release(ctx, l)}
	}).err
}

// Abandon implements [umavez.Store].
func (f *Faulty) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	return f.through(ctx, "abandon", func(ctx context.Context) reply {
		return reply{err: f.store.Abandon(ctx, l, reason, last)}
	}).err
}

// Extend implements [umavez.Store].
func (f *Faulty) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return f.through(ctx, "extend", func(ctx context.Context) reply {
		return reply{err: f.store.Extend(ctx, l, d)}
	}).err
}

// Get implements [umavez.Store].
func (f *Faulty) Get(ctx context.Context, id umavez.ID) (umavez.Record, error) {
	r := f.through(ctx, "get", func(ctx context.Context) (r reply) {
		r.rec, r.err = f.store.Get(ctx, id)
		return r
	})
	return r.rec, r.err
}

package umavez

import (
	"bytes"
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"slices"
)

// How much of the list of lost records one pass of the worker reads: bounded, so
// that many thousand records that only people can settle cost no more than these
// pages every time. The next pass goes on where this one ended.
const (
	recoverPage  = 200
	recoverPages = 10
)

// worker looks through the lost records again and again, for one kind of work. It
// has no leader and agrees with no other process on anything: a record that two of
// them take up is held, or taken over, by one.
//
// There is one for each kind, so that a foreign system that answers no questions
// keeps nobody from completing.
type worker struct {
	eng    *Engine
	lister Lister
	slots  slots
	// due returns what is to be done about a record; nil: nothing now.
	due   func(l *Listed) func(context.Context)
	begun bool
	after ID // where the list goes on
}

// newAsker returns the worker that asks reconcilers.
func (e *Engine) newAsker(l Lister) *worker {
	return &worker{eng: e, lister: l, slots: e.asks, due: func(l *Listed) func(context.Context) {
		r := e.mayAsk(&l.Record)
		if r == nil {
			return nil
		}
		id, fence := l.ID, l.Fence
		return func(ctx context.Context) { e.reconcile(ctx, id, fence, r) }
	}}
}

// newCompleting returns the worker that has records completed.
func (e *Engine) newCompleting(l Lister) *worker {
	return &worker{eng: e, lister: l, slots: e.completes, due: func(l *Listed) func(context.Context) {
		c := e.mayComplete(&l.Record)
		if c == nil {
			return nil
		}
		id, fence := l.ID, l.Fence
		return func(ctx context.Context) { e.complete(ctx, id, fence, c) }
	}}
}

// pass looks through the lost records once, or through as many as a pass may. It
// begins at a place of its own, so that the workers of several processes do not
// all come by the same records at once.
func (w *worker) pass(ctx context.Context) {
	if !w.begun {
		w.begun = true
		rand.Read(w.after[:])
	}
	first, wrapped := w.after, false
	for range recoverPages {
		page, err := w.list(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.eng.tell(MomentRecoveryFailed, ID{}, "", Opaque, Observation{Err: err})
			}
			return
		}
		full := len(page) == recoverPage
		if wrapped { // as far as where this pass began
			n := len(page)
			page = slices.DeleteFunc(page, func(l Listed) bool { return bytes.Compare(l.ID[:], first[:]) > 0 })
			full = full && len(page) == n
		}
		mathrand.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
		for i := range page {
			if !w.take(ctx, &page[i]) {
				return
			}
		}
		switch {
		case full:
		case wrapped:
			return
		default:
			w.after, wrapped = ID{}, true
		}
	}
}

// list reads the next page and moves on.
func (w *worker) list(ctx context.Context) ([]Listed, error) {
	ctx, cancel := w.eng.callContext(ctx, 2*w.eng.opt.ClaimTimeout)
	defer cancel()
	page, err := w.lister.List(ctx, Query{States: []State{Lost}, After: w.after, Limit: recoverPage})
	if err == nil && len(page) > 0 {
		w.after = page[len(page)-1].ID
	}
	return page, err
}

// take takes a record up if it is due, as soon as there is a free slot. It is false
// when the worker is to stop. Close waits for what was taken up as it does for a
// caller; Run's context does not end it.
func (w *worker) take(ctx context.Context, l *Listed) bool {
	do := w.due(l)
	if do == nil {
		return ctx.Err() == nil
	}
	if !w.slots.take(ctx) {
		return false
	}
	e := w.eng
	if !e.gate.enter() {
		w.slots.give()
		return false // the engine takes nothing up any more
	}
	detached := context.WithoutCancel(ctx)
	started := e.goroutines.start(func() {
		defer e.gate.leave()
		defer w.slots.give()
		ctx, cancel := e.untilStopped(detached)
		defer cancel()
		do(ctx)
	})
	if !started {
		e.gate.leave()
		w.slots.give()
	}
	return started
}

package groupcommit

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/umavez/umavez"
)

// flight is one place for a batch under way. It is kept for the next one, with
// its slices.
type flight[O Op] struct {
	calls []*call[O]
	ops   []O
	errs  []error
	// number tells this flight's batches apart: a timer that fires late must
	// not give up on the next one.
	number uint64
}

// fly flushes batches, one after the other, until nothing waits.
func (b *Batcher[O]) fly() {
	var f *flight[O]
	for {
		f = b.board(f)
		if f == nil {
			return
		}
		b.flush(f)
		// The callers that have just been answered are runnable now. Those of
		// them that come back with their next operation make it into the next
		// batch, not the one after it.
		runtime.Gosched()
	}
}

// board fills the flight with the next batch; nil says that nothing waits and
// the flight is over.
func (b *Batcher[O]) board(f *flight[O]) *flight[O] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f == nil {
		if n := len(b.spare); n > 0 {
			f, b.spare = b.spare[n-1], b.spare[:n-1]
		} else {
			f = new(flight[O])
		}
	}
	f.calls = b.gather(f.calls[:0])
	if len(f.calls) == 0 {
		b.spare = append(b.spare, f)
		b.inFlight--
		b.closeIfIdle()
		return nil
	}
	for _, c := range f.calls {
		f.ops = append(f.ops, c.op)
	}
	f.errs = append(f.errs[:0], make([]error, len(f.calls))...)
	b.flushing++
	b.stats.Batches++
	b.stats.Rows += uint64(len(f.calls))
	b.stats.Largest = max(b.stats.Largest, len(f.calls))
	return f
}

// flush runs one batch and answers its callers.
func (b *Batcher[O]) flush(f *flight[O]) {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.MaxTime)
	// A flush that heeds its context ends a little after MaxTime, and knows
	// better than we do what became of the batch: it is given time to say so.
	number := f.number
	hung := time.AfterFunc(b.cfg.MaxTime+b.cfg.MaxTime/4, func() { b.giveUp(f, number) })
	err := b.cfg.Flush(ctx, f.ops, f.errs)
	hung.Stop()
	cancel()
	b.land(f, err)
}

// land answers everyone in the batch who has not been answered and has not left.
func (b *Batcher[O]) land(f *flight[O], whole error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.number++
	b.flushing--
	for i, c := range f.calls {
		if c.state != inFlight {
			continue
		}
		err := f.errs[i]
		if whole != nil {
			err = share(c.op.Name(), whole)
		}
		if alone, ok := errors.AsType[*Alone](err); ok {
			if len(f.calls) > 1 {
				c.state = queued
				b.alone.push(c)
				continue
			}
			err = alone.Err
		}
		c.answer(err)
	}
	// Nothing of the batch is kept alive by the flight's slices.
	clear(f.calls)
	clear(f.ops)
	clear(f.errs)
	f.ops = f.ops[:0]
}

// share makes the batch's failure the failure of one call in it.
func share(name string, whole error) error {
	cause := whole
	if se, ok := errors.AsType[*umavez.StoreError](whole); ok {
		cause = se.Err
	}
	return &umavez.StoreError{Op: name, Applied: umavez.AppliedOf(whole), Err: cause}
}

// giveUp answers the callers of a batch that does not end: it may have been
// applied. The batch keeps its place in flight, since its connection is not free.
func (b *Batcher[O]) giveUp(f *flight[O], number uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.number != number {
		return
	}
	b.stats.GivenUp++
	for _, c := range f.calls {
		if c.state == inFlight {
			c.answer(share(c.op.Name(), ErrHung))
		}
	}
}

// answer gives the call its result. Called with mu held.
func (c *call[O]) answer(err error) {
	c.err, c.state = err, answered
	c.done <- struct{}{}
}

package groupcommit

import (
	"context"
	"errors"
	"sync"

	"github.com/umavez/umavez"
)

// Batcher gathers operations into batches. Make one with [New], and end it with
// Close. It is safe for concurrent use.
type Batcher[O Op] struct {
	cfg   Config[O]
	calls sync.Pool // *call[O] that nobody refers to any more

	mu         sync.Mutex
	queue      list[O] // waits for a batch, in order of arrival
	queueBytes int
	alone      list[O] // waits for a batch of its own
	aloneNext  bool    // the next batch comes from alone, if there is one
	arrivals   uint64
	inFlight   int          // flights, with a batch or on their way to one
	flushing   int          // of these, the ones with a batch
	spare      []*flight[O] // flights that have ended, for their slices
	closed     bool
	idle       chan struct{} // closed when closed and nothing is under way
	stats      Stats
	inBatch    map[umavez.ID]struct{} // gather's scratch, with OnePerKey only
}

// call is one operation's way through the batcher. Everything but done is
// guarded by the batcher's mu.
type call[O Op] struct {
	op    O
	key   umavez.ID
	size  int
	order uint64 // of arrival
	state state
	err   error
	// done gets one value when the call is answered. Buffered, so that whoever
	// answers never waits for a caller that has left.
	done chan struct{}

	list       *list[O] // the list it waits in
	prev, next *call[O]
}

type state uint8

const (
	queued   state = iota
	inFlight       // its batch is under way
	answered       // err is its result
	left           // its caller has gone
)

// New makes a batcher. It starts nothing.
func New[O Op](cfg Config[O]) *Batcher[O] {
	orDefault(&cfg.InFlight, defaultInFlight)
	orDefault(&cfg.MaxRows, defaultMaxRows)
	orDefault(&cfg.MaxBytes, defaultMaxBytes)
	orDefault(&cfg.MaxTime, defaultMaxTime)
	orDefault(&cfg.MaxQueue, defaultMaxQueue)
	orDefault(&cfg.MaxQueueBytes, defaultMaxQueueBytes)
	b := &Batcher[O]{cfg: cfg, idle: make(chan struct{})}
	b.calls.New = func() any { return &call[O]{done: make(chan struct{}, 1)} }
	if cfg.OnePerKey {
		b.inBatch = make(map[umavez.ID]struct{}, cfg.MaxRows)
	}
	return b
}

func orDefault[N ~int | ~int64](n *N, d N) {
	if *n <= 0 {
		*n = d
	}
}

// Do puts the operation into a batch and waits for its result: nil, or the
// error that the flush gave it. A [*umavez.StoreError] says whether the
// operation may have been applied: No when it was refused or its context ended
// before its batch began, Maybe when its batch was under way.
func (b *Batcher[O]) Do(ctx context.Context, op O) error {
	if ctx.Err() != nil {
		return &umavez.StoreError{Op: op.Name(), Applied: umavez.No, Err: context.Cause(ctx)}
	}
	c := b.calls.Get().(*call[O])
	c.op, c.key, c.size = op, op.Key(), op.Size()
	if err := b.enqueue(c); err != nil {
		b.recycle(c)
		return &umavez.StoreError{Op: op.Name(), Applied: umavez.No, Err: err}
	}
	select {
	case <-c.done:
		return b.result(c)
	case <-ctx.Done():
		return b.leave(ctx, c)
	}
}

// enqueue lets the call wait, and starts a flight for it if one is free.
func (b *Batcher[O]) enqueue(c *call[O]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.queue.len >= b.cfg.MaxQueue,
		b.queue.len > 0 && b.queueBytes+c.size > b.cfg.MaxQueueBytes:
		return ErrFull
	}
	b.arrivals++
	c.order, c.state = b.arrivals, queued
	b.queue.push(c)
	b.queueBytes += c.size
	if b.inFlight < b.cfg.InFlight {
		b.inFlight++
		go b.fly()
	}
	return nil
}

// result takes an answered call apart. Only here, and where no flight ever had
// it, may a call be used again: nobody else holds on to it.
func (b *Batcher[O]) result(c *call[O]) error {
	err := c.err
	if !errors.Is(err, ErrHung) {
		b.recycle(c)
	}
	return err
}

func (b *Batcher[O]) recycle(c *call[O]) {
	var none O
	c.op, c.err = none, nil
	b.calls.Put(c)
}

// leave ends the wait of a caller whose context has ended.
func (b *Batcher[O]) leave(ctx context.Context, c *call[O]) error {
	b.mu.Lock()
	was := c.state
	switch was {
	case queued:
		b.unqueue(c)
	case inFlight:
		c.state = left
	}
	b.mu.Unlock()

	name, cause := c.op.Name(), context.Cause(ctx)
	switch was {
	case queued:
		b.recycle(c)
		return &umavez.StoreError{Op: name, Applied: umavez.No, Err: cause}
	case answered: // just now; the answer is worth more than the leaving
		<-c.done
		return b.result(c)
	}
	return &umavez.StoreError{Op: name, Applied: umavez.Maybe, Err: cause}
}

// Close takes no new operations, and waits until those that were taken have
// their results, or ctx ends: then it returns the cause. Batches under way go on.
func (b *Batcher[O]) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		b.closeIfIdle()
	}
	b.mu.Unlock()
	select {
	case <-b.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeIfIdle is called with mu held, wherever closed or inFlight change. A
// queue is never left without a flight, so that none in flight means none waits.
func (b *Batcher[O]) closeIfIdle() {
	if b.closed && b.inFlight == 0 {
		select {
		case <-b.idle:
		default:
			close(b.idle)
		}
	}
}

// Idle reports whether an operation would be flushed at once.
func (b *Batcher[O]) Idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flushing < b.cfg.InFlight && b.queue.first == nil
}

// Stats returns the counts.
func (b *Batcher[O]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Queued = b.queue.len + b.alone.len
	s.InFlight = b.flushing
	return s
}

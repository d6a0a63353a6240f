package umavez

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Heartbeats extend a lease every third of it; one that got no answer is tried
// again after a fifteenth. So a lease survives a store that is away for half of it.
const (
	beatsPerLease   = 3
	retriesPerLease = 15
)

// maxBeats is how many leases are extended at once: a store that batches takes
// many together, and one that hangs holds no more goroutines than these.
const maxBeats = 64

// never is when the next beat of an attempt is due that has no more.
const never = time.Duration(math.MaxInt64)

// beat is an attempt's place with the keeper.
type beat struct {
	due   time.Duration // by the monotonic clock
	index int           // in the heap, from 1; 0: not in it
	busy  bool          // an extend is under way
	over  bool          // MaxRun is over
}

// keeper keeps the leases of all running attempts alive: one heap by due time
// and one timer for the whole engine. The timer is armed no more often than a
// beat falls due, so that operations shorter than that cost it nothing.
type keeper struct {
	eng *Engine

	mu    sync.Mutex
	heap  beatHeap
	timer *time.Timer
	armed time.Duration // when the timer fires next; 0: it is not armed
	slots chan struct{}
	idle  signal // the heap has emptied
}

// add starts an attempt's heartbeat.
func (k *keeper) add(a *Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.beat.due = a.began.mono + k.eng.opt.Lease/beatsPerLease
	heap.Push(&k.heap, a)
	k.arm()
}

// remove ends an attempt's heartbeat.
func (k *keeper) remove(a *Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a.beat.index == 0 {
		return
	}
	heap.Remove(&k.heap, a.beat.index-1)
	if len(k.heap) == 0 {
		k.idle.wake()
	}
}

// arm sets the timer if the next beat is due before it would fire. Called with
// the mutex held.
func (k *keeper) arm() {
	if len(k.heap) == 0 || k.heap[0].beat.due == never {
		return
	}
	due := k.heap[0].beat.due
	if k.armed != 0 && k.armed <= due {
		return
	}
	k.armed = due
	wait := max(due-k.eng.clock().mono, time.Millisecond)
	if k.timer == nil {
		k.slots = make(chan struct{}, maxBeats)
		k.timer = time.AfterFunc(wait, k.fire)
		return
	}
	k.timer.Reset(wait)
}

// fire extends what is due. It runs on the timer's goroutine.
func (k *keeper) fire() {
	k.eng.goroutines.run(k.fireNow)
}

func (k *keeper) fireNow() {
	for _, a := range k.due() {
		if k.eng.prompt {
			k.beat(a)
			continue
		}
		k.slots <- struct{}{}
		started := k.eng.goroutines.start(func() {
			k.beat(a)
			<-k.slots
		})
		if !started {
			return
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = 0
	k.arm()
}

// due takes the attempts whose beat is due, and sets the next one.
func (k *keeper) due() []*Attempt {
	now := k.eng.clock().mono
	k.mu.Lock()
	defer k.mu.Unlock()
	var due []*Attempt
	for len(k.heap) > 0 && k.heap[0].beat.due <= now {
		a := k.heap[0]
		a.beat.due = now + k.eng.opt.Lease/beatsPerLease
		heap.Fix(&k.heap, 0)
		if !a.beat.busy {
			a.beat.busy = true
			due = append(due, a)
		}
	}
	return due
}

// next ends a beat and sets the due time of the following one.
func (k *keeper) next(a *Attempt, due time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.beat.busy = false
	if a.beat.index == 0 {
		return
	}
	a.beat.due = due
	heap.Fix(&k.heap, a.beat.index-1)
	k.arm()
}

// beat extends one lease, at most to MaxRun after the attempt's start.
func (k *keeper) beat(a *Attempt) {
	e := k.eng
	sent := e.clock()
	left := e.opt.MaxRun - sent.since(a.began)
	if left <= 0 {
		k.overrun(a, sent)
		return
	}
	d := min(e.opt.Lease, left)
	ctx, cancel := e.callContext(context.Background(), e.opt.Lease/(2*beatsPerLease))
	err := e.store.Extend(ctx, a.lease, d)
	cancel()
	switch {
	case err == nil:
		a.mu.Lock()
		a.leaseEnd = sent.plus(d)
		a.mu.Unlock()
		a.observe(MomentExtended, a.observation())
		// The last beat, at MaxRun, only tells that it is over.
		k.next(a, sent.mono+min(e.opt.Lease/beatsPerLease, left))
	case isAnswer(err):
		k.next(a, never)
		a.overdue(MomentLeaseLost, err)
	default:
		o := a.observation()
		o.Err = err
		a.observe(MomentExtendFailed, o)
		k.next(a, sent.mono+e.opt.Lease/retriesPerLease)
		if a.leaseLeft() <= 0 {
			a.overdue(MomentExtendFailed, ErrLeaseRanOut)
		}
	}
}

// overrun is the beat of an attempt past MaxRun. It extends nothing. An opaque
// operation runs on, and still has to be told when its key is settled.
func (k *keeper) overrun(a *Attempt, sent reading) {
	e := k.eng
	if !a.beat.over {
		a.beat.over = true // beats of one attempt come one after the other
		a.overdue(MomentRunTooLong, nil)
	} else {
		ctx, cancel := e.callContext(context.Background(), e.opt.Lease/(2*beatsPerLease))
		rec, err := e.store.Get(ctx, a.lease.ID)
		cancel()
		if err == nil && (rec.Attempt != a.lease.Attempt || rec.Settled) {
			k.next(a, never)
			a.cancel(ErrLeaseLost)
			return
		}
	}
	if a.policy != Opaque {
		k.next(a, never)
		return
	}
	k.next(a, sent.mono+e.opt.Lease)
}

// owns reports whether an attempt runs in this process under a lease that is good
// by the process's own clocks, whatever the store's clock says of it.
func (k *keeper) owns(id AttemptID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.heap {
		if a.lease.Attempt == id {
			return a.leaseLeft() > 0
		}
	}
	return false
}

// overdue: duplicates must no longer follow this attempt, but ask the store. An
// opaque operation runs on, since its late answer still counts; its context
// ends only when the record was taken from it. Any other operation stops as
// soon as another attempt may be running it.
func (a *Attempt) overdue(m Moment, cause error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return // the record no longer runs because the attempt ended it
	}
	// Under the mutex: once the attempt has ended, its flight may be another's.
	a.eng.flights.land(a.flight, endRetry, Record{}, nil)
	a.mu.Unlock()
	o := a.observation()
	o.Err = cause
	if m != MomentExtendFailed {
		a.observe(m, o)
	}
	switch {
	case errors.Is(cause, ErrLeaseLost):
		a.cancel(cause)
	case a.policy != Opaque:
		a.cancel(ErrLeaseRanOut)
	}
}

// beatHeap orders attempts by due time, as container/heap wants it.
type beatHeap []*Attempt

func (h beatHeap) Len() int           { return len(h) }
func (h beatHeap) Less(i, j int) bool { return h[i].beat.due < h[j].beat.due }

func (h beatHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].beat.index, h[j].beat.index = i+1, j+1
}

// Push is for container/heap.
func (h *beatHeap) Push(x any) {
	a := x.(*Attempt)
	*h = append(*h, a)
	a.beat.index = len(*h)
}

// Pop is for container/heap.
func (h *beatHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.beat.index = 0
	return a
}

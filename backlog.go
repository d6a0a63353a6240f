package umavez

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// job is the end of an attempt, on its way to the store: one of the three calls
// that must be repeated until the store has answered.
type job struct {
	kind    jobKind
	lease   *Lease
	attempt *Attempt // nil: a claim that was never known to be won
	payload []byte   // the answer, or the last word
	reason  Reason
	back    bool // it gives back a claim whose operation never started

	due   time.Duration // of the next try, by the monotonic clock
	pause time.Duration
}

type jobKind uint8

const (
	jobComplete jobKind = iota
	jobRelease
	jobAbandon
)

// giveBack is the end of a claim whose operation never started: nothing happened,
// and the key is vacant again. Not so when the claim has taken over a lost record:
// earlier attempts may have sent what must not be forgotten, so the record stays
// lost. (A takeover that arrives later still leaves a row that nobody runs, and
// that is lost when its lease ends.)
func giveBack(l *Lease, over bool) *job {
	if over {
		return &job{kind: jobAbandon, reason: ReasonKilled, lease: l, back: true}
	}
	return &job{kind: jobRelease, lease: l, back: true}
}

func (j *job) call(ctx context.Context, s Store) error {
	switch j.kind {
	case jobComplete:
		return s.Complete(ctx, *j.lease, j.payload, j.attempt.retention)
	case jobRelease:
		return s.Release(ctx, *j.lease)
	default:
		return s.Abandon(ctx, *j.lease, j.reason, j.payload)
	}
}

// givesBack: its end makes the key free for the next attempt, so that a caller who
// leaves again and again could have any number of these.
func (j *job) givesBack() bool { return j.kind == jobRelease || j.back }

// repeat makes a store call until the store answers, for at most SaveTimeout.
// It runs detached from any client.
func (e *Engine) repeat(call func(context.Context) error) error {
	if e.prompt {
		if err := call(context.Background()); isAnswer(err) {
			return err
		}
	}
	began := e.clock()
	for pause := repeatFirst; ; pause = min(2*pause, repeatLast) {
		left := e.opt.SaveTimeout - e.clock().since(began)
		ctx, cancel := context.WithTimeout(context.Background(), left)
		err := call(ctx)
		cancel()
		if isAnswer(err) || e.clock().since(began)+pause >= e.opt.SaveTimeout || !e.pause(pause) {
			return err
		}
	}
}

// conclude draws the conclusions from the store's answer to a job, and returns it.
func (e *Engine) conclude(j *job, err error) error {
	a := j.attempt
	if a == nil {
		return err
	}
	if errors.Is(err, ErrHasSteps) {
		// A record that holds a step is not released: its lease ends instead.
		j.kind, j.reason = jobAbandon, ReasonStatus
		e.backlog.add(j)
		return err
	}
	e.keeper.remove(a)
	o := a.observation()
	if e.opt.Observe != nil {
		o.Took = e.clock().since(a.began)
	}
	end, rec := endRetry, Record{}
	switch {
	case err != nil:
		o.Err = err
		if errors.Is(err, ErrContradicted) {
			a.observe(MomentContradicted, o)
		}
		a.observe(MomentLeaseLost, o)
	case j.kind == jobComplete:
		a.observe(MomentCompleted, o)
		end = endAnswered
		rec = Record{
			State: Done, Policy: a.policy, Route: a.route, Fingerprint: a.fingerprint,
			Attempt: a.lease.Attempt, Fence: a.lease.Fence,
			Answer: j.payload, RetainLeft: a.retention.Retain,
		}
	case j.kind == jobRelease:
		a.observe(MomentReleased, o)
		if j.payload != nil {
			end, rec = endReleased, Record{State: Vacant, Fingerprint: a.fingerprint, Answer: j.payload}
		}
	default:
		o.Reason = j.reason
		a.observe(MomentAbandoned, o)
	}
	a.land(end, rec)
	return err
}

// backlogWorkers is how many calls of the backlog are made at once: enough for
// a store that batches, few enough not to crowd out new claims.
const backlogWorkers = 8

// backlog repeats jobs until the store has answered each: completions, lease or
// no lease; releases of what was never started; abandons. Its goroutine lives
// only while there are jobs. When too much waits, the engine takes no new
// claims, so that the backlog is bounded by what was running then.
type backlog struct {
	eng *Engine

	mu      sync.Mutex
	jobs    []*job // waiting for their next try
	count   int    // all jobs, also those being tried
	running bool
	idle    signal // count has fallen to 0

	// Every claim asks for these two, without the mutex: a claim more or less
	// does not matter to what they bound.
	bytes    atomic.Int64 // of all jobs' payloads
	releases atomic.Int64 // all jobs that give back a key
}

// full reports that no new claim may be taken.
func (b *backlog) full() bool {
	return b.bytes.Load() >= b.eng.opt.MaxUnsaved || b.releases.Load() >= int64(b.eng.opt.MaxReleases)
}

// add puts a job in line and has it tried at once.
func (b *backlog) add(j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.due, j.pause = b.eng.clock().mono, repeatFirst
	b.jobs = append(b.jobs, j)
	b.count++
	b.bytes.Add(int64(len(j.payload)))
	if j.givesBack() {
		b.releases.Add(1)
	}
	if !b.running {
		b.running = b.eng.goroutines.start(b.run)
	}
}

// run tries jobs until none is left, or the engine stops.
func (b *backlog) run() {
	slots := make(chan struct{}, backlogWorkers)
	var tries sync.WaitGroup
	defer tries.Wait()
	for {
		j, wait := b.next()
		switch {
		case j != nil:
			slots <- struct{}{}
			tries.Go(func() {
				b.try(j)
				<-slots
			})
		case wait < 0:
			return
		case !b.eng.pause(wait):
			b.mu.Lock()
			b.running = false
			b.mu.Unlock()
			return
		}
	}
}

// backlogTick is the longest that a new job waits while others back off.
const backlogTick = 20 * time.Millisecond

// next takes the job that has been due for longest. Without one, it tells how
// long to wait; less than zero: the backlog is empty, and run has ended.
func (b *backlog) next() (*job, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == 0 {
		b.running = false
		return nil, -1
	}
	now := b.eng.clock().mono
	first := -1
	for i, j := range b.jobs {
		if j.due <= now && (first < 0 || j.due < b.jobs[first].due) {
			first = i
		}
	}
	if first < 0 {
		return nil, backlogTick
	}
	j := b.jobs[first]
	last := len(b.jobs) - 1
	b.jobs[first], b.jobs[last] = b.jobs[last], nil
	b.jobs = b.jobs[:last]
	return j, 0
}

// try makes one call, and puts the job back in line if the store did not answer.
func (b *backlog) try(j *job) {
	ctx, cancel := context.WithTimeout(context.Background(), b.eng.opt.SaveTimeout)
	err := j.call(ctx, b.eng.store)
	cancel()
	if isAnswer(err) {
		back, size := j.givesBack(), int64(len(j.payload))
		_ = b.eng.conclude(j, err) // an answer that says no has been observed; nobody waits for it
		b.done(back, size)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	j.due = b.eng.clock().mono + j.pause
	j.pause = min(2*j.pause, repeatLast)
	b.jobs = append(b.jobs, j)
}

func (b *backlog) done(back bool, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count--
	b.bytes.Add(-size)
	if back {
		b.releases.Add(-1)
	}
	if b.count == 0 {
		b.idle.wake()
	}
}

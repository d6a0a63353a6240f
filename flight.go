package umavez

import (
	"sync"
	"time"
)

// A flight is what this process is doing about one key: claiming it, running
// it, or watching another process run it. Duplicates join the flight instead of
// asking the store, and wake when it changes.
type flight struct {
	id ID

	// The rest is guarded by the shard's mutex.
	phase   flightPhase
	attempt *Attempt // of this process; nil when it only watches
	rec     *Record  // while it only watches or asks, the last one seen; the answer when over
	err     error    // what the claim failed with; when over
	joined  bool     // somebody followed it
	waiters int
	watched bool // a goroutine asks the store after it, or a reconciler
	changed signal
	// when over:
	end   flightEnd
	baton bool          // of a released flight, one waiter has gone to claim
	sent  time.Duration // when the claim was sent that rec answered, by the monotonic clock
}

type flightPhase uint8

const (
	flightClaiming flightPhase = iota // the first comer asks the store
	flightRunning                     // an attempt runs, here or elsewhere; or somebody is asked what became of it
	flightOver                        // no longer in the table
)

type flightEnd uint8

const (
	endRetry    flightEnd = iota // look again: whatever the store says now
	endAnswered                  // rec is what the store has acknowledged
	endReleased                  // rec.Answer goes to all waiters but one, who claims
	endFailed                    // err
)

const flightShards = 64

// flights is the table of this process's flights.
type flights struct {
	shards [flightShards]flightShard
}

type flightShard struct {
	mu sync.Mutex
	m  map[ID]*flight
}

func newFlights() *flights {
	t := new(flights)
	for i := range t.shards {
		t.shards[i].m = make(map[ID]*flight)
	}
	return t
}

// shard: an ID is a hash, so its first byte spreads well.
func (t *flights) shard(id ID) *flightShard { return &t.shards[id[0]%flightShards] }

// join returns the key's flight; lead says that the caller started it and must
// carry it on.
func (t *flights) join(id ID) (f *flight, lead bool) {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f = s.m[id]; f != nil {
		f.joined = true
		return f, false
	}
	f = flightPool.Get().(*flight)
	f.id = id
	s.m[id] = f
	return f, true
}

// flightPool keeps what each claim would otherwise allocate: most flights are
// joined by nobody.
var flightPool = sync.Pool{New: func() any { return new(flight) }}

// recycle takes back a flight that is over and that nobody joined, from the last
// one who knows of it: the leader, or the attempt that ended.
func (t *flights) recycle(f *flight) {
	if f.joined {
		return
	}
	*f = flight{}
	flightPool.Put(f)
}

// run says that an attempt of this process is running. A flight that is over
// already stays so.
func (t *flights) run(f *flight, a *Attempt) { t.fly(f, a, nil) }

// watch says that the record is running in another process.
func (t *flights) watch(f *flight, rec Record) { t.fly(f, nil, &rec) }

// asking says that a reconciler is asked about the lost record. Whoever asks lands
// the flight.
func (t *flights) asking(f *flight, rec Record) {
	s := t.shard(f.id)
	s.mu.Lock()
	f.watched = true
	s.mu.Unlock()
	t.fly(f, nil, &rec)
}

// asked reports whether the flight is one that asks a reconciler. Called with the
// mutex held.
func (f *flight) asked() bool {
	return f.phase == flightRunning && f.attempt == nil && f.rec.State == Lost
}

func (t *flights) fly(f *flight, a *Attempt, rec *Record) {
	s := t.shard(f.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.phase == flightOver {
		return
	}
	f.phase, f.attempt, f.rec = flightRunning, a, rec
	f.changed.wake()
}

// running is the record of a running flight. Called with the mutex held.
func (f *flight) running() Record {
	a := f.attempt
	if a == nil {
		return *f.rec
	}
	return Record{
		State: Running, Policy: a.policy, Route: a.route, Fingerprint: a.fingerprint,
		Attempt: a.lease.Attempt, Fence: a.lease.Fence,
	}
}

// land ends a flight, once: later calls change nothing. The key's next comer
// starts a new one.
func (t *flights) land(f *flight, end flightEnd, rec Record, err error) {
	s := t.shard(f.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.land(f, end, rec, err)
}

func (s *flightShard) land(f *flight, end flightEnd, rec Record, err error) {
	if f.phase == flightOver {
		return
	}
	delete(s.m, f.id)
	f.phase, f.end, f.err = flightOver, end, err
	if end != endRetry && f.joined { // else nobody will ask for it
		kept := rec
		f.rec = &kept
	}
	f.changed.wake()
}

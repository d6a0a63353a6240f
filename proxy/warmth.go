package proxy

import (
	"sync"
	"time"
)

// How long a connection may have been idle when a request is put on it (rule
// P11). An upstream that closes it for idleness just then leaves a request of
// which nobody knows whether it was read: a needless *unknown*.
const (
	// warmMost is the longest, for any upstream. Node closes after 5 s.
	warmMost = 2 * time.Second
	// watched is how long idle connections are left open to see what the
	// upstream does with them. Gunicorn closes after 2 s, which must be seen.
	watched = 2 * warmMost
	// warmLeast is what is taken for safe of an upstream that nothing is known
	// of yet, and the least that is learned from a close: a restart closes
	// connections of any age, and a sidecar that opened a connection for each
	// request from then on would run out of ports.
	warmLeast = 100 * time.Millisecond
	// briefMost is how many closes within warmLeast are put down to a restart.
	// After more of them the upstream is one that hangs up after each answer
	// without saying so, until a connection has stayed open.
	briefMost = 2
	// warmMargin is what is taken off the time that the upstream announces in
	// Keep-Alive, which is in whole seconds.
	warmMargin = time.Second
	// warmMemory is how long a close for idleness is remembered.
	warmMemory = 5 * time.Minute
)

// warmth learns for how long the upstream leaves idle connections open, by
// watching what becomes of those that nobody uses. Two seconds alone are no
// rule: some upstreams close after 300 ms, and most say nothing of it.
//
//   - A connection that the upstream closed after being idle for a time makes
//     half of that time the limit.
//   - One that was still open after it was watched makes half of that time the
//     limit, which is warmMost, unless another one was closed sooner: there may
//     be several upstreams behind a balancer.
//   - Until either has happened, warmLeast is the limit.
type warmth struct {
	now func() time.Time

	mu       sync.Mutex
	shortest time.Duration // of the closes that are remembered; 0: none
	seen     time.Time     // when the latest of them was
	brief    int           // closes within warmLeast, since one stayed open
	proven   bool          // one stayed open
}

// limit returns the idle time below which a connection counts as warm.
func (w *warmth) limit() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	switch {
	case w.brief > briefMost:
		return 0
	case w.shortest > 0:
		return min(max(w.shortest/2, warmLeast), warmMost)
	case w.proven:
		return warmMost
	}
	return warmLeast
}

// closed notes that the upstream closed a connection that was idle for so long.
func (w *warmth) closed(idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	if idle = max(idle, 1); w.shortest == 0 || idle < w.shortest {
		w.shortest = idle
	}
	if idle < warmLeast {
		w.brief++
	}
	w.seen, w.proven = w.now(), false
}

// stayedOpen notes that a connection was still open after it was watched.
func (w *warmth) stayedOpen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	w.brief, w.proven = 0, w.shortest == 0
}

// forget drops what has not been seen again for long. Connections are left open
// past the limit, so an upstream that still closes them early is seen to do so
// again and again.
func (w *warmth) forget() {
	if w.shortest > 0 && w.now().Sub(w.seen) >= warmMemory {
		w.shortest = 0
	}
}

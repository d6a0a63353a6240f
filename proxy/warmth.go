package proxy

import (
	"sync"
	"time"
)

// How long a connection may have been idle when a request is put on it (rule
// P11). An upstream that closes it for idleness just then leaves a request of
// which nobody knows whether it was read: a needless *unknown*.
const (
	// warmMost is the longest, for any upstream: Node closes after 5 s, and
	// nothing else in wide use closes sooner by default.
	warmMost = 2 * time.Second
	// warmLeast is what is taken for safe of an upstream that nothing is known
	// of yet, and also of one that was seen to close very soon: an upstream that
	// restarts closes connections of any age, and a sidecar that then opened a
	// connection for each request would run out of ports.
	warmLeast = 100 * time.Millisecond
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
//   - One that was still open after warmMost makes warmMost the limit, unless
//     another one was closed sooner: there may be several upstreams behind a
//     balancer.
//   - Until either has happened, warmLeast is the limit.
type warmth struct {
	now func() time.Time

	mu       sync.Mutex
	shortest time.Duration // of the closes that are remembered; 0: none
	seen     time.Time     // when the latest of them was
	proven   bool          // some connection outlived warmMost
}

// limit returns the idle time below which a connection counts as warm.
func (w *warmth) limit() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	switch {
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
	w.seen, w.proven = w.now(), false
}

// survived notes that a connection was still open after warmMost.
func (w *warmth) survived() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
	w.proven = w.shortest == 0
}

// forget drops what has not been seen again for long. Connections are kept open
// past the limit (see pool.go), so an upstream that still closes them early is
// seen to do so again and again.
func (w *warmth) forget() {
	if w.shortest > 0 && w.now().Sub(w.seen) >= warmMemory {
		w.shortest = 0
	}
}

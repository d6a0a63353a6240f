package umavez

import (
	"math"
	"sync"
	"time"
)

// leaps notices when the process's two clocks have moved apart: the machine was
// suspended, or its wall clock was set. Time that has leapt is no quiet time: what
// was on the wire stood still as well, and goes on only now.
type leaps struct {
	mu   sync.Mutex
	last reading
	at   time.Duration // of the last leap, by the monotonic clock
	seen bool
}

// look compares the clocks with the last look's. What they are apart by more than
// tolerance is a leap.
func (l *leaps) look(now reading, tolerance time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.wall.IsZero() {
		apart := now.wall.Sub(l.last.wall) - (now.mono - l.last.mono)
		if apart.Abs() > tolerance {
			l.at, l.seen = now.mono, true
		}
	}
	l.last = now
}

// calm is how long the clocks have gone together, as far as this process knows.
func (l *leaps) calm(now reading) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen {
		return math.MaxInt64
	}
	return now.mono - l.at
}

package umavez

import (
	"sync"
	"sync/atomic"
)

// gate counts the callers inside Claim, and the claims that they left behind,
// and lets no more in once closed. Every request passes it twice, so it takes no
// mutex as long as it is open.
type gate struct {
	state atomic.Int64 // the callers inside, plus gateClosed
	mu    sync.Mutex
	idle  signal // the last caller has left
}

// gateClosed is far more than there can be callers.
const gateClosed = 1 << 40

func (g *gate) enter() bool {
	if g.state.Add(1) < gateClosed {
		return true
	}
	g.leave()
	return false
}

// again counts one more, on behalf of somebody who is inside: what goes on when
// that one has left.
func (g *gate) again() { g.state.Add(1) }

func (g *gate) leave() {
	if g.state.Add(-1) != gateClosed {
		return
	}
	// Whoever waits has looked at the count under the mutex, so is there by now
	// or will see that nobody is left.
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle.wake()
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state.Load() < gateClosed {
		g.state.Add(gateClosed)
	}
}

// whenIdle returns a channel that is closed when the last caller has left a
// closed gate, or nil when nobody is inside.
func (g *gate) whenIdle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state.Load() == gateClosed {
		return nil
	}
	return g.idle.wait()
}

package umavez

import "sync"

// goroutines is every goroutine of an engine. Once stopped it starts no more,
// so that waiting for the rest has an end.
type goroutines struct {
	mu      sync.Mutex
	stopped bool
	group   sync.WaitGroup
}

// start runs f on a goroutine of its own, unless the engine has stopped.
func (g *goroutines) start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	g.group.Go(f)
	return true
}

// run runs f here, as one of the engine's goroutines.
func (g *goroutines) run(f func()) {
	g.mu.Lock()
	if g.stopped {
		g.mu.Unlock()
		return
	}
	g.group.Add(1)
	g.mu.Unlock()
	defer g.group.Done()
	f()
}

func (g *goroutines) stop(stop chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopped {
		g.stopped = true
		close(stop)
	}
}

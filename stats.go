package umavez

// Stats tells what an engine is doing now.
type Stats struct {
	// Running counts the attempts that have started and whose end the store
	// has not acknowledged.
	Running int
	// Waiting counts the duplicates that wait for a running attempt.
	Waiting int
	// Backlog counts the ends of attempts that the store has not acknowledged
	// in time, UnsavedBytes what their answers hold, and Releases those among
	// them that give back a key.
	Backlog      int
	UnsavedBytes int64
	Releases     int
	// Asking counts the lost records that reconcilers are asked about now, and
	// Completing those that completers finish.
	Asking, Completing int
}

// Stats returns the engine's numbers of this moment; they are read one after
// the other.
func (e *Engine) Stats() Stats {
	var s Stats
	e.keeper.mu.Lock()
	s.Running = len(e.keeper.heap)
	e.keeper.mu.Unlock()
	s.Waiting = int(e.waiters.Load())
	e.backlog.mu.Lock()
	s.Backlog = e.backlog.count
	s.UnsavedBytes, s.Releases = e.backlog.bytes.Load(), int(e.backlog.releases.Load())
	e.backlog.mu.Unlock()
	s.Asking, s.Completing = len(e.asks), len(e.completes)
	return s
}

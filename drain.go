package umavez

import (
	"context"
	"fmt"
)

// UnfinishedError tells what Close left behind when its context ended.
type UnfinishedError struct {
	// Running are the attempts whose operation had not ended: they will be lost.
	Running []Unfinished
	// Waiting are those whose end the store had not acknowledged.
	Waiting []Unfinished
}

// Unfinished names one attempt that Close left behind.
type Unfinished struct {
	Lease Lease
	Route string
}

// Error counts what was left.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("umavez: closed with %d operations running and %d ends not saved",
		len(e.Running), len(e.Waiting))
}

// Close takes no new claims, and waits until running attempts have ended and
// the store has acknowledged their ends, or ctx ends: then it gives up on the
// rest and returns an [*UnfinishedError]. The store stays open. After Close no
// goroutine of the engine runs.
func (e *Engine) Close(ctx context.Context) error {
	e.gate.close()
	for {
		idle := e.busy()
		if idle == nil {
			break
		}
		select {
		case <-idle:
			continue
		case <-ctx.Done():
		}
		break
	}
	left := e.unfinished()
	e.stopAll()
	if left != nil {
		return left
	}
	return nil
}

// busy returns a channel that is closed when what is being waited for ends, or
// nil when nothing is left to wait for. Callers come before attempts, and
// attempts before the backlog: each may become the next.
func (e *Engine) busy() <-chan struct{} {
	if ch := e.gate.whenIdle(); ch != nil {
		return ch
	}
	if ch := e.keeper.whenIdle(); ch != nil {
		return ch
	}
	return e.backlog.whenIdle()
}

func (k *keeper) whenIdle() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.heap) == 0 {
		return nil
	}
	return k.idle.wait()
}

func (b *backlog) whenIdle() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == 0 {
		return nil
	}
	return b.idle.wait()
}

// unfinished lists what is left, or returns nil.
func (e *Engine) unfinished() *UnfinishedError {
	var left UnfinishedError
	waiting := make(map[*Attempt]bool)
	e.backlog.mu.Lock()
	for _, j := range e.backlog.jobs {
		u := Unfinished{Lease: *j.lease}
		if j.attempt != nil {
			waiting[j.attempt] = true
			u.Route = j.attempt.route
		}
		left.Waiting = append(left.Waiting, u)
	}
	e.backlog.mu.Unlock()
	e.keeper.mu.Lock()
	for _, a := range e.keeper.heap {
		u := Unfinished{Lease: a.lease, Route: a.route}
		switch {
		case waiting[a]:
		case a.hasEnded():
			// Its end is being tried just now, so the backlog does not hold it.
			left.Waiting = append(left.Waiting, u)
		default:
			left.Running = append(left.Running, u)
		}
	}
	e.keeper.mu.Unlock()
	if len(left.Running)+len(left.Waiting) == 0 {
		return nil
	}
	return &left
}

// stopAll ends every goroutine of the engine and waits for them. Store calls
// under way end by their own timeouts.
func (e *Engine) stopAll() {
	e.goroutines.stop(e.stop)
	e.endLife()
	e.keeper.mu.Lock()
	if e.keeper.timer != nil {
		e.keeper.timer.Stop()
	}
	e.keeper.mu.Unlock()
	e.goroutines.group.Wait()
}

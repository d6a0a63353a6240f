package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/umavez/umavez"
)

// errAtOnce: a second signal ended the process without waiting.
var errAtOnce = errors.New("umavez: ended at once by a second signal")

// sameStop is how long after the first signal another one still belongs to it:
// timeout(1) and some process managers signal the process and its group, and
// nobody who means to end a drain at once decides that so soon.
const sameStop = time.Second

// stopSignals returns two contexts: stop ends with ctx or at the first SIGTERM
// or SIGINT, now at one that comes more than sameStop later. release gives the
// signals back.
func stopSignals(ctx context.Context) (stop, now context.Context, release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	stop, cancelStop := context.WithCancel(ctx)
	now, cancelNow := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancelStop()
		case <-done:
			return
		}
		over := time.After(sameStop)
		for stopping := true; ; {
			select {
			case <-over:
				stopping = false
			case <-signals:
				if !stopping {
					cancelNow(errAtOnce)
					return
				}
			case <-done:
				return
			}
		}
	}()
	return stop, now, func() {
		signal.Stop(signals)
		close(done)
		cancelStop()
		cancelNow(nil)
	}
}

// drain ends the process without losing an operation: readiness goes off, the
// listener closes, requests that are here are answered, and operations whose
// client has left and answers that the store has not taken are waited for, all
// within --drain. What is left after that is logged, a line a key, by record
// ID: its key is unknown until somebody settles it.
func (p *process) drain(now context.Context) error {
	p.health.draining.Store(true)
	p.log.Info("draining", "within", p.cfg.Drain.String())
	ctx, cancel := context.WithTimeout(now, p.cfg.Drain)
	defer cancel()

	// The server first: while it has requests, the engine must take their claims.
	served := p.clients.Shutdown(ctx)
	left := p.engine.Close(ctx)
	err := p.unfinished(now, served, left)
	p.log.Info("drained", "complete", err == nil)
	return err
}

// unfinished logs what the drain left, and says it in one error.
func (p *process) unfinished(now context.Context, served, left error) error {
	if cause := context.Cause(now); cause != nil {
		served = cause
	} else if served != nil {
		served = fmt.Errorf("umavez: requests were still open after --drain %v: %w", p.cfg.Drain, served)
	}
	if u, ok := errors.AsType[*umavez.UnfinishedError](left); ok {
		for _, o := range u.Running {
			p.log.Error("left running; its key is unknown once its lease has run out", "id", o.Lease.ID.String(), "route", o.Route)
		}
		for _, o := range u.Waiting {
			p.log.Error("left unsaved; the store did not take its end", "id", o.Lease.ID.String(), "route", o.Route)
		}
	}
	return errors.Join(served, left)
}

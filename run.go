package umavez

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// purgeBatch is how many rows one call of Purge may drop: small enough not to
// keep claims waiting.
const purgeBatch = 500

// Run does the engine's housekeeping until ctx ends: it purges the store every
// PurgeEvery, and looks after lost records every RecoverEvery, as [Engine.Recover]
// has registered. It returns nil then. What fails is tried again next time.
//
// What it has taken up by then goes on; [Engine.Close] waits for it.
func (e *Engine) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { e.purgeAll(ctx) })
	both.Go(func() { e.recoverAll(ctx) })
	both.Wait()
	<-ctx.Done() // there may be nothing to do
	return nil
}

func (e *Engine) purgeAll(ctx context.Context) {
	purger, ok := e.base.(Purger)
	if !ok {
		return
	}
	ticker := time.NewTicker(e.opt.PurgeEvery)
	defer ticker.Stop()
	for {
		_ = purgeDue(ctx, purger) // it is tried again
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// purgeDue drops all that has expired.
func purgeDue(ctx context.Context, purger Purger) error {
	for {
		if n, err := purger.Purge(ctx, purgeBatch); err != nil || n < purgeBatch {
			return err
		}
	}
}

// recoverAll lets the two workers pass, each at its own pace: processes that share
// a store should not all look at once.
func (e *Engine) recoverAll(ctx context.Context) {
	lister, ok := e.base.(Lister)
	if !ok {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		e.passes(ctx, e.newAsker(lister), func() bool { asks, _ := e.recoveries.any(); return asks })
	})
	both.Go(func() {
		e.passes(ctx, e.newCompleting(lister), func() bool { _, completes := e.recoveries.any(); return completes })
	})
	both.Wait()
}

func (e *Engine) passes(ctx context.Context, w *worker, wanted func() bool) {
	every := e.opt.RecoverEvery
	for {
		timer := time.NewTimer(every/2 + rand.N(every))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-e.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		e.leaps.look(e.clock(), e.opt.Lease)
		if wanted() {
			w.pass(ctx)
		}
	}
}

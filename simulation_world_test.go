package umavez_test

import (
	"context"
	"errors"
	"time"

	"github.com/umavez/umavez"
)

// This file is what TestSimulation's worlds consist of besides their clients.

// lateAtMost is how long a call may be on its way that its caller gave up.
const lateAtMost = 20 * time.Second

// simStore is the store as one process reaches it.
type simStore struct {
	umavez.Store
	world   *world
	process *process
}

// simPrompt says that it never waits, and so has no faults that take time.
type simPrompt struct{ *simStore }

func (simPrompt) Prompt() {}

// through takes a call to the store, or not, and its reply back, or not.
func (s *simStore) through(ctx context.Context, apply func(context.Context) error) error {
	w, r := s.world, &s.world.rates
	w.mu.Lock()
	calm := w.calm
	w.mu.Unlock()
	if s.process.isDead() {
		return errMaybe
	}
	hit := func(rate float64) bool { return !calm && w.chance(rate) }
	if !r.prompt {
		pause := w.draw(2 * time.Millisecond)
		if hit(r.slow) {
			pause = w.draw(r.lease / 2)
		}
		if hit(r.late) {
			// It arrives whatever becomes of its caller, some time.
			late := w.draw(lateAtMost)
			done := make(chan error, 1)
			go func() {
				time.Sleep(late)
				done <- apply(context.WithoutCancel(ctx))
			}()
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
				return &umavez.StoreError{Op: "late", Err: ctx.Err()}
			}
		}
		if !sleep(ctx, pause) {
			return &umavez.StoreError{Op: "slow", Err: ctx.Err()}
		}
	}
	switch {
	case hit(r.refused):
		return errNotSent
	case hit(r.lost):
		return errMaybe
	}
	err := apply(context.WithoutCancel(ctx))
	if !r.prompt && hit(r.slow) && !sleep(ctx, w.draw(r.lease/2)) {
		return &umavez.StoreError{Op: "slow", Err: ctx.Err()}
	}
	if hit(r.replyLost) || s.process.isDead() {
		return errMaybe
	}
	return err
}

func (s *simStore) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	type reply struct {
		rec      umavez.Record
		acquired bool
	}
	got := make(chan reply, 1)
	err := s.through(ctx, func(ctx context.Context) error {
		rec, acquired, err := s.Store.Claim(ctx, id, req)
		got <- reply{rec, acquired}
		return err
	})
	if err != nil {
		return umavez.Record{}, false, err
	}
	r := <-got
	return r.rec, r.acquired, nil
}

func (s *simStore) Get(ctx context.Context, id umavez.ID) (umavez.Record, error) {
	got := make(chan umavez.Record, 1)
	err := s.through(ctx, func(ctx context.Context) error {
		rec, err := s.Store.Get(ctx, id)
		got <- rec
		return err
	})
	if err != nil {
		return umavez.Record{}, err
	}
	return <-got, nil
}

func (s *simStore) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.through(ctx, func(ctx context.Context) error { return s.Store.Complete(ctx, l, answer, keep) })
}

func (s *simStore) Release(ctx context.Context, l umavez.Lease) error {
	return s.through(ctx, func(ctx context.Context) error { return s.Store.Release(ctx, l) })
}

func (s *simStore) Abandon(ctx context.Context, l umavez.Lease, why umavez.Reason, last []byte) error {
	return s.through(ctx, func(ctx context.Context) error { return s.Store.Abandon(ctx, l, why, last) })
}

func (s *simStore) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.through(ctx, func(ctx context.Context) error { return s.Store.Extend(ctx, l, d) })
}

func (w *world) closeAll() {
	for _, p := range w.processes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		if p.isDead() {
			cancel() // nothing of it may reach the store any more
		}
		p.stopRun()
		err := p.eng.Close(ctx)
		cancel()
		if err != nil && !p.isDead() {
			w.errorf("Close: %v", err)
		}
	}
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// alive returns a process; one that died is started anew.
func (w *world) alive() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.rng.IntN(w.rates.engines)
	if w.processes[i].isDead() {
		w.processes = append(w.processes, w.processes[i])
		w.mu.Unlock()
		p := w.newProcess()
		w.mu.Lock()
		w.processes[i] = p
	}
	return w.processes[i]
}

// act is the effect. An opaque operation has one for its key, ever.
func (w *world) act(key, attempt string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	page := w.ledger[key]
	page.effects = append(page.effects, attempt)
	w.counts["effects"]++
	if len(page.effects) > 1 && w.rates.policy == umavez.Opaque {
		w.errorf("key %s: the effect happened %d times, by %v", key, len(page.effects), page.effects)
	}
}

// excuse says that the key may be lost for good: nobody will tell the store
// what became of the operation.
func (w *world) excuse(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledger[key].excused = true
}

func (w *world) release(key string, a *umavez.Attempt, answer string) {
	if answer == "" {
		_ = a.Release(nil)
		return
	}
	w.mu.Lock()
	w.ledger[key].shared[answer] = true
	w.mu.Unlock()
	_ = a.Release([]byte(answer))
}

func (w *world) complete(p *process, key string, a *umavez.Attempt, answer string) {
	err := a.Complete([]byte(answer))
	switch {
	case errors.Is(err, umavez.ErrUnsaved):
		w.note("unsaved")
	case errors.Is(err, umavez.ErrLeaseLost):
		w.note("lease lost")
		if w.rates.policy == umavez.Opaque && !w.rates.on {
			w.errorf("key %s: an opaque operation lost its key", key)
		}
	case err != nil:
		w.errorf("Complete: %v", err)
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		page := w.ledger[key]
		if page.saved != "" {
			w.errorf("key %s: saved %q, and then %q", key, page.saved, answer)
		}
		page.saved = answer
		page.answered[answer] = true
	}
}

// audit looks at what is left when everything is over.
func (w *world) audit() {
	quiet := w.rates.lost+w.rates.replyLost+w.rates.refused+w.rates.late+w.rates.slow+w.rates.kill == 0
	for key, page := range w.ledger {
		w.auditTrail(key)
		if len(page.answered) > 1 {
			w.errorf("key %s was answered by %v", key, page.answered)
		}
		rec, err := w.mem.Get(context.Background(), opaque(key).Key.ID())
		switch {
		case err != nil:
			w.errorf("key %s: %v", key, err)
		case rec.State == umavez.Running:
			w.errorf("key %s is still running", key)
		case page.saved != "" && string(rec.Answer) != page.saved:
			w.errorf("key %s: saved %q, and the store has %q (%v)", key, page.saved, rec.Answer, rec.State)
		case rec.State == umavez.Vacant && len(page.effects) > 0 && w.rates.policy == umavez.Opaque:
			w.errorf("key %s is vacant, and its effect has happened", key)
		case rec.State == umavez.Lost && quiet && !page.excused:
			w.errorf("key %s is lost, and nothing had gone wrong", key)
		case rec.State == umavez.Lost && rec.Tries == 1 && !w.started[rec.Attempt] && w.rates.kill+w.rates.late == 0:
			// (A claim that arrives late may find its bar taken by another one's. What
			// was taken over had started before, and is given back as lost.)
			w.errorf("key %s is lost, and its attempt never started", key)
		}
	}
}

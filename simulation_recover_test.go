package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umavez/umavez"
)

// This file is what TestSimulation's worlds have for lost operations: a gateway
// that may hold a request for minutes, honest reconcilers that ask it, people who
// settle, completers, and owners that were stopped before they sent.

// recovery are the rates of all that; the zero value is a world without it.
type recovery struct {
	on               bool
	wire             float64 // the gateway holds a request
	stop             float64 // an owner is stopped before it sends
	cancel           float64 // a reconciler has the gateway cancel what it does not find
	fail             float64 // asking goes wrong
	after, every     time.Duration
	takes            time.Duration // one asking
	completeAfter    time.Duration
	completeUntil    time.Duration
	pace             time.Duration // between a client's steps
	people, attempts int
}

// gatewayHolds is the longest that the gateway holds a request: as the engine's
// quiet time expects it to.
const gatewayHolds = umavez.DefaultQuiet - time.Second

func (w *world) drawRecovery(rare func(float64) float64) {
	if w.rng.IntN(3) != 0 {
		return
	}
	seconds := func(most int) time.Duration { return time.Duration(1+w.rng.IntN(most)) * time.Second }
	w.rates.recovery = recovery{
		on: true, wire: rare(1), stop: rare(.5), cancel: rare(1), fail: rare(.6),
		after: seconds(60), every: seconds(60), takes: seconds(30), pace: 20 * seconds(20),
		completeAfter: seconds(20), people: w.rng.IntN(3), attempts: 1 + w.rng.IntN(4),
	}
	if w.rng.IntN(4) == 0 { // first asked when the quiet time is nearly over
		w.rates.after = umavez.DefaultQuiet - seconds(60)
	}
	w.rates.completeUntil = w.rates.completeAfter + seconds(180)
	w.rates.abandon = rare(.8)
}

// look after starts an engine's housekeeping, with all that is registered.
func (w *world) lookAfter(p *process) {
	ctx, cancel := context.WithCancel(context.Background())
	p.stopRun = cancel
	if !w.rates.on {
		return
	}
	err := p.eng.Recover(umavez.Recovery{
		Namespace: "test", Route: "test",
		Reconciler: &umavez.Reconciler{
			After: w.rates.after, Every: w.rates.every, Timeout: 30 * time.Second,
			Ask: func(ctx context.Context, l umavez.LostRecord) (umavez.Verdict, error) { return w.ask(ctx, l) },
		},
		Completer: &umavez.Completer{
			After: w.rates.completeAfter, Until: w.rates.completeUntil, Tries: w.rates.attempts,
			Complete: func(ctx context.Context, l umavez.LostRecord) error { return w.finish(ctx, p, l) },
		},
	})
	if err != nil {
		w.errorf("Recover: %v", err)
	}
	go func() { _ = p.eng.Run(ctx) }()
}

// send has the gateway act, now or after it has held the request. It acts once for
// an attempt, and not when that was cancelled.
func (w *world) send(key, attempt string) {
	if !w.chance(w.rates.wire) {
		w.arrive(key, attempt)
		return
	}
	held := w.draw(gatewayHolds)
	switch w.pick(3) {
	case 0:
		held = w.draw(time.Minute)
	case 1:
		held = gatewayHolds - w.draw(time.Minute)
	}
	go func() {
		time.Sleep(held)
		w.note("arrived late")
		w.arrive(key, attempt)
	}()
}

func (w *world) arrive(key, attempt string) {
	w.mu.Lock()
	cancelled := w.ledger[key].cancelled[attempt]
	w.mu.Unlock()
	if !cancelled {
		w.act(key, attempt)
	}
}

// found reports whether the gateway has acted for an attempt.
func (w *world) found(key, attempt string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, by := range w.ledger[key].effects {
		if by == attempt {
			return true
		}
	}
	return false
}

// ask asks the gateway, honestly. What it finds is on its way for a while.
func (w *world) ask(ctx context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
	key, attempt := string(l.Request), l.Attempt.String()
	w.note("asked")
	w.oneAtATime(key, 1)
	defer w.oneAtATime(key, -1)
	if !sleep(ctx, w.draw(w.rates.takes)) {
		return umavez.StillUnknown(), ctx.Err()
	}
	found := w.found(key, attempt)
	cancelled := !found && w.chance(w.rates.cancel)
	if cancelled {
		w.mu.Lock()
		w.ledger[key].cancelled[attempt] = true
		w.mu.Unlock()
	}
	if !sleep(ctx, w.draw(w.rates.takes)) {
		return umavez.StillUnknown(), ctx.Err()
	}
	switch {
	case w.chance(w.rates.fail / 2):
		panic("the asking goes wrong")
	case w.chance(w.rates.fail):
		return umavez.Happened([]byte("nobody knows")), errors.New("the asking goes wrong")
	case found:
		w.note("found")
		return umavez.Happened([]byte(answerOf(l.Attempt, l.Fingerprint))), nil
	case cancelled:
		w.note("cancelled")
		return umavez.CannotHappen().Proven("the gateway has cancelled it"), nil
	case w.chance(.5):
		return umavez.StillUnknown(), nil
	}
	return umavez.CannotHappen(), nil
}

func answerOf(a umavez.AttemptID, fp umavez.Fingerprint) string {
	return fmt.Sprintf("%v/%d", a, fp.Sum[0])
}

// oneAtATime: a reconciler is asked about a record by one process at a time.
func (w *world) oneAtATime(key string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	page := w.ledger[key]
	page.asking += n
	if page.asking > 1 {
		w.errorf("key %s: %d ask about it at once", key, page.asking)
	}
}

// finish is the completer: it runs what its client gave up.
func (w *world) finish(ctx context.Context, p *process, l umavez.LostRecord) error {
	key := string(l.Request)
	op := w.operation(key)
	op.Fingerprint = l.Fingerprint
	if w.chance(.5) {
		time.Sleep(w.draw(w.rates.takes)) // who finishes it must be found first
	}
	saved := w.saved(key)
	a, rec, err := p.eng.Resume(ctx, op, l.Fence)
	if a == nil {
		if err != nil && rec.State == umavez.Lost {
			w.note("too late")
		}
		return err
	}
	w.note("completed")
	now, err := w.mem.Get(context.Background(), l.ID)
	switch {
	case err != nil:
		return err
	case now.Age >= w.rates.completeUntil:
		w.errorf("key %s: the completer begins at the age of %v, and may until %v", key, now.Age, w.rates.completeUntil)
	case now.Tries < 2 || now.Tries > w.rates.attempts:
		w.errorf("key %s: the completer begins try %d; it may begin 2 to %d", key, now.Tries, w.rates.attempts)
	case !umavez.Completing(a.Context()):
		w.errorf("key %s: the completer's attempt does not know that it is one", key)
	}
	w.operate(p, key, a, &op, saved)
	return nil
}

// person looks at a list now and then, and settles what has been quiet for long
// enough.
func (w *world) person() {
	for range w.rates.steps {
		time.Sleep(w.draw(2 * w.rates.pace))
		p := w.alive()
		page, err := p.eng.List(context.Background(), umavez.Query{Unknown: true, Limit: 10})
		if err != nil || len(page) == 0 {
			continue
		}
		l := page[w.pick(len(page))]
		time.Sleep(w.draw(w.rates.pace)) // has a coffee
		rec, err := w.mem.Get(context.Background(), l.ID)
		if err != nil {
			continue
		}
		s := umavez.Settlement{Fence: l.Fence, Who: "a person", Why: "has looked", Quiet: p.eng.Quiet()}
		switch found := rec.State == umavez.Lost && w.found(string(rec.Request), l.Attempt.String()); {
		case rec.Fence != l.Fence:
			// Looks at what is not there any more: it must be refused.
			s.Action = umavez.ActionPark
			if p.eng.Settle(context.Background(), l.ID, s) == nil {
				w.errorf("a settlement counts for a record that has moved")
			}
			continue
		case found:
			s.Action, s.Answer = umavez.ActionHappened, []byte(answerOf(l.Attempt, l.Fingerprint))
		case rec.State == umavez.Lost && rec.Since >= s.Quiet:
			s.Action = umavez.ActionCannotHappen
		case w.chance(.2):
			s.Action = umavez.ActionPark
		default:
			continue
		}
		if p.eng.Settle(context.Background(), l.ID, s) == nil {
			w.note("settled by a person")
		}
	}
}

// stopped is an owner that was stopped just before it sends. It looks whether the
// record is still its own, and if not, does not send.
func (w *world) stopped(key string, a *umavez.Attempt) bool {
	if !w.rates.on {
		return false
	}
	if w.chance(w.rates.stop) {
		time.Sleep(w.draw(30 * time.Minute))
	}
	if umavez.Owned(a.Context()) == nil {
		return false
	}
	w.note("stopped in time")
	w.excuse(key)
	_ = a.Abandon(umavez.ReasonTimeout, nil)
	return true
}

// auditTrail looks at what was settled: everybody was honest, so nothing of it was
// contradicted.
func (w *world) auditTrail(key string) {
	trail, err := w.mem.Trail(context.Background(), opaque(key).Key.ID())
	if err != nil {
		w.errorf("key %s: %v", key, err)
	}
	for _, entry := range trail {
		w.counts["settled: "+string(entry.Action)]++
		if entry.Action == umavez.ActionContradicted {
			w.errorf("key %s: %s said: %s", key, entry.Who, entry.Why)
		}
	}
}

func (s *simStore) Hold(ctx context.Context, id umavez.ID, fence umavez.Fence, holder umavez.AttemptID, d time.Duration) error {
	return s.through(ctx, func(ctx context.Context) error { return s.world.mem.Hold(ctx, id, fence, holder, d) })
}

func (s *simStore) Settle(ctx context.Context, id umavez.ID, settlement umavez.Settlement) error {
	return s.through(ctx, func(ctx context.Context) error { return s.world.mem.Settle(ctx, id, settlement) })
}

func (s *simStore) Trail(ctx context.Context, id umavez.ID) ([]umavez.AuditEntry, error) {
	return s.world.mem.Trail(ctx, id)
}

func (s *simStore) List(ctx context.Context, q umavez.Query) ([]umavez.Listed, error) {
	got := make(chan []umavez.Listed, 1)
	err := s.through(ctx, func(ctx context.Context) error {
		page, err := s.world.mem.List(ctx, q)
		got <- page
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-got, nil
}

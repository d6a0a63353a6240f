package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/umavez/umavez/examples/pagamentos/gateway"
)

// boardTimes let people watch: a lease runs out while they look, and they have
// time to click before the completer or the reconciler comes.
var boardTimes = times{Lease: 3 * time.Second, CompleteAfter: 30 * time.Second, AskAfter: 30 * time.Second}

// maxPayments is how many payments a board shows: more than fit on a page. After
// that the demo is to be started anew.
const maxPayments = 50

// Why something is not done now.
var (
	errBusy    = errors.New("umavez: demo: something else is under way")
	errFull    = fmt.Errorf("umavez: demo: %d payments are enough; start anew", maxPayments)
	errTrouble = errors.New("umavez: demo: no such trouble")
	errNoKey   = errors.New("umavez: demo: no such payment")
)

// troubles are what the page's buttons do to a payment.
var troubles = map[string]trouble{"none": plain, "twice": clickTwice, "drop": dropAnswer, "kill": killAfter}

// Board is the demo that people play with: a world, the payments that they have
// made in it, and one thing at a time that is done to them.
type Board struct {
	program Program
	times   times
	life    context.Context
	end     context.CancelFunc
	jobs    sync.WaitGroup

	mu       sync.Mutex
	busy     bool
	failed   string // why the last thing that was done did not work
	world    *world // nil: none has started
	payments []*boardPayment

	looking sync.Mutex // one look at a time
	seenIn  *world
	seen    map[string]Life // by key, what the last look in that world has shown
}

// boardPayment is a payment with its attempts so far.
type boardPayment struct {
	payment
	attempts map[Side][]*Attempt
}

// Attempt is one time that a payment was sent.
type Attempt struct {
	reply
	// Running: no answer yet.
	Running bool `json:"running"`
}

// NewBoard returns a board without a world; Start makes one.
func NewBoard(ctx context.Context, p Program) *Board {
	b := &Board{program: p, times: boardTimes}
	b.life, b.end = context.WithCancel(ctx)
	return b
}

// Close ends what is under way, and all processes.
func (b *Board) Close() error {
	b.end()
	b.jobs.Wait()
	if b.world == nil {
		return nil
	}
	return b.world.close()
}

// do does one thing in the background, unless another one is under way.
func (b *Board) do(prepare func() error, f func(ctx context.Context) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy || b.life.Err() != nil {
		return errBusy
	}
	if err := prepare(); err != nil {
		return err
	}
	b.busy, b.failed = true, ""
	b.jobs.Go(func() {
		err := f(b.life)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy = false
		if err != nil {
			b.failed = err.Error()
		}
	})
	return nil
}

// Start starts a new world, in place of the one that was there.
func (b *Board) Start(withoutKeys bool) error {
	return b.do(func() error { return nil }, func(context.Context) error {
		b.mu.Lock()
		old := b.world
		b.world, b.payments = nil, nil
		b.mu.Unlock()
		if old != nil {
			if err := old.close(); err != nil {
				return err
			}
		}
		w, err := newWorld(b.program, withoutKeys, b.times)
		if err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.world = w
		return nil
	})
}

// Pay makes a payment with a trouble on both sides, and returns its key.
func (b *Board) Pay(name string) (key string, err error) {
	t, known := troubles[name]
	if !known {
		return "", errTrouble
	}
	var p *boardPayment
	var w *world
	err = b.do(func() error {
		n := len(b.payments)
		switch {
		case b.world == nil:
			return errBusy
		case n >= maxPayments:
			return errFull
		}
		p = &boardPayment{
			payment:  payment{trouble: t, key: fmt.Sprintf("pedido-%d", n+1), centavos: int64(4990 + n)},
			attempts: make(map[Side][]*Attempt),
		}
		w, b.payments = b.world, append(b.payments, p)
		key = p.key
		return nil
	}, func(ctx context.Context) error {
		return onBoth(func(s Side) error { return b.paySide(ctx, w, s, p) })
	})
	return key, err
}

func onBoth(f func(s Side) error) error {
	errs := make([]error, len(Sides))
	var both sync.WaitGroup
	for i, s := range Sides {
		both.Go(func() { errs[i] = f(s) })
	}
	both.Wait()
	return errors.Join(errs...)
}

// paySide sends a payment for the first time.
func (b *Board) paySide(ctx context.Context, w *world, s Side, p *boardPayment) error {
	if p.fault != gateway.FaultNone {
		if err := w.fault(ctx, s, p.fault); err != nil {
			return err
		}
	}
	clicks := 1
	if p.twice {
		clicks = 2
	}
	errs := make([]error, clicks)
	var all sync.WaitGroup
	for i := range clicks {
		all.Go(func() { errs[i] = b.attempt(ctx, w, s, p) })
	}
	var killed error
	if p.kill {
		killed = w.killHeld(ctx, s, true)
	}
	all.Wait()
	return errors.Join(append(errs, killed)...)
}

// attempt sends a payment once, and notes what comes of it.
func (b *Board) attempt(ctx context.Context, w *world, s Side, p *boardPayment) error {
	a := &Attempt{Running: true}
	b.mu.Lock()
	p.attempts[s] = append(p.attempts[s], a)
	b.mu.Unlock()
	r, err := w.send(ctx, s, p.key, p.centavos)
	b.mu.Lock()
	defer b.mu.Unlock()
	a.reply, a.Running = r, false
	return err
}

// find returns a payment. Called with the mutex held.
func (b *Board) find(key string) (*boardPayment, error) {
	for _, p := range b.payments {
		if p.key == key {
			return p, nil
		}
	}
	return nil, errNoKey
}

// Retry sends a payment once more, with the same key, on both sides.
func (b *Board) Retry(key string) error {
	var p *boardPayment
	var w *world
	return b.do(func() (err error) {
		w = b.world
		p, err = b.find(key)
		return err
	}, func(ctx context.Context) error {
		return onBoth(func(s Side) error { return b.attempt(ctx, w, s, p) })
	})
}

// Settle asks the gateway about a payment of which nobody knows, and settles it.
func (b *Board) Settle(key string) error {
	var w *world
	return b.do(func() (err error) {
		w = b.world
		_, err = b.find(key)
		return err
	}, func(ctx context.Context) error {
		_, err := w.settle(ctx, key)
		return err
	})
}

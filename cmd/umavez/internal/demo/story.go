package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/umavez/umavez/examples/pagamentos/gateway"
)

// trouble is what happens to a payment while its client wants an answer.
type trouble struct {
	name string
	// fault is what the gateway does to its first charge.
	fault gateway.Fault
	// twice: the client clicks twice at once.
	twice bool
	// kill: the API is killed while the gateway holds the charge.
	kill bool
	// late: what is held is let go only after the client has its answer.
	late bool
}

var (
	plain        = trouble{name: "pay"}
	clickTwice   = trouble{name: "click twice", twice: true}
	dropAnswer   = trouble{name: "the gateway charges and drops the answer", fault: gateway.FaultDropAfter}
	errorAfter   = trouble{name: "the gateway charges and answers 500", fault: gateway.FaultErrorAfter}
	killAfter    = trouble{name: "kill -9 after the charge", fault: gateway.FaultHoldAfter, kill: true}
	killBefore   = trouble{name: "kill -9 before the charge, which comes all the same", fault: gateway.FaultHoldBefore, kill: true}
	killLate     = trouble{name: "kill -9 before the charge, which comes after the retry", fault: gateway.FaultHoldBefore, kill: true, late: true}
	killNoCharge = trouble{name: "kill -9, and the charge never comes", fault: gateway.FaultHoldAndLose, kill: true}
)

// payment is one payment of the script.
type payment struct {
	trouble
	key string
	// centavos are of no other payment, so that its charges are found again.
	centavos int64
}

// round is what happens in a world.
type round struct {
	withoutKeys bool
	payments    []payment
}

// rounds is the script of a seed: each trouble once, and some again, in an order
// of the seed's. Without keys nothing can be late: the operator waits until the
// gateway has ended what it holds.
func rounds(seed uint64) []round {
	draw := rand.New(rand.NewPCG(seed, 0))
	mix := func(withoutKeys bool, more int, troubles ...trouble) round {
		all := troubles
		for range more {
			all = append(all, troubles[draw.IntN(len(troubles))])
		}
		draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		r := round{withoutKeys: withoutKeys}
		for i, t := range all {
			r.payments = append(r.payments, payment{
				trouble: t, key: fmt.Sprintf("pedido-%d-%d", seed, i+1), centavos: int64(4990 + i),
			})
		}
		return r
	}
	return []round{
		mix(false, 2, plain, clickTwice, dropAnswer, errorAfter, killAfter, killBefore, killLate),
		mix(true, 1, plain, clickTwice, dropAnswer, killAfter, killNoCharge),
	}
}

// played is what came of a round on one side.
type played struct {
	side    Side
	answers [][]reply // by payment, of each click
	charges []gateway.Charge
	settled int
	// broken says what of the promise was not kept. Protected only.
	broken []string
}

// play plays a round on both sides, beside each other.
func (r round) play(ctx context.Context, w *world) ([]played, error) {
	all, errs := make([]played, len(Sides)), make([]error, len(Sides))
	var both sync.WaitGroup
	for i, s := range Sides {
		both.Go(func() { all[i], errs[i] = r.playSide(ctx, w, s) })
	}
	both.Wait()
	for i, err := range errs {
		if err != nil {
			return all, fmt.Errorf("umavez: demo: %s: %w\n%s", Sides[i], err, w.api(Sides[i]).Stderr())
		}
	}
	return all, nil
}

func (r round) playSide(ctx context.Context, w *world, s Side) (done played, err error) {
	done.side = s
	for _, p := range r.payments {
		answers, err := done.pay(ctx, w, p)
		if err != nil {
			return done, fmt.Errorf("%s, %s: %w", p.key, p.name, err)
		}
		done.answers = append(done.answers, answers)
	}
	known, err := w.known(ctx, s, "")
	done.charges = known.Charges
	return done, err
}

// pay makes a payment, with its trouble, until every click has its answer.
func (d *played) pay(ctx context.Context, w *world, p payment) ([]reply, error) {
	if p.fault != gateway.FaultNone {
		if err := w.fault(ctx, d.side, p.fault); err != nil {
			return nil, err
		}
	}
	clicks := 1
	if p.twice {
		clicks = 2
	}
	answers, errs := make([]reply, clicks), make([]error, clicks)
	var all sync.WaitGroup
	for i := range clicks {
		all.Go(func() { answers[i], errs[i] = w.pay(ctx, d.side, p.key, p.centavos) })
	}
	var trouble error
	if p.kill {
		trouble = w.killHeld(ctx, d.side, !p.late)
	}
	all.Wait()
	if p.late && trouble == nil {
		trouble = w.letGo(ctx, d.side)
	}
	if trouble == nil {
		trouble = w.waitStill(ctx, d.side)
	}
	for i := range answers {
		errs = append(errs, d.settleUnknown(ctx, w, p, &answers[i]))
	}
	for _, err := range append(errs, trouble) {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// killHeld kills a side's API while the gateway holds a charge of it, and starts
// it again.
func (w *world) killHeld(ctx context.Context, s Side, letGo bool) error {
	if err := w.waitHeld(ctx, s); err != nil {
		return err
	}
	w.kill(s)
	if letGo {
		if err := w.letGo(ctx, s); err != nil {
			return err
		}
	}
	return w.start(s)
}

// settleUnknown settles a payment of which nobody knows, as often as it takes, and has
// its client ask once more.
func (d *played) settleUnknown(ctx context.Context, w *world, p payment, r *reply) error {
	for r.unknown() {
		known, err := w.known(ctx, d.side, "")
		if err != nil {
			return err
		}
		if n := len(of(known.Charges, p)); n > 1 {
			d.broken = append(d.broken, fmt.Sprintf("%s is unknown, and was charged %d times", p.key, n))
		}
		settled, err := w.settle(ctx, p.key)
		if err != nil {
			return err
		}
		if settled {
			d.settled++
		}
		if *r, err = w.pay(ctx, d.side, p.key, p.centavos); err != nil {
			return err
		}
	}
	return nil
}

// of are the charges of a payment.
func of(charges []gateway.Charge, p payment) (found []gateway.Charge) {
	for _, c := range charges {
		if c.Centavos == p.centavos {
			found = append(found, c)
		}
	}
	return found
}

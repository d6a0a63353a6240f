package demo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/keys"
)

// View is the board as the page draws it: the JSON of GET /api/state.
type View struct {
	// WithoutKeys: this world's gateway honours no keys.
	WithoutKeys bool `json:"withoutKeys"`
	// Busy: something is under way, and nothing else is begun.
	Busy bool `json:"busy"`
	// Ready: there is a world.
	Ready bool `json:"ready"`
	// Failed is why the last thing did not work; else empty.
	Failed string `json:"failed"`
	// Alive says of each side whether its server runs.
	Alive map[Side]bool `json:"alive"`
	// Charges is how many charges each side's ledger has.
	Charges  map[Side]int  `json:"charges"`
	Payments []PaymentView `json:"payments"`
}

// PaymentView is a payment, the latest first.
type PaymentView struct {
	Key      string            `json:"key"`
	Centavos int64             `json:"centavos"`
	Sides    map[Side]SideView `json:"sides"`
	// Life is where its key stands on the protected side.
	Life Life `json:"life"`
}

// SideView is what became of a payment on a side.
type SideView struct {
	Attempts []Attempt `json:"attempts"`
	// Charges are the IDs of what the card was charged for it.
	Charges []string `json:"charges"`
}

// Life is where a key stands.
type Life struct {
	// State is vacant, running, lost, unknown or done.
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Tries   int    `json:"tries"`
	Settled bool   `json:"settled"`
}

// look asks the gateway and the protected API how things stand. What cannot be
// asked now, since its server was killed, is shown as it was seen last.
func (b *Board) look(ctx context.Context) View {
	b.looking.Lock()
	defer b.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	v, w := b.view()
	if w == nil {
		return v
	}
	if b.seenIn != w {
		b.seenIn, b.seen = w, make(map[string]Life)
	}
	for _, s := range Sides {
		v.Alive[s] = w.runs(s)
		known, err := w.known(ctx, s, "")
		if err != nil {
			continue
		}
		v.Charges[s] = len(known.Charges)
		for i := range v.Payments {
			p := &v.Payments[i]
			side := p.Sides[s]
			for _, c := range known.Charges {
				if c.Centavos == p.Centavos {
					side.Charges = append(side.Charges, c.ID)
				}
			}
			p.Sides[s] = side
		}
	}
	for i := range v.Payments {
		v.Payments[i].Life = b.lifeOf(ctx, w, &v.Payments[i], v.Alive[Protected])
	}
	return v
}

// lookTimeout bounds a look: the next one comes soon.
const lookTimeout = time.Second

// lifeOf is where a key stands. A done one moves no more while people look.
func (b *Board) lifeOf(ctx context.Context, w *world, p *PaymentView, alive bool) Life {
	last, known := b.seen[p.Key]
	if !known {
		last = p.Life
	}
	if last.State == doneState || !alive {
		return last
	}
	shown, err := w.shown(ctx, p.Key)
	fault, _ := errors.AsType[*keys.Fault](err)
	switch {
	case err == nil:
		last = Life{State: shown.State, Reason: shown.Reason, Tries: shown.Tries, Settled: shown.Settled}
	case fault != nil && fault.Code == keys.CodeNotFound:
		last = Life{State: vacantState}
	}
	b.seen[p.Key] = last
	return last
}

const (
	vacantState = "vacant"
	doneState   = "done"
)

// view is what the board itself knows.
func (b *Board) view() (View, *world) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := View{
		Busy: b.busy, Ready: b.world != nil, Failed: b.failed,
		Alive: make(map[Side]bool), Charges: make(map[Side]int), Payments: []PaymentView{},
	}
	if b.world != nil {
		v.WithoutKeys = b.world.withoutKeys
	}
	for _, p := range slices.Backward(b.payments) {
		one := PaymentView{Key: p.key, Centavos: p.centavos, Sides: make(map[Side]SideView), Life: Life{State: vacantState}}
		for _, s := range Sides {
			side := SideView{Attempts: []Attempt{}, Charges: []string{}}
			for _, a := range p.attempts[s] {
				side.Attempts = append(side.Attempts, *a)
			}
			one.Sides[s] = side
		}
		v.Payments = append(v.Payments, one)
	}
	return v, b.world
}

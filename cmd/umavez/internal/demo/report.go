package demo

import (
	"fmt"
	"io"

	"github.com/umavez/umavez/examples/pagamentos/gateway"
)

// judge finds out what of the promise a round has not kept: on the protected side
// each payment is charged once, and every answer is about that charge.
func (r round) judge(d *played) {
	if d.side != Protected {
		return
	}
	broken := func(format string, args ...any) { d.broken = append(d.broken, fmt.Sprintf(format, args...)) }
	for i, p := range r.payments {
		charges := of(d.charges, p)
		if len(charges) != 1 {
			broken("%s was charged %d times", p.key, len(charges))
			continue
		}
		for _, a := range d.answers[i] {
			if a.ID != charges[0].ID {
				broken("%s was answered %q, and charged %s", p.key, a.ID, charges[0].ID)
			}
		}
	}
	if len(d.charges) != len(r.payments) {
		broken("%d charges, and %d payments", len(d.charges), len(r.payments))
	}
}

// print shows what happened to each payment, and both ledgers.
func (r round) print(out io.Writer, all []played) {
	title := "A gateway that honours keys"
	if r.withoutKeys {
		title = "A gateway without keys"
	}
	fmt.Fprintf(out, "\n%s\n  %-8s  %-55s  %-11s  %s\n", title, "R$", "what happens", Unprotected, Protected)
	for _, p := range r.payments {
		fmt.Fprintf(out, "  %-8s  %-55s  %-11s  %s\n", reais(p.centavos), p.name, charged(all[0].charges, p), charged(all[1].charges, p))
	}
	for _, d := range all {
		fmt.Fprintf(out, "\n  Ledger of %s\n", d.side)
		for _, c := range d.charges {
			fmt.Fprintf(out, "    %s  %s  card …%s\n", c.ID, reais(c.Centavos), c.Card)
		}
	}
	for _, d := range all {
		for _, b := range d.broken {
			fmt.Fprintf(out, "\n  NOT AS PROMISED: %s: %s\n", d.side, b)
		}
	}
}

func charged(all []gateway.Charge, p payment) string {
	if n := len(of(all, p)); n != 1 {
		return fmt.Sprintf("%d charges", n)
	}
	return "1 charge"
}

func reais(centavos int64) string { return fmt.Sprintf("%d.%02d", centavos/100, centavos%100) }

// total is what stands in the last line.
type total struct {
	payments, unprotected, protected, settled int
	broken                                    bool
}

func (t *total) add(r round, all []played) {
	t.payments += len(r.payments)
	for _, d := range all {
		t.settled += d.settled
		t.broken = t.broken || len(d.broken) > 0
		if d.side == Protected {
			t.protected += len(d.charges)
		} else {
			t.unprotected += len(d.charges)
		}
	}
}

// String is a contract with scripts.
func (t total) String() string {
	return fmt.Sprintf("unprotected: %d payments, %d charges; protected: %d payments, %d charges; settled by hand: %d",
		t.payments, t.unprotected, t.payments, t.protected, t.settled)
}

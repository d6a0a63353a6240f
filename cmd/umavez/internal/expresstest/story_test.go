package expresstest

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

// story is something that happens to one payment. It returns the client that
// was there in the end, and those beside it.
type story struct {
	name string
	play func(w *world, key string) []*purchase
	// what follows with umavez, and without.
	protected, bare fate
}

// fate is what a client knows in the end, and how often its card was charged.
type fate struct {
	outcome string
	charges int
}

// stories are told with umavez and without: the same server, the same client.
var stories = []story{
	{
		name: "a double click", protected: fate{done, 1}, bare: fate{done, 2},
		play: func(w *world, key string) []*purchase {
			both := []*purchase{w.pay(key), w.pay(key)}
			w.front.awaitCarried(2)
			w.gate.await(w.t)
			w.gate.open()
			return both
		},
	},
	{
		name: "the answer is lost on its way", protected: fate{done, 1}, bare: fate{done, 2},
		play: func(w *world, key string) []*purchase {
			p := w.pay(key)
			w.gate.await(w.t)
			w.front.cut()
			w.gate.open()
			return []*purchase{p}
		},
	},
	{
		name: "the client dies and pays again later", protected: fate{done, 1}, bare: fate{done, 2},
		play: func(w *world, key string) []*purchase {
			p := w.pay(key)
			w.gate.await(w.t)
			p.kill()
			w.gate.open()
			return []*purchase{w.pay(key)}
		},
	},
	{
		name: "the server is killed between charge and answer", protected: fate{unknown, 1}, bare: fate{done, 2},
		play: func(w *world, key string) []*purchase {
			p := w.pay(key)
			w.gate.await(w.t)
			w.killNode()
			w.gate.open()
			return []*purchase{p}
		},
	},
	{
		// Nobody can know that it was killed before the charge: the card is not
		// charged, and the client is told that this is not known.
		name: "the server is killed before the charge", protected: fate{unknown, 0}, bare: fate{done, 1},
		play: func(w *world, key string) []*purchase {
			if err := w.node.Signal(syscall.SIGSTOP); err != nil {
				w.t.Fatal(err)
			}
			p := w.pay(key)
			w.behind.awaitCarried(1)
			w.killNode()
			w.gate.open()
			return []*purchase{p}
		},
	},
	{
		name: "what stands in front is killed", protected: fate{unknown, 1}, bare: fate{done, 2},
		play: func(w *world, key string) []*purchase {
			p := w.pay(key)
			w.gate.await(w.t)
			w.killFront()
			w.gate.open()
			return []*purchase{p}
		},
	},
}

// TestStories: with umavez a card is charged once, or at most once where the
// client is told that the outcome is unknown. Without it, it is charged twice by
// the same server and the same client.
func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Run("protected", func(t *testing.T) { s.check(t, true, s.protected) })
			t.Run("bare", func(t *testing.T) { s.check(t, false, s.bare) })
		})
	}
}

func (s story) check(t *testing.T, protected bool, want fate) {
	w := newWorld(t, protected)
	key := newKey()
	purchases := s.play(w, key)
	if protected {
		// Whoever comes later with the same intent is told the same.
		for _, p := range purchases {
			p.outcome()
		}
		purchases = append(purchases, w.pay(key))
	}
	for _, p := range purchases {
		got, said := p.outcome()
		if got != want.outcome {
			t.Errorf("the client knows %s, want %s; it wrote:\n%s", got, want.outcome, said)
		}
		if isUnknown := strings.Contains(said, "outcome unknown"); isUnknown != (want.outcome == unknown) || strings.Contains(said, "falhou") {
			t.Errorf("outcome %s, and the client said:\n%s", got, said)
		}
	}
	charges := w.charges()
	if len(charges) != want.charges {
		t.Errorf("%d charges, want %d: %q", len(charges), want.charges, charges)
	}
	if protected && want.outcome == done {
		for _, p := range purchases {
			if _, said := p.outcome(); !slices.ContainsFunc(charges, func(id string) bool { return strings.Contains(said, id) }) {
				t.Errorf("the client was told of another payment than %q:\n%s", charges, said)
			}
		}
	}
}

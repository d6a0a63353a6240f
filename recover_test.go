package umavez_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

func askNobody(context.Context, umavez.LostRecord) (umavez.Verdict, error) {
	return umavez.StillUnknown(), nil
}

func completeNothing(context.Context, umavez.LostRecord) error { return nil }

func TestRecoverRefusesNonsense(t *testing.T) {
	ask := func(change func(*umavez.Reconciler)) umavez.Recovery {
		r := umavez.Reconciler{Ask: askNobody}
		change(&r)
		return umavez.Recovery{Route: "r", Reconciler: &r}
	}
	complete := func(change func(*umavez.Completer)) umavez.Recovery {
		c := umavez.Completer{Complete: completeNothing}
		change(&c)
		return umavez.Recovery{Route: "r", Completer: &c}
	}
	e := newEngine(t, memstore.New(memstore.Options{}), umavez.Options{MaxRun: 20 * time.Minute})
	defer closeEngine(t, e)
	for says, r := range map[string]umavez.Recovery{
		"Route is missing":          {Completer: &umavez.Completer{Complete: completeNothing}},
		"neither":                   {Route: "r"},
		"Retain is negative":        {Route: "r", Retain: -1, Reconciler: &umavez.Reconciler{Ask: askNobody}},
		"Ask is missing":            ask(func(r *umavez.Reconciler) { r.Ask = nil }),
		"Every is negative":         ask(func(r *umavez.Reconciler) { r.Every = -1 }),
		"less than the engine's 25": ask(func(r *umavez.Reconciler) { r.Quiet = 15 * time.Minute }),
		"never be asked":            ask(func(r *umavez.Reconciler) { r.After, r.Park = time.Hour, time.Minute }),
		"Who has":                   ask(func(r *umavez.Reconciler) { r.Who = strings.Repeat("x", umavez.MaxWho+1) }),
		"without NUL":               ask(func(r *umavez.Reconciler) { r.Who = "a\x00b" }),
		"Complete is missing":       complete(func(c *umavez.Completer) { c.Complete = nil }),
		"After is negative":         complete(func(c *umavez.Completer) { c.After = -1 }),
		"never begin":               complete(func(c *umavez.Completer) { c.After, c.Until = time.Minute, time.Minute }),
		"Tries is negative":         complete(func(c *umavez.Completer) { c.Tries = -1 }),
	} {
		if err := e.Recover(r); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Recover says %v, want %q", err, says)
		}
	}
	// Nothing of all that was kept; and each part is registered once.
	both := ask(func(*umavez.Reconciler) {})
	both.Completer = &umavez.Completer{Complete: completeNothing}
	if err := e.Recover(both); err != nil {
		t.Fatal(err)
	}
	for _, again := range []umavez.Recovery{ask(func(*umavez.Reconciler) {}), complete(func(*umavez.Completer) {})} {
		if err := e.Recover(again); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("Recover again says %v", err)
		}
		again.Namespace = "other"
		if err := e.Recover(again); err != nil {
			t.Errorf("Recover in another namespace: %v", err)
		}
	}
}

// TestRecoverNeedsTheStore: what the store cannot do is said at wiring.
func TestRecoverNeedsTheStore(t *testing.T) {
	plain := newEngine(t, newFaultStore(memstore.New(memstore.Options{}), nil), umavez.Options{})
	defer closeEngine(t, plain)
	settler := newSettlingStore(nil)
	unlisted := newEngine(t, struct {
		*faultStore
		umavez.Settler
	}{settler.faultStore, settler}, umavez.Options{})
	defer closeEngine(t, unlisted)
	ask := umavez.Recovery{Route: "r", Reconciler: &umavez.Reconciler{Ask: askNobody}}
	complete := umavez.Recovery{Route: "r", Completer: &umavez.Completer{Complete: completeNothing}}
	for _, c := range []struct {
		name string
		e    *umavez.Engine
		r    umavez.Recovery
		want error
	}{
		{"no settler, a reconciler", plain, ask, umavez.ErrNotOffered},
		{"no settler, a completer", plain, complete, umavez.ErrNotOffered},
		{"no lister, a completer", unlisted, complete, umavez.ErrNotOffered},
		{"no lister, a reconciler", unlisted, ask, nil},
	} {
		if err := c.e.Recover(c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

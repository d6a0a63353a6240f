package memstore_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/killtable"
	"github.com/umavez/umavez/store/memstore"
)

// foreign is the system in which operations have their effects. Asked with a key
// that it knows, it does nothing more, unless it honours none.
type foreign struct {
	noKeys bool

	mu      sync.Mutex
	keys    map[string]bool
	effects int
}

func (f *foreign) effect(_ context.Context, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key != "" && f.keys[key] && !f.noKeys {
		return nil
	}
	f.keys[key] = true
	f.effects++
	return nil
}

func (f *foreign) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.effects
}

// TestKillTable goes through every line at which a process may die. What is left
// in memory cannot outlive a real process, so its death is played: from the line
// on, not one of its calls gets through, and another engine takes over the store.
func TestKillTable(t *testing.T) {
	for _, row := range killtable.Rows {
		if row.DiesAt == "before start" || row.DiesAt == "after start" {
			continue // lines of stores that note starts
		}
		t.Run(row.Name+"/"+row.DiesAt, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playRow(t, row) })
		})
	}
}

func playRow(t *testing.T, row killtable.Row) {
	store := memstore.New(memstore.Options{})
	f := &foreign{noKeys: row.NoKeys, keys: map[string]bool{}}
	buried := make(chan struct{})
	dead := &killtable.Process{DiesAt: row.DiesAt, Die: func() { <-buried }}
	e := engineOver(t, dead.Over(store))
	// Cleanups run in reverse: the dead are let go before their engine closes.
	t.Cleanup(func() { close(buried) })
	go func() { _, _ = row.Run(t.Context(), e, dead, "k", f.effect) }()
	synctest.Wait()
	lines := dead.Lines()
	if lines[len(lines)-1] != row.DiesAt {
		t.Fatalf("the process came to %q, and not to its death", lines)
	}
	if got := f.count(); got != row.Effects {
		t.Fatalf("%d effects before it died, want %d", got, row.Effects)
	}

	time.Sleep(time.Hour) // any lease is over
	alive := new(killtable.Process)
	next := engineOver(t, alive.Over(store))
	outcome, total := row.Want(false)
	got := killtable.OutcomeOf(row.Run(t.Context(), next, alive, "k", f.effect))
	if got != outcome || f.count() != total {
		t.Errorf("the next attempt %s, %d effects in all; want %s, %d", got, f.count(), outcome, total)
	}
	// And so it stays.
	if outcome == killtable.Runs {
		outcome = killtable.Replays
	}
	got = killtable.OutcomeOf(row.Run(t.Context(), next, alive, "k", f.effect))
	if got != outcome || f.count() != total {
		t.Errorf("the attempt after that %s, %d effects in all; want %s, %d", got, f.count(), outcome, total)
	}
}

func engineOver(t *testing.T, s umavez.Store) *umavez.Engine {
	t.Helper()
	e, err := umavez.New(s, umavez.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = e.Close(ctx)
	})
	return e
}

// TestKillTableIsWhole: a process that lives comes to no line that the table
// does not have.
func TestKillTableIsWhole(t *testing.T) {
	for _, c := range killtable.Courses() {
		synctest.Test(t, func(t *testing.T) {
			p := &killtable.Process{DiesAt: "nowhere"}
			f := &foreign{keys: map[string]bool{}}
			_, _ = c.Run(t.Context(), engineOver(t, p.Over(memstore.New(memstore.Options{}))), p, "k", f.effect)
			if line := c.Lacks(p.Lines()); line != "" {
				t.Errorf("%s: the table lacks the line %q", c.Name, line)
			}
		})
	}
}

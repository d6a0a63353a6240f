//go:build unix

package sqlitestore

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/killtable"
	"github.com/umavez/umavez/store/sqlitestore/internal/startlog"
)

// die is what the child does with the order of that name: it runs a course of
// the table, and kills itself at the line.
func die(ctx context.Context, s *Store, o order) {
	p := &killtable.Process{DiesAt: o.Line, Die: func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // not an instruction runs after it
	}}
	e, err := umavez.New(p.Over(s), umavez.Options{ClaimTimeout: unhurried, SaveTimeout: unhurried})
	if err != nil {
		panic(err)
	}
	_, err = killtable.CourseOf(o.Course).Run(ctx, e, p, o.Key, atGateway(o.URL, o.Key))
	panic(err) // it came to an end, and not to its death
}

// atGateway is the effect: a charge by another process, which outlives this one.
func atGateway(url, payment string) killtable.Effect {
	return func(ctx context.Context, key string) error {
		_, err := charge(ctx, url+"/"+payment, key)
		return err
	}
}

// TestKillTable kills a real process at every line of the table, and looks at
// what the next one, on the same file, comes to.
func TestKillTable(t *testing.T) {
	for _, row := range killtable.Rows {
		t.Run(row.Name+"/"+row.DiesAt, func(t *testing.T) {
			t.Parallel()
			killRow(t, row)
		})
	}
}

func killRow(t *testing.T, row killtable.Row) {
	// Only a step asks with a key that the gateway can honour.
	g := newGateway(t, row.NoKeys || row.Policy != umavez.Stepped)
	path := file(t)
	dying := start(t, path)
	dying.tell(order{Do: "die", Key: "k", Course: row.Name, Line: row.DiesAt, URL: g.URL})
	err := dying.cmd.Wait()
	if s, ok := dying.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended with %v, and not at its line", err)
	}
	if got := g.count("k"); got != row.Effects {
		t.Fatalf("%d effects before it died, want %d", got, row.Effects)
	}

	s := open(t, path, Options{Now: func() time.Time { return time.Now().Add(time.Hour) }}) // its lease is over
	alive := new(killtable.Process)
	e, err := umavez.New(alive.Over(s), umavez.Options{ClaimTimeout: unhurried, SaveTimeout: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	outcome, total := row.Want(s.starts.Owner() != startlog.Owner{})
	effect := atGateway(g.URL, "k")
	got := killtable.OutcomeOf(row.Run(t.Context(), e, alive, "k", effect))
	if got != outcome || g.count("k") != total {
		t.Errorf("the next attempt %s, %d effects in all; want %s, %d", got, g.count("k"), outcome, total)
	}
	// And so it stays.
	if outcome == killtable.Runs {
		outcome = killtable.Replays
	}
	got = killtable.OutcomeOf(row.Run(t.Context(), e, alive, "k", effect))
	if got != outcome || g.count("k") != total {
		t.Errorf("the attempt after that %s, %d effects in all; want %s, %d", got, g.count("k"), outcome, total)
	}
	// Rows of unknown outcome: a later attempt by the same code has not changed that.
	if got := e.Stats(); got.Running != 0 {
		t.Errorf("%d attempts are still running", got.Running)
	}
}

package sqlitestore

import (
	"bytes"
	"database/sql/driver"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// claimIn claims a key in another process, and starts it or not.
func claimIn(t *testing.T, p *process, key string, lease time.Duration, start bool) umavez.AttemptID {
	t.Helper()
	a := umavez.NewAttemptID()
	r := p.ask(order{Do: "claim", Key: key, Attempt: a, Lease: lease, Start: start})
	if !r.Acquired || r.Err != "" {
		t.Fatalf("claim of %s in the other process: %+v", key, r)
	}
	return a
}

// states checks what has become of keys.
func states(t *testing.T, s *Store, want map[string]umavez.State) {
	t.Helper()
	for key, state := range want {
		if rec := get(t, s, key); rec.State != state {
			t.Errorf("the key that was %s is %v, want %v", key, rec.State, state)
		}
	}
}

// Only what was started can become unknown: what a killed process had claimed
// and not started is vacant when the file is opened again.
func TestKilledBeforeTheStart(t *testing.T) {
	path := file(t)
	p := start(t, path)
	claimIn(t, p, "claimed", time.Hour, false)
	claimIn(t, p, "started", time.Hour, true)
	a := claimIn(t, p, "done", time.Hour, true)
	p.ask(order{Do: "complete", Key: "done", Attempt: a, Answer: []byte("answer")})
	a = claimIn(t, p, "abandoned", time.Hour, true)
	p.ask(order{Do: "abandon", Key: "abandoned", Attempt: a, Answer: []byte("503")})
	a = claimIn(t, p, "abandoned, not started", time.Hour, false)
	p.ask(order{Do: "abandon", Key: "abandoned, not started", Attempt: a})
	a = claimIn(t, p, "with a step", time.Hour, false)
	p.ask(order{Do: "step", Key: "with a step", Attempt: a})
	// It takes the slot in the log that the done and the abandoned ones gave up.
	claimIn(t, p, "started later", time.Hour, true)
	p.kill()

	s := open(t, path, Options{})
	states(t, s, map[string]umavez.State{
		"claimed": umavez.Vacant, "started": umavez.Running, "done": umavez.Done,
		"abandoned": umavez.Lost, "abandoned, not started": umavez.Lost,
		"with a step": umavez.Running, "started later": umavez.Running,
	})
	logs, err := filepath.Glob(path + "-start-*")
	if err != nil || len(logs) != 1 {
		t.Errorf("start logs %v, %v; want this process's alone", logs, err)
	}
}

// A process that stays sees it at the end of the lease.
func TestKilledBesideALivingProcess(t *testing.T) {
	path := file(t)
	c := newClock()
	c.now = time.Now()
	s := open(t, path, Options{Now: c.Now})
	p := start(t, path)
	for _, key := range []string{"claimed", "looked at while it lives"} {
		claimIn(t, p, key, time.Minute, false)
	}
	claimIn(t, p, "started", time.Minute, true)
	c.advance(2 * time.Minute)
	claimOf := func(key string) (umavez.Record, bool) {
		t.Helper()
		rec, acquired, err := s.Claim(t.Context(), idOf(key), request())
		if err != nil {
			t.Fatal(err)
		}
		return rec, acquired
	}

	// Stopped is not dead: it may go on at any time.
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if rec, acquired := claimOf("looked at while it lives"); acquired || rec.State != umavez.Lost {
		t.Errorf("the key of a stopped process: %v, acquired %v", rec.State, acquired)
	}
	p.kill()
	if rec, acquired := claimOf("claimed"); !acquired {
		t.Errorf("the key that was claimed and not started: %v", rec.State)
	}
	if rec, acquired := claimOf("looked at while it lives"); !acquired {
		t.Errorf("the other one: %v", rec.State)
	}
	if rec, acquired := claimOf("started"); acquired || rec.State != umavez.Lost {
		t.Errorf("the key that was started: %v, acquired %v", rec.State, acquired)
	}
}

func TestCloseReleasesWhatDidNotStart(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{})
	claim(t, s, "claimed", request())
	l := claim(t, s, "started", request())
	if err := s.Started(l); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Started(l); err == nil {
		t.Error("something can start after the close")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("after the close there are %v", entries)
	}
	states(t, open(t, path, Options{}), map[string]umavez.State{"claimed": umavez.Vacant, "started": umavez.Running})
}

// While one store of a process lives, another one's close does not touch its keys.
func TestCloseLeavesOthersAlone(t *testing.T) {
	path := file(t)
	stays, goes := open(t, path, Options{}), open(t, path, Options{})
	l := claim(t, stays, "mine", request())
	claim(t, goes, "other", request())
	if err := goes.Close(); err != nil {
		t.Fatal(err)
	}
	states(t, stays, map[string]umavez.State{"mine": umavez.Running, "other": umavez.Vacant})
	if err := stays.Started(l); err != nil {
		t.Error(err)
	}
}

// The file is opened while another process holds the write lock: what is to be
// released waits for the next one who asks.
func TestSweepWaitsForABusyFile(t *testing.T) {
	path := file(t)
	p, other := start(t, path), start(t, path)
	claimIn(t, p, "claimed", time.Microsecond, false)
	p.kill()
	other.ask(order{Do: "hold"})
	s := open(t, path, Options{BusyTimeout: 20 * time.Millisecond})
	states(t, s, map[string]umavez.State{"claimed": umavez.Lost})
	other.ask(order{Do: "let go"})
	claim(t, s, "claimed", request())
	other.end()
}

// Only what runs has an owner: nobody asks about the rest when its process dies.
func TestWhatEndedHasNoOwner(t *testing.T) {
	s, _ := fresh(t)
	running := claim(t, s, "running", request())
	done(t, s, "done", nil)
	if err := s.Abandon(t.Context(), claim(t, s, "abandoned", request()), umavez.ReasonPanic, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), claim(t, s, "released", request())); err != nil {
		t.Fatal(err)
	}
	owned := map[string]bool{}
	err := s.readers.do(t.Context(), func(c *conn) error {
		return c.ask("SELECT id, owner FROM umavez_record WHERE owner IS NOT NULL", func(v []driver.Value) error {
			owned[string(v[0].([]byte))] = bytes.Equal(v[1].([]byte), s.writer.tx.owner[:])
			return nil
		})
	})
	if err != nil || len(owned) != 1 || !owned[string(running.ID[:])] {
		t.Errorf("owners are %v, %v; want this store's, of the running key alone", owned, err)
	}
}

// TestKilledBeforeTheStartOfATakeover: the process that had taken a lost record over
// did nothing, and nobody can say that of the one before it. The key is not given
// back.
func TestKilledBeforeTheStartOfATakeover(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{})
	req := request()
	req.Policy = umavez.Rerunnable
	rec, acquired, err := s.Claim(t.Context(), idOf("k"), req)
	if err != nil || !acquired {
		t.Fatal(acquired, err)
	}
	l := umavez.Lease{ID: idOf("k"), Attempt: req.Attempt, Fence: rec.Fence}
	if err := s.Abandon(t.Context(), l, umavez.ReasonReset, nil); err != nil {
		t.Fatal(err)
	}
	p := start(t, path)
	r := p.ask(order{
		Do: "claim", Key: "k", Attempt: umavez.NewAttemptID(), Policy: umavez.Rerunnable,
		Lease: time.Hour, TakeOver: rec.Fence, Print: req.Fingerprint,
	})
	if !r.Acquired {
		t.Fatalf("the takeover: %+v", r)
	}
	p.kill()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	states(t, open(t, path, Options{}), map[string]umavez.State{"k": umavez.Running})
}

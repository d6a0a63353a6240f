package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// clock is a store's clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// unhurried is how long batches may take, and wait for another process, where a
// test does not say. A busy machine may keep a process from running for longer
// than the defaults.
const unhurried = time.Minute

// open opens a store for a test, and closes it after.
func open(t testing.TB, path string, o Options) *Store {
	t.Helper()
	if o.BusyTimeout == 0 {
		o.BusyTimeout = unhurried
	}
	o.batchTime = unhurried
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// fresh opens a store on a file of its own, by a clock that the test moves.
func fresh(t testing.TB) (*Store, *clock) {
	t.Helper()
	c := newClock()
	return open(t, file(t), Options{Now: c.Now}), c
}

// file is where a test's store has its file: in memory, where there is such a
// directory. Most of the time on a disk is spent in syncs, and what is asked
// here, also of killed processes, does not depend on them. Benchmarks are on disk.
func file(t testing.TB) string {
	t.Helper()
	if _, bench := t.(*testing.B); bench {
		return filepath.Join(t.TempDir(), "umavez.db")
	}
	dir, err := os.MkdirTemp("/dev/shm", "umavez-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "umavez.db")
}

func idOf(name string) umavez.ID {
	return umavez.Key{Scope: umavez.Scope{Namespace: "test"}, Name: name}.ID()
}

func request() umavez.ClaimRequest {
	return umavez.ClaimRequest{Attempt: umavez.NewAttemptID(), Route: "POST /pagamentos", Lease: time.Minute}
}

// claim claims a key and fails the test if it is not granted.
func claim(t testing.TB, s *Store, name string, req umavez.ClaimRequest) umavez.Lease {
	t.Helper()
	rec, acquired, err := s.Claim(context.Background(), idOf(name), req)
	if err != nil || !acquired {
		t.Fatalf("claim of %q: acquired %v, error %v, state %v", name, acquired, err, rec.State)
	}
	return umavez.Lease{ID: idOf(name), Attempt: req.Attempt, Fence: rec.Fence}
}

var keep = umavez.Retention{Retain: 24 * time.Hour, Tombstone: 24 * time.Hour}

// done claims and completes a key.
func done(t testing.TB, s *Store, name string, answer []byte) umavez.Lease {
	t.Helper()
	l := claim(t, s, name, request())
	if err := s.Complete(context.Background(), l, answer, keep); err != nil {
		t.Fatalf("complete %q: %v", name, err)
	}
	return l
}

func get(t testing.TB, s *Store, name string) umavez.Record {
	t.Helper()
	rec, err := s.Get(context.Background(), idOf(name))
	if err != nil {
		t.Fatalf("get %q: %v", name, err)
	}
	return rec
}

// wantApplied fails the test unless err is a StoreError that says so.
func wantApplied(t testing.TB, err error, want umavez.Applied) {
	t.Helper()
	se, ok := errors.AsType[*umavez.StoreError](err)
	if !ok {
		t.Fatalf("error is %v, want a StoreError", err)
	}
	if se.Applied != want {
		t.Fatalf("error is %v, want applied: %v", err, want)
	}
}

// unable ends a test that this machine cannot run: it says why, and is no way
// past the gate, whose machine has what every test needs.
func unable(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

package umavez_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestCloseDrains: Close takes nothing new, and waits for what runs and for
// what is not saved.
func TestCloseDrains(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		op := opaque("k")
		a := mustClaim(t, e, op)
		var closed atomic.Bool
		go func() {
			closeEngine(t, e)
			closed.Store(true)
		}()
		synctest.Wait()
		if _, _, err := e.Claim(t.Context(), opaque("other")); !errors.Is(err, umavez.ErrClosed) {
			t.Errorf("Claim while closing: %v", err)
		}
		time.Sleep(time.Minute)
		if closed.Load() {
			t.Fatal("closed while an operation ran")
		}
		wantState(t, e, op, umavez.Running)
		if err := a.Complete([]byte("x")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !closed.Load() {
			t.Error("not closed after the last operation ended")
		}
	})
}

// TestCloseGivesUp: what is left when Close may wait no longer is named, and no
// goroutine stays behind (the bubble would not end).
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		s := newFaultStore(mem, func(op string, _ int) fault { return fault{lost: op == "complete"} })
		e := newEngine(t, s, umavez.Options{})
		running := mustClaim(t, e, opaque("running"))
		unsaved := mustClaim(t, e, opaque("unsaved"))
		if err := unsaved.Complete([]byte("x")); !errors.Is(err, umavez.ErrUnsaved) {
			t.Fatal(err)
		}
		waiter := make(chan error)
		go func() {
			op := opaque("running")
			op.Wait = time.Hour
			_, _, err := e.Claim(t.Context(), op)
			waiter <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := e.Close(ctx)
		left, ok := errors.AsType[*umavez.UnfinishedError](err)
		if !ok {
			t.Fatalf("Close: %v, want an UnfinishedError", err)
		}
		if len(left.Running) != 1 || left.Running[0].Lease != running.Lease() || left.Running[0].Route != "test" {
			t.Errorf("running: %+v", left.Running)
		}
		if len(left.Waiting) != 1 || left.Waiting[0].Lease != unsaved.Lease() {
			t.Errorf("waiting: %+v", left.Waiting)
		}
		if err := <-waiter; !errors.Is(err, umavez.ErrClosed) {
			t.Errorf("a waiter got %v", err)
		}
		// The operation ends after all: its answer is still taken.
		if err := running.Complete([]byte("late")); !errors.Is(err, umavez.ErrUnsaved) {
			t.Errorf("Complete after Close: %v", err)
		}
	})
}

// TestRunPurges: housekeeping drops what is over, and ends with its context.
func TestRunPurges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		e := newEngine(t, mem, umavez.Options{Retain: time.Hour, Tombstone: -1, PurgeEvery: time.Minute})
		defer closeEngine(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		if err := mustClaim(t, e, opaque("k")).Complete([]byte("x")); err != nil {
			t.Fatal(err)
		}
		running := mustClaim(t, e, opaque("running"))
		time.Sleep(2 * time.Hour)
		// Nothing is left for another purge to find.
		if n, err := mem.Purge(t.Context(), 10); n != 0 || err != nil {
			t.Errorf("Purge found %d rows, %v", n, err)
		}
		wantState(t, e, opaque("running"), umavez.Lost)
		if err := running.Complete(nil); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestCloseWaitsForClaimsOfThoseWhoLeft: a claim whose caller has left is still
// this engine's to clean up: Close leaves no running row that nobody runs.
func TestCloseWaitsForClaimsOfThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		s := newFaultStore(mem, func(op string, _ int) fault { return fault{after: 500 * time.Millisecond} })
		e := newEngine(t, s, umavez.Options{})
		ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		op := opaque("k")
		if a, _, err := e.Claim(ctx, op); a != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Claim: %v, %v", a, err)
		}
		closeEngine(t, e)
		rec, err := mem.Get(t.Context(), op.Key.ID())
		if err != nil || rec.State != umavez.Vacant {
			t.Errorf("the record is %v (%v), want vacant", rec.State, err)
		}
	})
}

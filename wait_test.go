package umavez_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestDuplicatesWaitWithoutStoreTraffic: a hundred duplicates in one process
// cost the store what one call costs it.
func TestDuplicatesWaitWithoutStoreTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaultStore(memstore.New(memstore.Options{}), nil)
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		op.Wait = 5 * time.Second
		var ran, replayed atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				res, err := umavez.Do(t.Context(), e, op, func(context.Context) (string, error) {
					ran.Add(1)
					time.Sleep(50 * time.Millisecond)
					return "answer", nil
				})
				if err != nil || res.Value != "answer" {
					t.Errorf("%+v, %v", res, err)
				}
				if res.Replayed {
					replayed.Add(1)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 1 || replayed.Load() != 99 {
			t.Errorf("%d ran, %d were replayed", ran.Load(), replayed.Load())
		}
		if c, g := s.count("claim"), s.count("get"); c != 1 || g != 0 {
			t.Errorf("the store saw %d claims and %d gets, want 1 and 0", c, g)
		}
	})
}

// TestWaitersWakeOnlyWhenAcknowledged: an answer that the store has not
// acknowledged is nobody's yet.
func TestWaitersWakeOnlyWhenAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, n int) fault {
			return fault{lost: op == "complete" && n <= 30}
		})
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		a := mustClaim(t, e, op)
		op.Wait = time.Minute
		var got atomic.Pointer[umavez.Record]
		go func() {
			_, rec, err := e.Claim(t.Context(), op)
			if err != nil {
				t.Error(err)
			}
			got.Store(&rec)
		}()
		if err := a.Complete([]byte("answer")); !errors.Is(err, umavez.ErrUnsaved) {
			t.Fatalf("Complete: %v, want ErrUnsaved", err)
		}
		synctest.Wait()
		if got.Load() != nil {
			t.Fatal("a waiter was answered before the store acknowledged")
		}
		time.Sleep(30 * time.Second)
		rec := got.Load()
		if rec == nil || rec.State != umavez.Done || string(rec.Answer) != "answer" {
			t.Fatalf("waiter got %+v", rec)
		}
		wantState(t, e, op, umavez.Done)
	})
}

func TestWaitEnds(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		a := mustClaim(t, e, op)
		for _, wait := range []time.Duration{0, -1, 5 * time.Second} {
			op.Wait = wait
			began := time.Now()
			_, rec, err := e.Claim(t.Context(), op)
			if err != nil || rec.State != umavez.Running || rec.LeaseLeft <= 0 {
				t.Errorf("wait %v: %+v, %v", wait, rec, err)
			}
			if took := time.Since(began); took != max(wait, 0) {
				t.Errorf("wait %v took %v", wait, took)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := e.Claim(ctx, op); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a waiter whose context ends: %v", err)
		}
		if err := a.Complete(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWaitersAreBounded: beyond the limits a duplicate is turned away at once.
func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(memstore.Options{}), umavez.Options{MaxWaitersPerKey: 128, MaxWaiters: 200})
		defer closeEngine(t, e)
		ops := []umavez.Operation{opaque("a"), opaque("b")}
		attempts := []*umavez.Attempt{mustClaim(t, e, ops[0]), mustClaim(t, e, ops[1])}
		var turnedAway, answered [2]atomic.Int32
		var wg sync.WaitGroup
		for i, op := range ops {
			op.Wait = time.Minute
			for range 5000 {
				wg.Go(func() {
					_, rec, err := e.Claim(t.Context(), op)
					switch {
					case err == nil && rec.State == umavez.Running:
						turnedAway[i].Add(1)
					case err == nil && rec.State == umavez.Done:
						answered[i].Add(1)
					default:
						t.Errorf("%+v, %v", rec, err)
					}
				})
			}
			synctest.Wait()
		}
		for _, a := range attempts {
			if err := a.Complete([]byte("x")); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		if a, b := answered[0].Load(), answered[1].Load(); a != 128 || b != 72 {
			t.Errorf("%d and %d waited, want 128 (a key's limit) and 72 (the process's)", a, b)
		}
	})
}

// TestReleasedAnswerGoesToAllButOne: when the attempt that many wait for is
// released, one of them claims, and the rest get the released answer.
func TestReleasedAnswerGoesToAllButOne(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		first := mustClaim(t, e, op)
		op.Wait = time.Minute
		var claimed, released atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				a, rec, err := e.Claim(t.Context(), op)
				switch {
				case a != nil:
					claimed.Add(1)
					if err := a.Complete([]byte("second")); err != nil {
						t.Error(err)
					}
				case err == nil && rec.State == umavez.Vacant && string(rec.Answer) == "slow down":
					released.Add(1)
				default:
					t.Errorf("%+v, %v", rec, err)
				}
			})
		}
		synctest.Wait()
		if err := first.Release([]byte("slow down")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if claimed.Load() != 1 || released.Load() != 19 {
			t.Errorf("%d claimed, %d got the released answer", claimed.Load(), released.Load())
		}
	})
}

// TestWaitForAnotherProcess: a duplicate waits for an attempt that another
// engine runs, and this process asks the store once for all its waiters.
func TestWaitForAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(memstore.Options{})
		there := newEngine(t, newFaultStore(shared, nil), umavez.Options{})
		s := newFaultStore(shared, nil)
		here := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, there)
		defer closeEngine(t, here)
		op := opaque("k")
		a := mustClaim(t, there, op)
		op.Wait = 10 * time.Second
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, rec, err := here.Claim(t.Context(), op)
				if err != nil || rec.State != umavez.Done {
					t.Errorf("%+v, %v", rec, err)
				}
			})
		}
		time.Sleep(3 * time.Second)
		if err := a.Complete([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if n := s.count("get"); n > 20 {
			t.Errorf("fifty waiters asked the store %d times in three seconds", n)
		}
		if n := s.count("claim"); n != 1 {
			t.Errorf("fifty waiters claimed %d times", n)
		}
		// Without a wait it must ask anew each time, and not believe old news.
		op.Wait = 0
		b := mustClaim(t, there, opaque("k2"))
		op.Key.Name = "k2"
		if _, rec, _ := here.Claim(t.Context(), op); rec.State != umavez.Running {
			t.Fatalf("%v, want running", rec.State)
		}
		if err := b.Complete([]byte("y")); err != nil {
			t.Fatal(err)
		}
		if _, rec, err := here.Claim(t.Context(), op); err != nil || rec.State != umavez.Done {
			t.Fatalf("%v %v, want done", rec.State, err)
		}
	})
}

package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestHeartbeatKeepsTheLease: an operation of a minute under a lease of fifteen
// seconds is running all the time, for everyone.
func TestHeartbeatKeepsTheLease(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, MaxUnsettled: -1})
		other := newEngine(t, s, umavez.Options{Lease: 15 * time.Second})
		defer closeEngine(t, e)
		defer closeEngine(t, other)
		op := opaque("k")
		a := mustClaim(t, e, op)
		for range 60 {
			time.Sleep(time.Second)
			rec := wantState(t, other, op, umavez.Running)
			if rec.LeaseLeft < 10*time.Second-time.Millisecond {
				t.Fatalf("only %v of the lease left", rec.LeaseLeft)
			}
		}
		if err := a.Complete([]byte("x")); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHeartbeatsShareGoroutines: ten thousand running operations sleep in one
// heap, not in ten thousand goroutines.
func TestHeartbeatsShareGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaultStore(memstore.New(memstore.Options{}), nil)
		e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, MaxUnsettled: -1})
		defer closeEngine(t, e)
		const n = 10_000
		attempts := make([]*umavez.Attempt, n)
		for i := range attempts {
			attempts[i] = mustClaim(t, e, opaque(fmt.Sprint(i)))
		}
		synctest.Wait()
		if g := runtime.NumGoroutine(); g > 50 {
			t.Errorf("%d goroutines for %d running operations", g, n)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := s.count("extend"); got < 3*n || got > 5*n {
			t.Errorf("%d extends in twenty seconds for %d operations, want about 4 each", got, n)
		}
		for i, a := range attempts {
			if err := a.Complete(nil); err != nil {
				t.Fatalf("operation %d: %v", i, err)
			}
		}
	})
}

// TestMaxRunEndsTheHeartbeat: an operation that never returns becomes lost, its
// duplicates are not kept waiting for it, and its late answer still counts.
func TestMaxRunEndsTheHeartbeat(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, MaxRun: time.Minute})
		defer closeEngine(t, e)
		op := opaque("k")
		a := mustClaim(t, e, op)
		time.Sleep(59 * time.Second)
		wantState(t, e, op, umavez.Running)
		time.Sleep(2 * time.Second)
		wantState(t, e, op, umavez.Lost)
		op.Wait = time.Hour
		if _, rec, err := e.Claim(t.Context(), op); err != nil || rec.State != umavez.Lost || rec.Reason != umavez.ReasonKilled {
			t.Fatalf("duplicate after MaxRun: %+v, %v; want lost", rec, err)
		}
		if a.Context().Err() != nil {
			t.Error("an opaque operation was cancelled at MaxRun")
		}
		if err := a.Complete([]byte("late")); err != nil {
			t.Fatalf("late completion: %v", err)
		}
		if _, rec, err := e.Claim(t.Context(), op); err != nil || string(rec.Answer) != "late" {
			t.Fatalf("%+v, %v", rec, err)
		}
	})
}

// TestHeartbeatRepeats: a store that is away for half a lease costs no lease.
func TestHeartbeatRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away bool
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
			return fault{lost: away && op == "extend"}
		})
		e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, MaxUnsettled: -1})
		defer closeEngine(t, e)
		op := opaque("k")
		a := mustClaim(t, e, op)
		time.Sleep(6 * time.Second)
		s.mu.Lock()
		away = true
		s.mu.Unlock()
		time.Sleep(8 * time.Second)
		wantState(t, e, op, umavez.Running)
		s.mu.Lock()
		away = false
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		if rec := wantState(t, e, op, umavez.Running); rec.LeaseLeft < 10*time.Second {
			t.Errorf("%v of the lease left after the store came back", rec.LeaseLeft)
		}
		if err := a.Complete(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLeaseRunsOutUnextended: a rerunnable operation is told to stop when its
// lease has run out, since another attempt may be running; an opaque one is not.
func TestLeaseRunsOutUnextended(t *testing.T) {
	for _, policy := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
					return fault{notSent: op == "extend"}
				})
				e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, MaxUnsettled: -1})
				defer closeEngine(t, e)
				op := opaque("k")
				op.Policy = policy
				a := mustClaim(t, e, op)
				time.Sleep(14 * time.Second)
				if a.Context().Err() != nil {
					t.Fatal("cancelled while the lease was good")
				}
				time.Sleep(3 * time.Second)
				cause := context.Cause(a.Context())
				if policy == umavez.Opaque {
					if cause != nil {
						t.Errorf("an opaque operation was cancelled: %v", cause)
					}
				} else if !errors.Is(cause, umavez.ErrLeaseRanOut) {
					t.Errorf("cause %v, want ErrLeaseRanOut", cause)
				}
				b, rec, err := e.Claim(t.Context(), op)
				if err != nil {
					t.Fatal(err)
				}
				switch policy {
				case umavez.Opaque:
					if b != nil || rec.State != umavez.Lost {
						t.Fatalf("a lost opaque operation: %v %v, want lost", b, rec.State)
					}
					if err := a.Complete([]byte("late")); err != nil {
						t.Fatal(err)
					}
				default:
					if b == nil {
						t.Fatalf("a lost rerunnable operation was not taken over: %+v", rec)
					}
					if err := a.Complete([]byte("old")); !errors.Is(err, umavez.ErrLeaseLost) {
						t.Errorf("the replaced owner completes: %v, want ErrLeaseLost", err)
					}
					if err := b.Complete([]byte("new")); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// TestSettledCancels: when the record is taken from a running attempt, its
// operation is told, with the cause.
func TestSettledCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		s := newFaultStore(mem, nil)
		e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, MaxUnsettled: -1})
		defer closeEngine(t, e)
		op := opaque("k")
		a := mustClaim(t, e, op)
		// Somebody else ends the record under the attempt's name.
		if err := mem.Release(t.Context(), a.Lease()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		if cause := context.Cause(a.Context()); !errors.Is(cause, umavez.ErrLeaseLost) {
			t.Errorf("cause %v, want ErrLeaseLost", cause)
		}
		if err := a.Complete([]byte("x")); !errors.Is(err, umavez.ErrLeaseLost) {
			t.Errorf("Complete: %v, want ErrLeaseLost", err)
		}
	})
}

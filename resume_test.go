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

func TestResumeTakesOverTheLostRecord(t *testing.T) {
	eachSettlingStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := stepped("k")
		op.Request = []byte("request")
		first := lose(t, e, op)
		if umavez.Completing(first.Context()) {
			t.Error("a client's own attempt is said to be completing")
		}
		a, _, err := e.Resume(t.Context(), op, first.Lease().Fence)
		if err != nil || a == nil {
			t.Fatalf("Resume: %v, %v", a, err)
		}
		if !umavez.Completing(a.Context()) || umavez.Completing(t.Context()) {
			t.Error("Completing is not true of the resumed attempt alone")
		}
		if err := a.Complete([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		wantState(t, e, op, umavez.Done)
	})
}

// TestResumeIsGrantedNothingElse: a key that has moved comes back as its record.
func TestResumeIsGrantedNothingElse(t *testing.T) {
	eachSettlingStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		resume := func(op umavez.Operation, fence umavez.Fence, want umavez.State) {
			t.Helper()
			a, rec, err := e.Resume(t.Context(), op, fence)
			if a != nil || err != nil || rec.State != want {
				t.Errorf("Resume: attempt %v, %v, %v; want the record, %v", a, rec.State, err, want)
			}
		}
		resume(stepped("never seen"), 1, umavez.Vacant)

		released := stepped("released")
		a := mustClaim(t, e, released)
		if err := a.Release(nil); err != nil {
			t.Fatal(err)
		}
		resume(released, a.Lease().Fence, umavez.Vacant)

		op := stepped("k")
		lost := lose(t, e, op).Lease().Fence
		resume(op, lost-1, umavez.Lost)
		again := mustClaim(t, e, op)
		resume(op, lost, umavez.Running)
		if err := again.Abandon(umavez.ReasonBroken, nil); err != nil {
			t.Fatal(err)
		}
		resume(op, lost, umavez.Lost) // lost again, but another attempt's loss
		if err := again.Complete(nil); !errors.Is(err, umavez.ErrEnded) {
			t.Fatal(err)
		}
		other := op
		other.Fingerprint.Sum[0] = 1
		if a, _, err := e.Resume(t.Context(), other, again.Lease().Fence); a != nil || !errors.Is(err, umavez.ErrKeyReused) {
			t.Errorf("Resume of another request: %v, %v", a, err)
		}
		if err := mustClaim(t, e, op).Complete([]byte("x")); err != nil {
			t.Fatal(err)
		}
		resume(op, again.Lease().Fence, umavez.Done)

		charged := opaque("opaque")
		resume(charged, lose(t, e, charged).Lease().Fence, umavez.Lost)
		if _, _, err := e.Resume(t.Context(), op, 0); err == nil {
			t.Error("Resume takes no fence for one")
		}
	})
}

// TestResumeReadsAnOlderRecipe: the record's fingerprint decides.
func TestResumeReadsAnOlderRecipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(memstore.Options{}), umavez.Options{})
		defer closeEngine(t, e)
		op := stepped("k")
		op.Fingerprint = umavez.Fingerprint{Recipe: 1, Sum: [32]byte{1}}
		fence := lose(t, e, op).Lease().Fence
		newer := op
		newer.Fingerprint = umavez.Fingerprint{Recipe: 2}
		newer.Refingerprint = func(uint32) (umavez.Fingerprint, bool) { return op.Fingerprint, true }
		a, _, err := e.Resume(t.Context(), newer, fence)
		if err != nil || a == nil {
			t.Fatalf("Resume: %v, %v", a, err)
		}
		if err := a.Complete(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestATakeoverThatNeverStartsKeepsTheRecord: whoever takes over and leaves gives
// back a record that knows what earlier attempts may have done.
func TestATakeoverThatNeverStartsKeepsTheRecord(t *testing.T) {
	for name, on := range map[string]func(op string, n int) fault{
		"the caller has left": func(op string, n int) fault {
			if op == "claim" && n > 1 {
				return fault{after: time.Second}
			}
			return fault{}
		},
		"the reply was lost": func(op string, n int) fault {
			return fault{replyLost: op == "claim" && n > 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSettlingStore(on)
				e := newEngine(t, s, umavez.Options{})
				op := stepped("k")
				op.Request = []byte("request")
				fence := lose(t, e, op).Lease().Fence
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				if name != "the caller has left" {
					ctx = t.Context()
				}
				if a, _, err := e.Resume(ctx, op, fence); a != nil || err == nil {
					t.Fatalf("Resume: %v, %v", a, err)
				}
				closeEngine(t, e)
				rec, err := s.mem.Get(t.Context(), op.Key.ID())
				if err != nil || rec.State != umavez.Lost || rec.Tries != 2 || string(rec.Request) != "request" {
					t.Errorf("the record is %v after %d tries, with the request %q (%v); want it lost, and whole", rec.State, rec.Tries, rec.Request, err)
				}
			})
		})
	}
}

// TestNoResumeStartsAfterUntil: the store's answer decides, however long it took.
func TestNoResumeStartsAfterUntil(t *testing.T) {
	for _, c := range []struct {
		age, takes time.Duration
		starts     bool
	}{
		{9 * time.Minute, 0, true},
		{10*time.Minute - time.Millisecond, 0, true},
		{10 * time.Minute, 0, false},
		{10*time.Minute - 500*time.Millisecond, time.Second, false}, // granted before, started after
		{time.Hour, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSettlingStore(func(op string, n int) fault {
				if op == "claim" && n > 1 {
					return fault{after: c.takes}
				}
				return fault{}
			})
			e := newEngine(t, s, umavez.Options{ClaimTimeout: 10 * time.Second})
			defer closeEngine(t, e)
			mustRecover(t, e, umavez.Recovery{Completer: &umavez.Completer{Complete: completeNothing}})
			op := stepped("k")
			fence := lose(t, e, op).Lease().Fence
			time.Sleep(c.age)
			a, rec, err := e.Resume(t.Context(), op, fence)
			switch {
			case c.starts && (a == nil || err != nil):
				t.Errorf("at the age of %v: %v, %v; want an attempt", c.age, a, err)
			case !c.starts && (a != nil || !errors.Is(err, umavez.ErrTooLate)):
				t.Errorf("at the age of %v: %v, %v, %v; want ErrTooLate", c.age, a, rec.State, err)
			}
			if a != nil {
				_ = a.Complete(nil)
				return
			}
			// The client's own retry may go on with it.
			if err := mustClaim(t, e, op).Complete(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut atomic.Bool
		s := newSettlingStore(func(op string, _ int) fault { return fault{lost: cut.Load() && op == "extend"} })
		e := newEngine(t, s, umavez.Options{Lease: 3 * time.Second})
		defer closeEngine(t, e)
		want := func(ctx context.Context, want error) {
			t.Helper()
			if got := umavez.Owned(ctx); !errors.Is(got, want) || want == nil && got != nil {
				t.Errorf("Owned says %v, want %v", got, want)
			}
		}
		want(t.Context(), umavez.ErrNoAttempt)
		a := mustClaim(t, e, opaque("k"))
		time.Sleep(time.Minute)
		want(a.Context(), nil) // heartbeats keep it
		cut.Store(true)
		time.Sleep(4 * time.Second)
		want(a.Context(), umavez.ErrLeaseRanOut)
		cut.Store(false)
		if err := a.Complete(nil); err != nil {
			t.Fatal(err)
		}
		want(a.Context(), umavez.ErrEnded)

		// Settled by others, while its own clock says nothing.
		b := mustClaim(t, e, opaque("settled"))
		if err := s.mem.Abandon(t.Context(), b.Lease(), umavez.ReasonKilled, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.mem.Settle(t.Context(), b.Lease().ID, umavez.Settlement{
			ID: umavez.NewAttemptID(), Action: umavez.ActionCannotHappen, Fence: b.Lease().Fence, Who: "w", Why: "y",
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		want(b.Context(), umavez.ErrLeaseLost)
		_ = b.Abandon(umavez.ReasonError, nil)
	})
}

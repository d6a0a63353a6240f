package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestClaimReplyLost: the store applies the claim, and its reply is lost. The
// engine asks again, finds itself the owner, and runs, once.
func TestClaimReplyLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, n int) fault {
			return fault{replyLost: op == "claim" && n%2 == 1}
		})
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		for i := range 100 {
			a := mustClaim(t, e, opaque(fmt.Sprint(i)))
			if err := a.Complete([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestClaimNeverKnown: every reply to a claim is lost, and the store stays
// away. Nothing runs, and no key is left running once the store is back.
func TestClaimNeverKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
			return fault{replyLost: op == "claim" && away.Load(), lost: op == "release" && away.Load()}
		})
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				a, _, err := e.Claim(t.Context(), opaque(fmt.Sprint(i)))
				if a != nil || !errors.Is(err, umavez.ErrUnavailable) {
					t.Errorf("Claim: %v, %v; want ErrUnavailable", a, err)
				}
			})
		}
		wg.Wait()
		time.Sleep(30 * time.Second)
		away.Store(false)
		time.Sleep(5 * time.Second)
		for i := range 100 {
			wantState(t, e, opaque(fmt.Sprint(i)), umavez.Vacant)
		}
	})
}

// TestStoreDown: a store that is down means that nothing is run, and that the
// caller is told so within the claim's timeout.
func TestStoreDown(t *testing.T) {
	for name, f := range map[string]fault{
		"refused": {notSent: true},
		"reset":   {lost: true},
		"hangs":   {delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var up atomic.Bool
				s := newFaultStore(memstore.New(memstore.Options{}), func(string, int) fault {
					if up.Load() {
						return fault{}
					}
					return f
				})
				e := newEngine(t, s, umavez.Options{})
				began := time.Now()
				a, _, err := e.Claim(t.Context(), opaque("k"))
				if a != nil || !errors.Is(err, umavez.ErrUnavailable) {
					t.Errorf("Claim: %v, %v; want ErrUnavailable", a, err)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("it took %v to say so", took)
				}
				up.Store(true)
				closeEngine(t, e)
			})
		})
	}
}

// TestCallersWhoLeave: a thousand callers leave at any moment of their claim.
// Each gets its answer at once, nothing runs for them, and no key stays claimed.
func TestCallersWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
			if op != "claim" {
				return fault{}
			}
			ms := func() time.Duration { return time.Duration(rng.IntN(5000)) * time.Microsecond }
			return fault{delay: ms(), after: ms()}
		})
		e := newEngine(t, s, umavez.Options{MaxReleases: 2000})
		defer closeEngine(t, e)
		var ran sync.Map
		var wg sync.WaitGroup
		for i := range 1000 {
			patience := time.Duration(rand.IntN(8000)) * time.Microsecond
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				a, _, err := e.Claim(ctx, opaque(fmt.Sprint(i)))
				if took := time.Since(began); took > patience+time.Microsecond {
					t.Errorf("a caller who left after %v was answered after %v", patience, took)
				}
				switch {
				case a != nil:
					ran.Store(i, true)
					if err := a.Complete([]byte("x")); err != nil {
						t.Error(err)
					}
				case !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("Claim: %v", err)
				}
			})
		}
		wg.Wait()
		time.Sleep(15 * time.Second)
		left := 0
		for i := range 1000 {
			want := umavez.Vacant
			if _, ok := ran.Load(i); ok {
				want = umavez.Done
			} else {
				left++
			}
			wantState(t, e, opaque(fmt.Sprint(i)), want)
		}
		if left < 300 {
			t.Errorf("only %d callers left before their claim was won; the test shows nothing", left)
		}
	})
}

// TestReleaseQueueIsBounded: when too many claims wait to be released, new ones
// are refused and nothing is forgotten.
func TestReleaseQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		s := newFaultStore(memstore.New(memstore.Options{}), func(string, int) fault {
			return fault{lost: away.Load()}
		})
		e := newEngine(t, s, umavez.Options{MaxReleases: 10})
		defer closeEngine(t, e)
		for i := range 10 {
			if _, _, err := e.Claim(t.Context(), opaque(fmt.Sprint(i))); !errors.Is(err, umavez.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		before := s.count("claim")
		if _, _, err := e.Claim(t.Context(), opaque("k")); !errors.Is(err, umavez.ErrUnavailable) {
			t.Fatalf("with a full queue: %v", err)
		}
		if s.count("claim") != before {
			t.Error("the store was asked for a claim that could not have been given back")
		}
		away.Store(false)
		time.Sleep(5 * time.Second)
		a := mustClaim(t, e, opaque("k"))
		if err := a.Complete(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestClockCheckBeforeStart: when most of a lease has gone by before the claim
// was answered, the lease is extended before anything runs, by whichever clock
// saw the time pass.
func TestClockCheckBeforeStart(t *testing.T) {
	for _, test := range []struct {
		name       string
		wall, mono time.Duration
		extends    int
	}{
		{"quick", time.Second, time.Second, 0},
		{"slow", 11 * time.Second, 11 * time.Second, 1},
		{"suspended machine: only the wall clock saw it", 11 * time.Second, 0, 1},
		{"wall clock set back: only the monotonic clock saw it", -time.Hour, 11 * time.Second, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var wall, mono atomic.Int64
				s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
					if op == "claim" { // the clocks move while the claim is under way
						wall.Add(int64(test.wall))
						mono.Add(int64(test.mono))
					}
					return fault{}
				})
				o := umavez.Options{Lease: 15 * time.Second}
				o.SetClock(func() (time.Duration, time.Duration) {
					return time.Duration(wall.Load()), time.Duration(mono.Load())
				})
				e := newEngine(t, s, o)
				defer closeEngine(t, e)
				a := mustClaim(t, e, opaque("k"))
				if n := s.count("extend"); n != test.extends {
					t.Errorf("%d extends before the start, want %d", n, test.extends)
				}
				if err := a.Complete(nil); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestClockCheckFails: a lease that is nearly over and cannot be extended means
// that nothing runs; the key is given back.
func TestClockCheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, n int) fault {
			switch {
			case op == "claim" && n == 1:
				return fault{after: 900 * time.Millisecond}
			case op == "extend":
				return fault{lost: true}
			}
			return fault{}
		})
		e := newEngine(t, s, umavez.Options{Lease: time.Second})
		defer closeEngine(t, e)
		op := opaque("k")
		if a, _, err := e.Claim(t.Context(), op); a != nil || !errors.Is(err, umavez.ErrUnavailable) {
			t.Fatalf("Claim: %v, %v; want ErrUnavailable", a, err)
		}
		time.Sleep(time.Second)
		wantState(t, e, op, umavez.Vacant)
	})
}

// TestTakeOver: a lost rerunnable operation runs again, for the same request
// and the same policy only.
func TestTakeOver(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second})
		defer closeEngine(t, e)
		op := opaque("k")
		op.Policy = umavez.Rerunnable
		op.Fingerprint.Sum[0] = 1
		a := mustClaim(t, e, op)
		if err := a.Abandon(umavez.ReasonPanic, []byte("last")); err != nil {
			t.Fatal(err)
		}
		other := op
		other.Fingerprint.Sum[0] = 2
		if b, _, err := e.Claim(t.Context(), other); b != nil || !errors.Is(err, umavez.ErrKeyReused) {
			t.Errorf("another request takes over: %v, %v", b, err)
		}
		other = op
		other.Policy = umavez.Opaque
		if b, rec, err := e.Claim(t.Context(), other); b != nil || err != nil || rec.State != umavez.Lost || string(rec.Last) != "last" {
			t.Errorf("code that says opaque takes over: %v, %+v, %v", b, rec, err)
		}
		b := mustClaim(t, e, op)
		if b.Lease().Fence <= a.Lease().Fence {
			t.Errorf("fence %d after %d", b.Lease().Fence, a.Lease().Fence)
		}
		if err := b.Complete([]byte("x")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPoliciesNotOffered(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		for _, p := range []umavez.Policy{umavez.Atomic, 17} {
			op := opaque("k")
			op.Policy = p
			if a, _, err := e.Claim(t.Context(), op); a != nil || err == nil {
				t.Errorf("policy %v is accepted", p)
			}
		}
	})
}

// TestDuplicatesWhileTheLeaseIsMadeGood: a claim's reply was slow, so that its
// lease is extended before the operation starts. Duplicates ask meanwhile how
// much of it is left.
func TestDuplicatesWhileTheLeaseIsMadeGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
			switch op {
			case "claim":
				return fault{after: 700 * time.Millisecond}
			case "extend":
				return fault{delay: 100 * time.Millisecond}
			}
			return fault{}
		})
		e := newEngine(t, s, umavez.Options{Lease: time.Second})
		defer closeEngine(t, e)
		op := opaque("k")
		var duplicates sync.WaitGroup
		for i := range 20 {
			duplicates.Go(func() {
				time.Sleep(701*time.Millisecond + time.Duration(i)*10*time.Millisecond)
				if a, rec, err := e.Claim(t.Context(), op); a != nil || err != nil || rec.State != umavez.Running {
					t.Errorf("a duplicate got %v, %v, %v", a, rec.State, err)
				}
			})
		}
		a := mustClaim(t, e, op)
		duplicates.Wait()
		if err := a.Complete([]byte("x")); err != nil {
			t.Error(err)
		}
	})
}

// TestTakenOverRecordIsNotReleased: an attempt may vouch for itself that it did
// nothing, and not for the one that was lost before it. Neither the operation nor
// another request with the key may be told that nothing happened.
func TestTakenOverRecordIsNotReleased(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		op.Policy = umavez.Rerunnable
		first := mustClaim(t, e, op)
		if err := first.Abandon(umavez.ReasonPanic, nil); err != nil {
			t.Fatal(err)
		}
		second := mustClaim(t, e, op)
		if err := second.Release([]byte("429")); err != nil {
			t.Fatal(err)
		}
		rec, err := e.Get(t.Context(), op.Key)
		if err != nil || rec.State != umavez.Lost || string(rec.Last) != "429" {
			t.Fatalf("the record is %v, last word %q, %v; want it lost, with what was said last", rec.State, rec.Last, err)
		}
		other := op
		other.Fingerprint.Sum[0] ^= 1
		if a, _, err := e.Claim(t.Context(), other); a != nil || !errors.Is(err, umavez.ErrKeyReused) {
			t.Errorf("another request with the key: attempt %v, %v", a, err)
		}
		if err := mustClaim(t, e, op).Complete([]byte("answer")); err != nil {
			t.Errorf("the next attempt: %v", err)
		}
	})
}

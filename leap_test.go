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

// leaping is a store's clock, and a process's wall clock, that can leap.
type leaping struct{ by atomic.Int64 }

func (l *leaping) now() time.Time { return time.Now().Add(time.Duration(l.by.Load())) }

// TestLeapIsNoQuietTime: after a leap of the wall clock, nothing of what was on
// the wire has had time to arrive. What was not found before has to be looked for
// again, a whole quiet time later.
func TestLeapIsNoQuietTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leap leaping
		began := time.Now()
		s := memstore.New(memstore.Options{Now: leap.now})
		o := umavez.Options{}
		o.SetClock(func() (wall, mono time.Duration) { return leap.now().Sub(began), time.Since(began) })
		// The owner's process is gone; another one, which sees the leap, asks.
		e := newEngine(t, s, umavez.Options{})
		lose(t, e, opaque("k"))
		closeEngine(t, e)
		asks := newEngine(t, s, o)
		defer closeEngine(t, asks)
		mustRecover(t, asks, umavez.Recovery{Reconciler: &umavez.Reconciler{
			Ask: func(context.Context, umavez.LostRecord) (umavez.Verdict, error) { return umavez.CannotHappen(), nil },
		}})
		defer keepRunning(t, asks)()
		passTime(2 * time.Minute)
		leap.by.Store(int64(time.Hour))
		passTime(umavez.DefaultQuiet - time.Minute)
		rec := wantState(t, asks, opaque("k"), umavez.Lost)
		err := asks.Settle(t.Context(), opaque("k").Key.ID(), umavez.Settlement{
			Action: umavez.ActionCannotHappen, Fence: rec.Fence, Quiet: asks.Quiet(), Who: "ana", Why: "nothing found",
		})
		if !errors.Is(err, umavez.ErrNotQuiet) {
			t.Errorf("a person who looked before the quiet time was over: %v", err)
		}
		passTime(2 * time.Hour) // the pauses have grown
		wantState(t, asks, opaque("k"), umavez.Vacant)
	})
}

// TestNobodyRecoversWhatThisProcessRuns: the store's clock leaps, and a running
// attempt looks lost. This process knows better, by its own clocks.
func TestNobodyRecoversWhatThisProcessRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leap leaping
		s := memstore.New(memstore.Options{Now: leap.now})
		e := newEngine(t, s, umavez.Options{RecoverEvery: 100 * time.Millisecond})
		defer closeEngine(t, e)
		var touched atomic.Int64
		mustRecover(t, e, umavez.Recovery{
			Reconciler: &umavez.Reconciler{Ask: func(context.Context, umavez.LostRecord) (umavez.Verdict, error) {
				touched.Add(1)
				return umavez.CannotHappen(), nil
			}},
			Completer: &umavez.Completer{Until: 3 * time.Hour, Complete: func(context.Context, umavez.LostRecord) error {
				touched.Add(1)
				return nil
			}},
		})
		asked, completed := opaque("asked"), opaque("completed")
		completed.Policy, completed.Request = umavez.Rerunnable, []byte("request")
		for _, op := range []umavez.Operation{asked, completed} {
			a := mustClaim(t, e, op)
			defer func() { _ = a.Complete([]byte("answer")) }()
		}
		defer keepRunning(t, e)()
		leap.by.Store(int64(time.Hour))
		time.Sleep(4 * time.Second) // the next heartbeat comes after 5 s
		if n := touched.Load(); n != 0 {
			t.Errorf("%d records were taken up whose attempts run in this process", n)
		}
	})
}

// TestOverrunAttemptIsToldOfItsSettlement: past MaxRun an opaque operation has no
// heartbeat, and is told all the same when others have settled its key.
func TestOverrunAttemptIsToldOfItsSettlement(t *testing.T) {
	eachSettlingStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		a := mustClaim(t, e, opaque("k"))
		time.Sleep(20 * time.Minute) // MaxRun is 5
		if a.Context().Err() != nil {
			t.Fatal("an opaque operation was told to stop though nobody has settled it")
		}
		err := e.Settle(t.Context(), a.Lease().ID, umavez.Settlement{
			Action: umavez.ActionCannotHappen, Fence: a.Lease().Fence, Quiet: e.Quiet(), Who: "ana", Why: "a test",
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if !errors.Is(context.Cause(a.Context()), umavez.ErrLeaseLost) {
			t.Errorf("a minute after the settlement the operation's context says %v", context.Cause(a.Context()))
		}
		_ = a.Abandon(umavez.ReasonError, nil)
	})
}

// lateFirstClaim gives no answer to the first claim of one key, which is applied
// when the test says so.
type lateFirstClaim struct {
	umavez.Store
	key  umavez.ID
	once sync.Once
	late func()
}

func (s *lateFirstClaim) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (rec umavez.Record, acquired bool, err error) {
	lost := false
	if id == s.key {
		s.once.Do(func() {
			lost = true
			s.late = func() { _, _, _ = s.Store.Claim(context.WithoutCancel(ctx), id, req) }
		})
	}
	if lost {
		return rec, false, &umavez.StoreError{Op: "claim", Err: errLater}
	}
	return s.Store.Claim(ctx, id, req)
}

// TestRefusedAfterMaybeIsGivenBack: a claim whose reply was lost may arrive after
// its repeat was refused. Nothing of it may stay behind.
func TestRefusedAfterMaybeIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := opaque("k")
		s := &lateFirstClaim{Store: memstore.New(memstore.Options{}), key: op.Key.ID()}
		e := newEngine(t, s, umavez.Options{MaxUnsettled: 1})
		defer closeEngine(t, e)
		first := mustClaim(t, e, opaque("another"))
		if _, _, err := e.Claim(t.Context(), op); !errors.Is(err, umavez.ErrTooManyUnsettled) {
			t.Fatalf("claim: %v", err)
		}
		if err := first.Complete([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // what is given back in the background has arrived
		s.late()
		time.Sleep(time.Minute)
		wantState(t, e, op, umavez.Vacant)
	})
}

// TestObserverThatPanicsStrandsNoKey: the attempt that it kept from starting is
// given back.
func TestObserverThatPanicsStrandsNoKey(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		var once sync.Once
		e := newEngine(t, s, umavez.Options{Observe: func(o umavez.Observation) {
			if o.Moment == umavez.MomentClaimed {
				once.Do(func() { panic("observer") })
			}
		}})
		defer closeEngine(t, e)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _, _ = e.Claim(t.Context(), opaque("k"))
		}()
		time.Sleep(time.Second)
		if err := mustClaim(t, e, opaque("k")).Complete([]byte("answer")); err != nil {
			t.Error(err)
		}
	})
}

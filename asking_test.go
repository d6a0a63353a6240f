package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
)

// TestTheNextAttemptAsks: and goes by what the record says then.
func TestTheNextAttemptAsks(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict umavez.Verdict
		check   func(t *testing.T, a *umavez.Attempt, rec umavez.Record)
	}{
		{"happened", umavez.Happened([]byte("answer")), func(t *testing.T, a *umavez.Attempt, rec umavez.Record) {
			if a != nil || rec.State != umavez.Done || string(rec.Answer) != "answer" {
				t.Errorf("got attempt %v and %v %q, want the answer", a, rec.State, rec.Answer)
			}
		}},
		{"cannot happen", umavez.CannotHappen().Proven("cancelled"), func(t *testing.T, a *umavez.Attempt, rec umavez.Record) {
			if a == nil {
				t.Fatalf("got %v, want an attempt", rec.State)
			}
			if err := a.Complete(nil); err != nil {
				t.Error(err)
			}
		}},
		{"still unknown", umavez.StillUnknown(), func(t *testing.T, a *umavez.Attempt, rec umavez.Record) {
			if a != nil || rec.State != umavez.Lost || rec.HeldLeft < 25*time.Second || rec.HeldLeft > 50*time.Second {
				t.Errorf("got attempt %v and %v, held for %v; want to know when the next turn is", a, rec.State, rec.HeldLeft)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachSettlingStore(t, func(t *testing.T, s umavez.Store) {
				e := newEngine(t, s, umavez.Options{})
				defer closeEngine(t, e)
				ask := newAsker(func(int, umavez.LostRecord) (umavez.Verdict, error) { return c.verdict, nil })
				ask.took = time.Second
				mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
				lose(t, e, opaque("k"))
				passTime(9 * time.Second)
				if _, rec, err := e.Claim(t.Context(), opaque("k")); err != nil || rec.State != umavez.Lost || len(ask.times()) != 0 {
					t.Errorf("before After: %v, %v, asked at %v", rec.State, err, ask.times())
				}
				passTime(time.Second)
				a, rec, err := e.Claim(t.Context(), opaque("k"))
				if err != nil {
					t.Fatal(err)
				}
				c.check(t, a, rec)
				if n := len(ask.times()); n != 1 {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

// TestDuplicatesFollowTheAsking: one asks, all of this process wait, each for as
// long as it may.
func TestDuplicatesFollowTheAsking(t *testing.T) {
	eachSettlingStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		ask := newAsker(happened("answer"))
		ask.took = 10 * time.Second
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		op := opaque("k")
		op.Fingerprint = umavez.Fingerprint{Recipe: 1, Sum: [32]byte{1}}
		lose(t, e, op)
		passTime(time.Minute)
		other := op
		other.Fingerprint.Sum[0] = 2
		otherIsReused := func() {
			began := time.Now()
			if _, _, err := e.Claim(t.Context(), other); !errors.Is(err, umavez.ErrKeyReused) || time.Since(began) > 0 {
				t.Errorf("another request, after %v: %v", time.Since(began), err)
			}
		}
		otherIsReused()
		synctest.Wait()
		if n := len(ask.times()); n != 0 {
			t.Errorf("another request has it asked")
		}
		var wg sync.WaitGroup
		for i, c := range []struct {
			wait, took time.Duration
			want       umavez.State
		}{
			{time.Minute, 10 * time.Second, umavez.Done},
			{0, 2 * time.Second, umavez.Lost}, // as long as any claim may take
			{5 * time.Second, 5 * time.Second, umavez.Lost},
			{11 * time.Second, 10 * time.Second, umavez.Done},
		} {
			wg.Go(func() {
				mine := op
				mine.Wait = c.wait
				began := time.Now()
				_, rec, err := e.Claim(t.Context(), mine)
				if took := time.Since(began); err != nil || rec.State != c.want || took != c.took {
					t.Errorf("%d: %v (%v) after %v, want %v after %v", i, rec.State, err, took, c.want, c.took)
				}
			})
		}
		passTime(time.Second)
		otherIsReused()
		if s := e.Stats(); s.Asking != 1 {
			t.Errorf("Stats: %+v", s)
		}
		wg.Wait()
		if n := len(ask.times()); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestTheAskingGoesOn: without the caller for whom it began, and Close waits for it.
func TestTheAskingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettlingStore(nil)
		e := newEngine(t, s, umavez.Options{})
		ask := newAsker(happened("answer"))
		ask.took = 10 * time.Second
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		lose(t, e, opaque("k"))
		passTime(time.Minute)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		op := opaque("k")
		op.Wait = time.Minute
		if _, _, err := e.Claim(ctx, op); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller that left gets %v", err)
		}
		began := time.Now()
		closeEngine(t, e)
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("Close took %v, want the rest of the asking", took)
		}
		rec, err := s.mem.Get(t.Context(), op.Key.ID())
		if err != nil || rec.State != umavez.Done {
			t.Errorf("the record is %v (%v)", rec.State, err)
		}
	})
}

// TestCloseGivesUpOnAsk: when its context ends, Ask's ends too, and with it all
// that the engine does.
func TestCloseGivesUpOnAsk(t *testing.T) {
	for _, byWorker := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine(t, newSettlingStore(nil), umavez.Options{})
			began, ended := make(chan struct{}), make(chan error, 1)
			mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{
				Ask: func(ctx context.Context, _ umavez.LostRecord) (umavez.Verdict, error) {
					close(began)
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return umavez.StillUnknown(), ctx.Err()
				},
			}})
			lose(t, e, opaque("k"))
			passTime(time.Minute)
			if byWorker {
				defer keepRunning(t, e)()
			} else if _, rec, err := e.Claim(t.Context(), opaque("k")); err != nil || rec.State != umavez.Lost {
				t.Errorf("Claim: %v, %v", rec.State, err)
			}
			<-began
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			called := time.Now()
			_ = e.Close(ctx)
			if took := time.Since(called); took > 5*time.Second {
				t.Errorf("Close took %v", took)
			}
			if cause := <-ended; !errors.Is(cause, umavez.ErrClosed) {
				t.Errorf("Ask's context ended with %v", cause)
			}
		})
	}
}

// TestAskingIsBounded: beyond the bound nobody is asked, and nobody waits.
func TestAskingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, newSettlingStore(nil), umavez.Options{MaxRecovering: 3})
		defer closeEngine(t, e)
		ask := newAsker(nil)
		ask.took = 20 * time.Second
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		for i := range 10 {
			lose(t, e, opaque(fmt.Sprint(i)))
		}
		passTime(time.Minute)
		for i := range 10 {
			go func() {
				if _, rec, err := e.Claim(context.Background(), opaque(fmt.Sprint(i))); err != nil || rec.State != umavez.Lost {
					t.Errorf("Claim: %v, %v", rec.State, err)
				}
			}()
		}
		passTime(10 * time.Second)
		if n := len(ask.times()); n != 3 || ask.most != 3 {
			t.Errorf("asked %d times, %d at once", n, ask.most)
		}
	})
}

// TestWhoComesLateIsNotToldAnOldLoss: a late owner completes elsewhere while it is
// asked here; whoever comes after that gets its answer, and no "unknown".
func TestWhoComesLateIsNotToldAnOldLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettlingStore(nil) // one that is not looked at before the flight
		owner := newEngine(t, s, umavez.Options{MaxRun: 15 * time.Second})
		defer closeEngine(t, owner)
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		ask := newAsker(nil)
		ask.took = 20 * time.Second
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		a := mustClaim(t, owner, opaque("k"))
		passTime(time.Minute)
		go func() { _, _, _ = e.Claim(context.Background(), opaque("k")) }()
		passTime(5 * time.Second)
		if err := a.Complete([]byte("late")); err != nil {
			t.Fatal(err)
		}
		if _, rec, err := e.Claim(t.Context(), opaque("k")); err != nil || rec.State != umavez.Done {
			t.Errorf("after the late answer was saved: %v, %v", rec.State, err)
		}
	})
}

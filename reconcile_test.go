package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestReconcilerSettlesWhatIsUnknown: each verdict, as the background worker acts on it.
func TestReconcilerSettlesWhatIsUnknown(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict umavez.Verdict
		err     error
		want    umavez.State
		after   time.Duration // by then, and not before Quiet where that counts
	}{
		{"happened", umavez.Happened([]byte("answer")), nil, umavez.Done, time.Minute},
		{"cannot happen, with proof", umavez.CannotHappen().Proven("cancelled"), nil, umavez.Vacant, time.Minute},
		{"cannot happen, too early", umavez.CannotHappen(), nil, umavez.Lost, umavez.DefaultQuiet - time.Minute},
		{"cannot happen", umavez.CannotHappen(), nil, umavez.Vacant, 3 * umavez.DefaultQuiet},
		{"still unknown", umavez.StillUnknown(), nil, umavez.Lost, time.Hour},
		{"an error beats it", umavez.Happened([]byte("answer")), errLater, umavez.Lost, time.Hour},
		{"no answer", umavez.Happened(nil), nil, umavez.Lost, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachSettlingStore(t, func(t *testing.T, s umavez.Store) {
				var seen sightings
				e := newEngine(t, s, umavez.Options{Observe: seen.note})
				defer closeEngine(t, e)
				ask := newAsker(func(int, umavez.LostRecord) (umavez.Verdict, error) { return c.verdict, c.err })
				mustRecover(t, e, umavez.Recovery{Retain: time.Hour, Reconciler: &umavez.Reconciler{Ask: ask.ask}})
				lost := lose(t, e, opaque("k")).Lease()
				defer keepRunning(t, e)()
				passTime(c.after)
				rec := wantState(t, e, opaque("k"), c.want)
				asked := seen.of(umavez.MomentAsked)
				if len(asked) == 0 || asked[0].Fence != lost.Fence || asked[0].ID != lost.ID {
					t.Errorf("observed as asked: %+v", asked)
				}
				if wrong := c.err != nil || c.name == "no answer"; len(asked) > 0 && (asked[0].Err != nil) != wrong {
					t.Errorf("the asking is observed with the error %v", asked[0].Err)
				}
				if c.want == umavez.Done && (!rec.Settled || string(rec.Answer) != "answer" || rec.RetainLeft+rec.Since != time.Hour) {
					t.Errorf("the record is %+v", rec)
				}
				_, trail, err := e.Inspect(t.Context(), lost.ID)
				if settled := c.want != umavez.Lost; err != nil || settled != (len(trail) == 1) || settled && trail[0].Who != "reconciler" {
					t.Errorf("the audit trail is %+v, %v", trail, err)
				}
			})
		})
	}
}

// TestReconcilerIsNotAskedOfEverything: only what stays unknown, and not what
// somebody has parked, or holds.
func TestReconcilerIsNotAskedOfEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		e := newEngine(t, mem, umavez.Options{})
		defer closeEngine(t, e)
		ask := newAsker(happened("x"))
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		defer keepRunning(t, e)()

		lose(t, e, stepped("resumable"))
		elsewhere := opaque("elsewhere")
		elsewhere.Route = "another"
		lose(t, e, elsewhere)
		running := mustClaim(t, e, opaque("running"))
		parked := lose(t, e, opaque("parked")).Lease()
		if err := e.Settle(t.Context(), parked.ID, umavez.Settlement{Action: umavez.ActionPark, Fence: parked.Fence, Who: "w", Why: "y"}); err != nil {
			t.Fatal(err)
		}
		held := lose(t, e, opaque("held")).Lease()
		if err := mem.Hold(t.Context(), held.ID, held.Fence, umavez.NewAttemptID(), 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		passTime(4 * time.Minute)
		for _, op := range []umavez.Operation{elsewhere, opaque("parked"), opaque("held")} {
			if _, rec, err := e.Claim(t.Context(), op); err != nil || rec.State != umavez.Lost {
				t.Errorf("Claim: %v, %v", rec.State, err)
			}
		}
		if at := ask.times(); len(at) != 0 {
			t.Errorf("asked at %v", at)
		}
		if err := running.Complete(nil); err != nil {
			t.Fatal(err)
		}
		passTime(2 * time.Hour) // the holder is gone
		wantState(t, e, opaque("held"), umavez.Done)
	})
}

// TestReconcilerIsAskedOfStepsInDoubt: what its own policy will not resume.
func TestReconcilerIsAskedOfStepsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(memstore.Options{}), umavez.Options{})
		defer closeEngine(t, e)
		var key string
		ask := newAsker(func(_ int, l umavez.LostRecord) (umavez.Verdict, error) {
			key = l.DerivedKey("charge")
			if l.Reason != umavez.ReasonStepInDoubt || string(l.Request) != "request" {
				t.Errorf("asked about %v, with the request %q", l.Reason, l.Request)
			}
			return umavez.Happened([]byte("answer")), nil
		})
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		op := stepped("k")
		op.Request = []byte("request")
		if err := mustClaim(t, e, op).Abandon(umavez.ReasonStepInDoubt, nil); err != nil {
			t.Fatal(err)
		}
		defer keepRunning(t, e)()
		passTime(time.Minute)
		wantState(t, e, op, umavez.Done)
		if want := op.Key.ID().DerivedKey("charge"); key != want {
			t.Errorf("the derived key is %q, want %q", key, want)
		}
	})
}

// TestReconcilerBacksOff: the pauses grow as the loss grows old, whoever asks, and
// though processes die; then the record is parked.
func TestReconcilerBacksOff(t *testing.T) {
	for _, processes := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			mem := memstore.New(memstore.Options{})
			ask := newAsker(nil)
			for range processes {
				e := newEngine(t, mem, umavez.Options{RecoverEvery: 4 * time.Second})
				defer closeEngine(t, e)
				mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Park: 6 * time.Hour, Ask: ask.ask}})
				defer keepRunning(t, e)()
			}
			e := newEngine(t, mem, umavez.Options{})
			defer closeEngine(t, e)
			lose(t, e, opaque("k"))
			passTime(7 * time.Hour)
			const after, every = 10 * time.Second, 30 * time.Second
			at, want := ask.times(), after
			for i, got := range at {
				// A worker may be late by one round, and the later turns with it.
				if late := got - want; late < 0 || late > time.Duration(i+1)*6*time.Second {
					t.Errorf("turn %d came at %v, want %v", i+1, got, want)
				}
				want = got + min(got-after+every, time.Hour)
			}
			if want := 12; len(at) < want-1 || len(at) > want+1 {
				t.Errorf("asked %d times in six hours, want about %d", len(at), want)
			}
			if rec := wantState(t, e, opaque("k"), umavez.Lost); rec.Reason != umavez.ReasonParked {
				t.Errorf("after six hours it is lost by %v, want parked", rec.Reason)
			}
			_, trail, err := e.Inspect(t.Context(), opaque("k").Key.ID())
			if err != nil || len(trail) != 1 || trail[0].Action != umavez.ActionPark || trail[0].Ago < time.Hour-time.Minute || trail[0].Ago > time.Hour {
				t.Errorf("the audit trail is %+v, %v; want it parked six hours after the loss", trail, err)
			}
		})
	}
}

// TestAVerdictCountsFromItsQuestion: what was looked for before the quiet time was
// over may have come by the time the verdict does.
func TestAVerdictCountsFromItsQuestion(t *testing.T) {
	for _, asked := range []time.Duration{umavez.DefaultQuiet - time.Second, umavez.DefaultQuiet} {
		eachSettlingStore(t, func(t *testing.T, s umavez.Store) {
			e := newEngine(t, s, umavez.Options{})
			defer closeEngine(t, e)
			ask := newAsker(func(int, umavez.LostRecord) (umavez.Verdict, error) { return umavez.CannotHappen(), nil })
			ask.took = 20 * time.Second
			mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
			lose(t, e, opaque("k"))
			passTime(asked)
			if _, rec, err := e.Claim(t.Context(), opaque("k")); err != nil || rec.State != umavez.Lost {
				t.Fatalf("Claim: %v, %v", rec.State, err)
			}
			passTime(time.Minute)
			want := umavez.Vacant
			if asked < umavez.DefaultQuiet {
				want = umavez.Lost
			}
			wantState(t, e, opaque("k"), want)
		})
	}
}

// TestAVerdictIsAboutOneAttempt: the record moves on while it is asked, is lost
// again, and the verdict is about the attempt before.
func TestAVerdictIsAboutOneAttempt(t *testing.T) {
	for _, verdict := range []umavez.Verdict{umavez.Happened([]byte("old")), umavez.CannotHappen().Proven("cancelled")} {
		synctest.Test(t, func(t *testing.T) {
			s := newSettlingStore(nil)
			e := newEngine(t, s, umavez.Options{})
			defer closeEngine(t, e)
			ask := newAsker(func(int, umavez.LostRecord) (umavez.Verdict, error) { return verdict, nil })
			ask.took = 20 * time.Second
			mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
			old := lose(t, e, opaque("k")).Lease()
			passTime(time.Minute)
			if _, _, err := e.Claim(t.Context(), opaque("k")); err != nil {
				t.Fatal(err)
			}
			person := umavez.Settlement{Action: umavez.ActionCannotHappen, Fence: old.Fence, Who: "w", Why: "y"}
			if err := e.Settle(t.Context(), old.ID, person); err != nil {
				t.Fatal(err)
			}
			other := newEngine(t, s, umavez.Options{})
			defer closeEngine(t, other)
			lose(t, other, opaque("k"))
			passTime(time.Minute)
			if rec := wantState(t, e, opaque("k"), umavez.Lost); rec.Fence == old.Fence {
				t.Error("the record has not moved")
			}
		})
	}
}

// TestOneProcessAsks: two engines on one store, both working and both claiming.
func TestOneProcessAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettlingStore(nil)
		ask := newAsker(func(n int, _ umavez.LostRecord) (umavez.Verdict, error) {
			if n < 3 {
				return umavez.StillUnknown(), nil
			}
			return umavez.Happened([]byte("x")), nil
		})
		ask.took = 29 * time.Second
		var engines []*umavez.Engine
		for range 2 {
			e := newEngine(t, s, umavez.Options{RecoverEvery: time.Second})
			defer closeEngine(t, e)
			mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
			defer keepRunning(t, e)()
			engines = append(engines, e)
		}
		lose(t, engines[0], opaque("k"))
		for i := range 1000 {
			time.Sleep(500 * time.Millisecond)
			if _, _, err := engines[i%2].Claim(t.Context(), opaque("k")); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(ask.times()); ask.most != 1 || n != 3 {
			t.Errorf("asked %d times, %d at once; want 3 times and one at once", n, ask.most)
		}
		wantState(t, engines[0], opaque("k"), umavez.Done)
	})
}

// TestAskGoesWrong: whatever Ask does, it counts as still unknown, is observed,
// and the worker lives.
func TestAskGoesWrong(t *testing.T) {
	for name, ask := range map[string]func(context.Context) (umavez.Verdict, error){
		"panics":             func(context.Context) (umavez.Verdict, error) { panic("no") },
		"ends its goroutine": func(context.Context) (umavez.Verdict, error) { runtime.Goexit(); return umavez.Verdict{}, nil },
		"takes too long": func(ctx context.Context) (umavez.Verdict, error) {
			<-ctx.Done()
			return umavez.Happened([]byte("x")), ctx.Err()
		},
		"never returns": func(context.Context) (umavez.Verdict, error) {
			time.Sleep(time.Hour)
			return umavez.Happened([]byte("x")), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen sightings
				e := newEngine(t, newSettlingStore(nil), umavez.Options{Observe: seen.note})
				var later atomic.Bool
				mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{
					Ask: func(ctx context.Context, _ umavez.LostRecord) (umavez.Verdict, error) {
						if later.Swap(true) {
							return umavez.Happened([]byte("second")), nil
						}
						return ask(ctx)
					},
				}})
				lose(t, e, opaque("k"))
				end := keepRunning(t, e)
				passTime(3 * time.Minute)
				if rec := wantState(t, e, opaque("k"), umavez.Done); string(rec.Answer) != "second" {
					t.Errorf("the answer is %q", rec.Answer)
				}
				asked := seen.of(umavez.MomentAsked)
				if len(asked) != 2 || asked[0].Err == nil || asked[1].Err != nil {
					t.Errorf("observed %+v", asked)
				}
				end()
				closeEngine(t, e)
				passTime(time.Hour) // for the one that never returned
			})
		})
	}
}

// TestRepliesOfRecoveryAreLost: a hold and a settlement are repeated until the
// store has answered, and count once.
func TestRepliesOfRecoveryAreLost(t *testing.T) {
	for _, op := range []string{"hold", "settle", "get"} {
		for _, f := range []fault{{replyLost: true}, {lost: true}, {notSent: true}} {
			synctest.Test(t, func(t *testing.T) {
				s := newSettlingStore(func(called string, n int) fault {
					if called == op && n <= 2 {
						return f
					}
					return fault{}
				})
				e := newEngine(t, s, umavez.Options{})
				defer closeEngine(t, e)
				ask := newAsker(happened("x"))
				mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
				id := lose(t, e, opaque("k")).Lease().ID
				defer keepRunning(t, e)()
				passTime(3 * time.Minute)
				trail, err := s.mem.Trail(t.Context(), id)
				if n := len(ask.times()); err != nil || len(trail) != 1 || n != 1 {
					t.Errorf("%s meets %+v: asked %d times, the audit trail is %v (%v)", op, f, n, trail, err)
				}
			})
		}
	}
}

// TestTheAskerDies: its hold runs out, and somebody else asks.
func TestTheAskerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		dead := make(chan struct{})
		dying := &settlingStore{newFaultStore(mem, func(string, int) fault {
			select {
			case <-dead:
				return fault{lost: true}
			default:
				return fault{}
			}
		}), mem}
		dies, lives := newEngine(t, dying, umavez.Options{}), newEngine(t, mem, umavez.Options{})
		kill := sync.OnceFunc(func() { close(dead) })
		mustRecover(t, dies, umavez.Recovery{Reconciler: &umavez.Reconciler{
			Ask: func(context.Context, umavez.LostRecord) (umavez.Verdict, error) {
				kill()
				return umavez.Happened([]byte("never heard")), nil
			},
		}})
		ask := newAsker(happened("x"))
		mustRecover(t, lives, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		lose(t, lives, opaque("k"))
		endFirst := keepRunning(t, dies)
		<-dead
		endFirst()
		defer closeEngine(t, lives)
		defer keepRunning(t, lives)()
		defer closeEngine(t, dies)
		passTime(20 * time.Second)
		if n := len(ask.times()); n != 0 {
			t.Errorf("asked %d times while the dead one held it", n)
		}
		passTime(time.Minute)
		if rec := wantState(t, lives, opaque("k"), umavez.Done); string(rec.Answer) != "x" || len(ask.times()) != 1 {
			t.Errorf("the answer is %q, after %d askings", rec.Answer, len(ask.times()))
		}
	})
}

// TestTheLateOwnerCompletesWhileItIsAsked: exactly one answer stands, for all.
func TestTheLateOwnerCompletesWhileItIsAsked(t *testing.T) {
	for _, ownerFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var seen sightings
			s := newSettlingStore(nil)
			owner := newEngine(t, s, umavez.Options{MaxRun: 15 * time.Second, Observe: seen.note})
			defer closeEngine(t, owner)
			other := newEngine(t, s, umavez.Options{Observe: seen.note})
			defer closeEngine(t, other)
			a := mustClaim(t, owner, opaque("k"))
			ask := newAsker(happened("asked"))
			ask.took = 10 * time.Second
			mustRecover(t, other, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
			passTime(time.Minute)
			op := opaque("k")
			op.Wait = time.Minute
			go func() {
				time.Sleep(5 * time.Second)
				if !ownerFirst {
					time.Sleep(10 * time.Second)
				}
				err := a.Complete([]byte("owner"))
				if ownerFirst != (err == nil) || !ownerFirst && !errors.Is(err, umavez.ErrContradicted) {
					t.Errorf("the late owner is answered %v", err)
				}
			}()
			_, rec, err := other.Claim(t.Context(), op)
			want := "asked"
			if ownerFirst {
				want = "owner"
			}
			if err != nil || string(rec.Answer) != want {
				t.Errorf("the next attempt gets %v %q (%v), want %q", rec.State, rec.Answer, err, want)
			}
			passTime(time.Minute)
			if rec := wantState(t, other, op, umavez.Done); string(rec.Answer) != want || rec.Contradicted == ownerFirst {
				t.Errorf("the record holds %q, contradicted %v; want %q", rec.Answer, rec.Contradicted, want)
			}
			if n := len(seen.of(umavez.MomentContradicted)); (n == 1) == ownerFirst {
				t.Errorf("%d contradictions were observed", n)
			}
		})
	}
}

// TestSettlementsSayWhy: who and why stand in the audit trail.
func TestSettlementsSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(memstore.Options{}), umavez.Options{})
		defer closeEngine(t, e)
		proof := strings.Repeat("it was cancelled; ", 500) // longer than there is room for
		ask := newAsker(func(int, umavez.LostRecord) (umavez.Verdict, error) {
			return umavez.CannotHappen().Proven(proof), nil
		})
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask, Who: "gateway"}})
		id := lose(t, e, opaque("k")).Lease().ID
		defer keepRunning(t, e)()
		passTime(time.Minute)
		_, trail, err := e.Inspect(t.Context(), id)
		if err != nil || len(trail) != 1 || trail[0].Who != "gateway" || !strings.Contains(trail[0].Why, "it was cancelled") {
			t.Errorf("the audit trail is %.200q, %v", fmt.Sprint(trail), err)
		}
	})
}

// TestManyPagesAreLookedThrough: the worker comes by every record, though it reads
// only so many in one pass, and most of them stay lost.
func TestManyPagesAreLookedThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, memstore.New(memstore.Options{}), umavez.Options{MaxUnsettled: -1})
		defer closeEngine(t, e)
		const n, others = 50, 5000
		ask := newAsker(happened("x"))
		mustRecover(t, e, umavez.Recovery{Reconciler: &umavez.Reconciler{Ask: ask.ask}})
		for i := range n + others {
			op := opaque(fmt.Sprint(i))
			if i >= n {
				op.Route = "nobody's"
			}
			lose(t, e, op)
		}
		defer keepRunning(t, e)()
		passTime(time.Minute)
		for i := range n {
			wantState(t, e, opaque(fmt.Sprint(i)), umavez.Done)
		}
		if got := len(ask.times()); got != n {
			t.Errorf("asked %d times about %d records", got, n)
		}
	})
}

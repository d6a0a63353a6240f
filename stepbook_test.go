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

// TestStepInDoubtIsNotReleased: a step that was sent and not kept may have
// happened, whatever the operation says, and the record must go on to know since
// when its key is in use.
func TestStepInDoubtIsNotReleased(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		sent := 0
		op := stepped("k")
		run := func(ctx context.Context) (string, error) {
			_, err := umavez.Step(ctx, "cobrar", func(context.Context, string) (int, error) { sent++; return 0, errLater })
			return "", umavez.NotDone(err)
		}
		if _, err := do(t, e, op, run); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		wantState(t, e, op, umavez.Lost)
		// The next attempt has sent nothing itself, and does not know of the first.
		if _, err := do(t, e, op, func(context.Context) (string, error) { return "", umavez.NotDone(errLater) }); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		wantState(t, e, op, umavez.Lost)
		time.Sleep(21 * time.Hour)
		if _, err := do(t, e, op, run); sent != 1 {
			t.Errorf("sent %d times, the last time after 21 hours: %v", sent, err)
		}
		// Without a step that was sent, nothing stands against a release.
		fresh := stepped("fresh")
		if _, err := do(t, e, fresh, func(context.Context) (string, error) { return "", umavez.NotDone(errLater) }); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		wantState(t, e, fresh, umavez.Vacant)
	})
}

// TestStoppedOwnerSendsNothing: an owner that was stopped until its lease was
// over, while another attempt ran, does not send what that one has sent.
func TestStoppedOwnerSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		var stopped atomic.Int64 // how far the stopped process's clocks jump
		o := umavez.Options{Lease: 15 * time.Second}
		began := time.Now()
		o.SetClock(func() (time.Duration, time.Duration) {
			now := time.Since(began) + time.Duration(stopped.Load())
			return now, now
		})
		e := newEngine(t, newFaultStore(mem, func(op string, _ int) fault { return fault{lost: op == "extend"} }), o)
		other := newEngine(t, mem, umavez.Options{})
		defer closeEngine(t, other)
		var g gateway
		op := stepped("k")
		a := mustClaim(t, e, op)
		time.Sleep(time.Minute)
		stopped.Store(int64(time.Hour))
		if _, err := do(t, other, op, g.steps("cobrar")); err != nil {
			t.Fatal(err)
		}
		if _, err := umavez.Step(a.Context(), "cobrar", g.charge); !errors.Is(err, umavez.ErrLeaseRanOut) || len(g.sent) != 1 {
			t.Errorf("the stopped owner: %v, sent %d times in all", err, len(g.sent))
		}
		if err := a.Complete(nil); !errors.Is(err, umavez.ErrLeaseLost) {
			t.Errorf("Complete: %v", err)
		}
		closeEngine(t, e)
	})
}

// TestBrokenStepsAreNotAnswered: also while the store is away, an operation whose
// steps do not allow it is not told that its answer will be saved.
func TestBrokenStepsAreNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault { return fault{lost: away.Load() && op == "abandon"} })
		e := newEngine(t, s, umavez.Options{})
		var g gateway
		op := stepped("k")
		if _, err := do(t, e, op, thenFails(g.steps("a"))); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		away.Store(true)
		_, err := do(t, e, op, func(context.Context) (string, error) { return "done", nil })
		if _, ok := errors.AsType[*umavez.StepError](err); !ok || errors.Is(err, umavez.ErrUnsaved) {
			t.Errorf("%v, want the steps' error", err)
		}
		away.Store(false)
		closeEngine(t, e)
		if rec := wantState(t, e, op, umavez.Lost); rec.Reason != umavez.ReasonCodeChanged {
			t.Errorf("reason %q", rec.Reason)
		}
	})
}

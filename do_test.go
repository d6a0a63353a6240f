package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

func ExampleDo() {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	charge := func(context.Context) (string, error) {
		fmt.Println("charging")
		return "aprovado", nil
	}
	op := umavez.Operation{Key: umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: "maria"}, Name: "pedido-42"}}
	for range 3 {
		res, err := umavez.Do(ctx, eng, op, charge)
		fmt.Println(res.Value, res.Replayed, err)
	}
	// Output:
	// charging
	// aprovado false <nil>
	// aprovado true <nil>
	// aprovado true <nil>
}

var errBoom = errors.New("boom")

// doOutcomes: what an operation returns or marks, what its key becomes, and what
// the first and the next call get (nil: no error; not tried).
var doOutcomes = map[string]struct {
	run   func(context.Context) (int, error)
	want  umavez.State
	first func(error) bool
	again func(umavez.Result[int], error) bool
}{
	"happened": {
		func(context.Context) (int, error) { return 7, nil }, umavez.Done, nil,
		func(r umavez.Result[int], err error) bool { return err == nil && r.Value == 7 && r.Replayed },
	},
	"final": {
		func(context.Context) (int, error) { return 7, umavez.Final(errBoom) }, umavez.Done,
		func(err error) bool { return errors.Is(err, errBoom) },
		func(r umavez.Result[int], err error) bool {
			f, ok := errors.AsType[*umavez.FinalError](err)
			return ok && f.Message == "boom" && r.Value == 7
		},
	},
	"not done": {
		func(context.Context) (int, error) { return 0, umavez.NotDone(errBoom) }, umavez.Vacant,
		func(err error) bool { return errors.Is(err, errBoom) }, nil,
	},
	"error": {
		func(context.Context) (int, error) { return 0, errBoom }, umavez.Lost,
		func(err error) bool { return errors.Is(err, errBoom) },
		func(_ umavez.Result[int], err error) bool {
			u, ok := errors.AsType[*umavez.OutcomeUnknownError](err)
			return ok && u.Record.Reason == umavez.ReasonError
		},
	},
	"marked released": {
		func(ctx context.Context) (int, error) { return 0, umavez.Release(ctx) }, umavez.Vacant, nil, nil,
	},
	"marked kept": {
		func(ctx context.Context) (int, error) { return 7, errors.Join(errBoom, umavez.Keep(ctx)) }, umavez.Done,
		func(err error) bool { return errors.Is(err, errBoom) },
		func(_ umavez.Result[int], err error) bool { _, ok := errors.AsType[*umavez.FinalError](err); return ok },
	},
	"marked without body": {
		func(ctx context.Context) (int, error) { return 7, umavez.KeepWithoutBody(ctx) }, umavez.Done, nil,
		func(r umavez.Result[int], err error) bool { return errors.Is(err, umavez.ErrNotKept) && r.Value == 0 },
	},
	"marked unknown": {
		func(ctx context.Context) (int, error) { return 0, umavez.Unknown(ctx, umavez.ReasonTimeout) }, umavez.Lost, nil,
		func(_ umavez.Result[int], err error) bool {
			u, ok := errors.AsType[*umavez.OutcomeUnknownError](err)
			return ok && u.Record.Reason == umavez.ReasonTimeout
		},
	},
	"marked unknown, and not done": {
		func(ctx context.Context) (int, error) {
			return 0, umavez.NotDone(errors.Join(errBoom, umavez.Unknown(ctx, umavez.ReasonTimeout)))
		}, umavez.Lost,
		func(err error) bool { return errors.Is(err, errBoom) }, nil,
	},
	"marked kept, and not done": {
		func(ctx context.Context) (int, error) {
			return 7, umavez.NotDone(errors.Join(errBoom, umavez.Keep(ctx)))
		}, umavez.Done,
		func(err error) bool { return errors.Is(err, errBoom) },
		func(_ umavez.Result[int], err error) bool { _, ok := errors.AsType[*umavez.FinalError](err); return ok },
	},
	"the last mark wins": {
		func(ctx context.Context) (int, error) {
			return 7, errors.Join(umavez.Release(ctx), umavez.Unknown(ctx, "x"), umavez.Keep(ctx))
		}, umavez.Done, nil, nil,
	},
}

// TestDoOutcomes: what an operation returns or marks decides what its key
// becomes, and what the next call gets.
func TestDoOutcomes(t *testing.T) {
	for name, test := range doOutcomes {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, s umavez.Store) {
				e := newEngine(t, s, umavez.Options{})
				defer closeEngine(t, e)
				op := opaque("k")
				_, err := umavez.Do(t.Context(), e, op, test.run)
				if test.first == nil && err != nil || test.first != nil && !test.first(err) {
					t.Errorf("first call: %v", err)
				}
				wantState(t, e, op, test.want)
				if test.again == nil {
					return
				}
				res, err := umavez.Do(t.Context(), e, op, func(context.Context) (int, error) {
					t.Error("it ran again")
					return 0, nil
				})
				if !test.again(res, err) {
					t.Errorf("next call: %+v, %v", res, err)
				}
			})
		})
	}
}

// TestDoThatNeverReturns: a panic goes on, an exiting goroutine exits, and the
// key is unknown, never vacant.
func TestDoThatNeverReturns(t *testing.T) {
	for name, run := range map[string]func(context.Context) (int, error){
		"panics": func(context.Context) (int, error) { panic("boom") },
		"exits":  func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, s umavez.Store) {
				e := newEngine(t, s, umavez.Options{})
				defer closeEngine(t, e)
				op := opaque("k")
				over := make(chan any)
				go func() {
					defer func() { over <- recover() }()
					_, _ = umavez.Do(t.Context(), e, op, run)
				}()
				if p := <-over; name == "panics" && p != "boom" {
					t.Errorf("recovered %v, want the operation's panic", p)
				}
				if rec := wantState(t, e, op, umavez.Lost); rec.Reason != umavez.ReasonPanic {
					t.Errorf("reason %q", rec.Reason)
				}
			})
		})
	}
}

// TestDoValueThatCannotBeKept: it happened, so the key must not look vacant.
func TestDoValueThatCannotBeKept(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		if _, err := umavez.Do(t.Context(), e, op, func(context.Context) (chan int, error) { return nil, nil }); err == nil {
			t.Error("a channel was kept")
		}
		wantState(t, e, op, umavez.Lost)
	})
}

// TestDoExpires: after the retention a late call is refused by the tombstone,
// and after the tombstone the key is new.
func TestDoExpires(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{Retain: time.Hour, Tombstone: 24 * time.Hour})
		defer closeEngine(t, e)
		op := opaque("k")
		runs := 0
		do := func() error {
			_, err := umavez.Do(t.Context(), e, op, func(context.Context) (int, error) { runs++; return runs, nil })
			return err
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		if err := do(); err != nil || runs != 1 {
			t.Fatalf("within retention: %v after %d runs", err, runs)
		}
		time.Sleep(2 * time.Second)
		if err := do(); !errors.Is(err, umavez.ErrKeyExpired) {
			t.Fatalf("after retention: %v, want ErrKeyExpired", err)
		}
		time.Sleep(24 * time.Hour)
		if err := do(); err != nil || runs != 2 {
			t.Fatalf("after the tombstone: %v after %d runs", err, runs)
		}
	})
}

func TestMarksOutsideAnOperation(t *testing.T) {
	if err := umavez.Release(t.Context()); !errors.Is(err, umavez.ErrNoAttempt) {
		t.Errorf("Release outside an operation: %v", err)
	}
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		a := mustClaim(t, e, opaque("k"))
		a.Seal()
		if err := umavez.Keep(a.Context()); !errors.Is(err, umavez.ErrAnswered) {
			t.Errorf("Keep after the first byte: %v", err)
		}
		if err := a.Complete(nil); err != nil {
			t.Fatal(err)
		}
		if err := umavez.Keep(a.Context()); !errors.Is(err, umavez.ErrEnded) {
			t.Errorf("Keep after the end: %v", err)
		}
	})
}

// TestNotDoneIsOfOneKey: an operation calls another one, which did nothing. That
// says nothing of the outer one, unless it says so itself.
func TestNotDoneIsOfOneKey(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		inner := func(ctx context.Context) error {
			_, err := umavez.Do(ctx, e, opaque("inner"), func(context.Context) (int, error) { return 0, umavez.NotDone(errBoom) })
			return fmt.Errorf("inner: %w", err)
		}
		_, err := umavez.Do(t.Context(), e, opaque("charged"), func(ctx context.Context) (int, error) { return 0, inner(ctx) })
		if !errors.Is(err, errBoom) {
			t.Errorf("the outer call: %v, want the inner one's error", err)
		}
		wantState(t, e, opaque("inner"), umavez.Vacant)
		wantState(t, e, opaque("charged"), umavez.Lost)
		_, _ = umavez.Do(t.Context(), e, opaque("idle"), func(ctx context.Context) (int, error) { return 0, umavez.NotDone(inner(ctx)) })
		wantState(t, e, opaque("idle"), umavez.Vacant)
	})
}

// TestDoLosesItsKeyToAnotherRequest: what became of the key since is not told to
// a request that it is not about.
func TestDoLosesItsKeyToAnotherRequest(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		res, err := umavez.Do(t.Context(), e, opaque("k"), func(ctx context.Context) (int, error) {
			// As a settlement would: the key is taken away, and somebody else's now.
			if err := s.Release(ctx, umavez.FromContext(ctx).Lease()); err != nil {
				t.Error(err)
			}
			other := umavez.ClaimRequest{
				Attempt: umavez.NewAttemptID(), Lease: time.Minute,
				Fingerprint: umavez.Fingerprint{Recipe: 1, Sum: [32]byte{1}},
			}
			id := opaque("k").Key.ID()
			if _, acquired, err := s.Claim(ctx, id, other); err != nil || !acquired {
				t.Errorf("the other claim: %v, %v", acquired, err)
			}
			return 7, s.Complete(ctx, umavez.Lease{ID: id, Attempt: other.Attempt}, []byte(`{"value":8}`), umavez.Retention{Retain: time.Hour})
		})
		if !errors.Is(err, umavez.ErrLeaseLost) || res.Replayed {
			t.Errorf("%+v, %v; want ErrLeaseLost and no answer of the other request", res, err)
		}
	})
}

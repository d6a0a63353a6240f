package umavez_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

func stepped(name string) umavez.Operation {
	op := opaque(name)
	op.Policy = umavez.Stepped
	return op
}

// gateway is a foreign system that keeps a ledger, and honours keys unless told
// otherwise.
type gateway struct {
	forgetful bool

	mu      sync.Mutex
	charges map[string]int // by key
	sent    []string       // every request's key, in order
}

func (g *gateway) charge(_ context.Context, key string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.charges == nil {
		g.charges = map[string]int{}
	}
	g.sent = append(g.sent, key)
	if g.charges[key] == 0 || g.forgetful {
		g.charges[key]++
	}
	return "charge of " + key, nil
}

// steps asks for steps in order, each a charge.
func (g *gateway) steps(names ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var all []string
		for _, name := range names {
			got, err := umavez.Step(ctx, name, g.charge)
			if err != nil {
				return "", err
			}
			all = append(all, got)
		}
		return strings.Join(all, ";"), nil
	}
}

var errLater = errors.New("later")

// thenFails is an operation that ends, not known to have happened, after its steps.
func thenFails(run func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if _, err := run(ctx); err != nil {
			return "", err
		}
		return "", errLater
	}
}

func ExampleStep() {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	// The gateway gets a key that is the same on every attempt.
	charge := func(context.Context, string) (string, error) { fmt.Println("charging"); return "ch_1", nil }
	dies := true
	buy := func(ctx context.Context) (string, error) {
		id, err := umavez.Step(ctx, "cobrar", charge, umavez.KeyHonouredFor(24*time.Hour))
		if err != nil {
			return "", err
		}
		if dies { // after the charge
			return "", errors.New("the process was ended")
		}
		return "paid by " + id, nil
	}
	op := umavez.Operation{Key: umavez.Key{Scope: umavez.Scope{Namespace: "loja"}, Name: "pedido-42"}, Policy: umavez.Stepped}
	_, err = umavez.Do(context.Background(), eng, op, buy)
	fmt.Println(err)
	dies = false
	res, err := umavez.Do(context.Background(), eng, op, buy)
	fmt.Println(res.Value, err)
	// Output:
	// charging
	// the process was ended
	// paid by ch_1 <nil>
}

func do(t *testing.T, e *umavez.Engine, op umavez.Operation, run func(context.Context) (string, error)) (string, error) {
	t.Helper()
	res, err := umavez.Do(t.Context(), e, op, run)
	return res.Value, err
}

// TestStepsResume: what was kept does not run again, what was not runs with the
// key that it had.
func TestStepsResume(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		var g gateway
		op := stepped("k")
		if _, err := do(t, e, op, thenFails(g.steps("a", "b"))); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		if rec := wantState(t, e, op, umavez.Lost); len(rec.Steps) != 2 {
			t.Fatalf("%d steps kept", len(rec.Steps))
		}
		got, err := do(t, e, op, g.steps("a", "b", "c"))
		if err != nil {
			t.Fatal(err)
		}
		id := op.Key.ID()
		a, b, c := id.DerivedKey("a"), id.DerivedKey("b"), id.DerivedKey("c")
		if want := "charge of " + a + ";charge of " + b + ";charge of " + c; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if sent := strings.Join(g.sent, " "); sent != a+" "+b+" "+c {
			t.Errorf("sent %s", sent)
		}
		wantState(t, e, op, umavez.Done)
	})
}

func TestDerivedKeys(t *testing.T) {
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, key := range []string{"k", "k2"} {
		for _, step := range []string{"a", "b", "ab", ""} {
			d := opaque(key).Key.ID().DerivedKey(step)
			if !shape.MatchString(d) || seen[d] {
				t.Errorf("%s/%s: %s is no UUIDv8 of its own", key, step, d)
			}
			seen[d] = true
		}
	}
	// It must never change: a foreign system remembers it.
	if d := (umavez.ID{1, 2, 3}).DerivedKey("cobrar"); d != "8c65f96e-2022-8976-9c33-1a5ea8f05296" {
		t.Errorf("the derived key has changed: %s", d)
	}
}

// TestStepEnds: a final error is kept as the step's end; any other leaves the
// step in doubt, and it is sent again with its key.
func TestStepEnds(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := stepped("k")
		var keys []string
		ends := []error{errLater, umavez.Final(errors.New("declined")), nil}
		run := func(ctx context.Context) (string, error) {
			_, err := umavez.Step(ctx, "cobrar", func(_ context.Context, key string) (int, error) {
				keys = append(keys, key)
				return 1, ends[len(keys)-1]
			})
			if final, ok := errors.AsType[*umavez.FinalError](err); ok && final.Message == "declined" {
				return "", errors.Join(errLater, umavez.Unknown(ctx, umavez.ReasonError)) // the process has more to do
			}
			return "", err
		}
		for range 4 {
			if _, err := do(t, e, op, run); err == nil {
				t.Fatal("an operation that failed was kept")
			}
		}
		if len(keys) != 2 || keys[0] != keys[1] {
			t.Errorf("sent with %v, want twice with one key", keys)
		}
	})
}

func TestStepIsRefused(t *testing.T) {
	run := func(context.Context, string) (int, error) { return 1, nil }
	if _, err := umavez.Step(t.Context(), "a", run); !errors.Is(err, umavez.ErrNoAttempt) {
		t.Errorf("outside an operation: %v", err)
	}
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		plain := mustClaim(t, e, opaque("opaque"))
		if _, err := umavez.Step(plain.Context(), "a", run); !errors.Is(err, umavez.ErrNotStepped) {
			t.Errorf("in an opaque operation: %v", err)
		}
		a := mustClaim(t, e, stepped("k"))
		if key, err := umavez.DerivedKey(a.Context(), "a"); err != nil || key != a.Lease().ID.DerivedKey("a") {
			t.Errorf("DerivedKey: %q, %v", key, err)
		}
		if _, err := umavez.DerivedKey(t.Context(), "a"); !errors.Is(err, umavez.ErrNoAttempt) {
			t.Errorf("DerivedKey outside an operation: %v", err)
		}
		for _, name := range []string{"", "\x00a", strings.Repeat("x", umavez.MaxStepName+1)} {
			if _, err := umavez.Step(a.Context(), name, run); err == nil {
				t.Errorf("the name %.10q is accepted", name)
			}
		}
		var twice atomic.Int32
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := umavez.Step(a.Context(), "a", run); errors.Is(err, umavez.ErrStepTwice) {
					twice.Add(1)
				}
			})
		}
		wg.Wait()
		if twice.Load() != 9 {
			t.Errorf("%d of 10 were refused, want 9", twice.Load())
		}
		big := func(context.Context, string) (string, error) { return strings.Repeat("x", umavez.MaxStepResult), nil }
		if _, err := umavez.Step(a.Context(), "big", big); err == nil {
			t.Error("a result over the limit is kept")
		}
		if err := errors.Join(plain.Complete(nil), a.Complete(nil)); err != nil {
			t.Fatal(err)
		}
		if _, err := umavez.Step(a.Context(), "late", run); !errors.Is(err, umavez.ErrEnded) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestChangedCode: steps that are kept and are not those of the code that goes on
// make the key unknown; nothing runs under another name, and nobody takes over.
func TestChangedCode(t *testing.T) {
	for name, after := range map[string][]string{
		"missing":         {},
		"missing at last": {"a"},
		"renamed":         {"A", "b"},
		"renamed second":  {"a", "B"},
		"another order":   {"b", "a"},
		"one put between": {"a", "new", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, s umavez.Store) {
				e := newEngine(t, s, umavez.Options{})
				defer closeEngine(t, e)
				var g gateway
				op := stepped("k")
				if _, err := do(t, e, op, thenFails(g.steps("a", "b"))); !errors.Is(err, errLater) {
					t.Fatal(err)
				}
				_, err := do(t, e, op, g.steps(after...))
				if broken, ok := errors.AsType[*umavez.StepError](err); !ok || broken.Reason != umavez.ReasonCodeChanged {
					t.Errorf("the changed code ended with %v", err)
				}
				if len(g.sent) != 2 {
					t.Errorf("sent %d times, want the first two only", len(g.sent))
				}
				if rec := wantState(t, e, op, umavez.Lost); rec.Reason != umavez.ReasonCodeChanged {
					t.Errorf("reason %q", rec.Reason)
				}
				_, err = do(t, e, op, g.steps("a", "b"))
				if _, ok := errors.AsType[*umavez.OutcomeUnknownError](err); !ok {
					t.Errorf("the next attempt: %v, want outcome unknown", err)
				}
			})
		})
	}
}

// TestParallelSteps: steps that run beside each other may be asked for in any
// order, also when only some of them are kept.
func TestParallelSteps(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		var g gateway
		for i := range 20 {
			op := stepped(fmt.Sprint(i))
			parallel := func(fails int) func(context.Context) (string, error) {
				return func(ctx context.Context) (string, error) {
					var wg sync.WaitGroup
					errs := make([]error, 4)
					for n := range errs {
						wg.Go(func() {
							time.Sleep(rand.N(100 * time.Millisecond))
							_, errs[n] = umavez.Step(ctx, fmt.Sprint(n), func(ctx context.Context, key string) (string, error) {
								if n < fails {
									return "", errLater
								}
								return g.charge(ctx, key)
							})
						})
					}
					wg.Wait()
					return "all", errors.Join(errs...)
				}
			}
			if _, err := do(t, e, op, parallel(i%5)); (err != nil) != (i%5 > 0) {
				t.Fatal(err)
			}
			if got, err := do(t, e, op, parallel(0)); err != nil || got != "all" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if len(g.sent) != 80 {
			t.Errorf("%d charges were sent, want 4 for each of 20", len(g.sent))
		}
	})
}

// TestKeyHonouredFor: a step in doubt is sent again while the foreign system
// still knows its key, and never after.
func TestKeyHonouredFor(t *testing.T) {
	for wait, sent := range map[time.Duration]int{19 * time.Hour: 2, 20*time.Hour + time.Second: 1} {
		t.Run(wait.String(), func(t *testing.T) {
			eachStore(t, func(t *testing.T, s umavez.Store) {
				e := newEngine(t, s, umavez.Options{})
				defer closeEngine(t, e)
				var g gateway
				op := stepped("k")
				run := func(ctx context.Context) (string, error) {
					return umavez.Step(ctx, "cobrar", func(ctx context.Context, key string) (string, error) {
						if got, err := g.charge(ctx, key); len(g.sent) > 1 {
							return got, err
						}
						return "", errLater
					})
				}
				if _, err := do(t, e, op, run); !errors.Is(err, errLater) {
					t.Fatal(err)
				}
				time.Sleep(wait)
				_, err := do(t, e, op, run)
				if len(g.sent) != sent {
					t.Errorf("after %v it was sent %d times in all, want %d", wait, len(g.sent), sent)
				}
				broken, ok := errors.AsType[*umavez.StepError](err)
				if sent == 1 && (!ok || broken.Reason != umavez.ReasonStepInDoubt) || sent == 2 && err != nil {
					t.Errorf("after %v: %v", wait, err)
				}
				if sent == 1 {
					if rec := wantState(t, e, op, umavez.Lost); rec.Reason != umavez.ReasonStepInDoubt {
						t.Errorf("reason %q", rec.Reason)
					}
				}
			})
		})
	}
}

// TestNoForeignKey: where the foreign system honours no key, a step that was sent
// and not kept is not sent again; one that had not been reached is.
func TestNoForeignKey(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		g := gateway{forgetful: true}
		var reach, lose bool
		run := func(ctx context.Context) (string, error) {
			if _, err := umavez.Step(ctx, "first", func(context.Context, string) (int, error) { return 1, nil }); err != nil || !reach {
				return "", errors.Join(err, errLater)
			}
			return umavez.Step(ctx, "cobrar", func(ctx context.Context, key string) (string, error) {
				got, err := g.charge(ctx, key)
				if lose {
					err = errLater
				}
				return got, err
			}, umavez.NoForeignKey())
		}
		op := stepped("lost before it")
		if _, err := do(t, e, op, run); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		reach = true
		if _, err := do(t, e, op, run); err != nil || len(g.sent) != 1 {
			t.Errorf("a step that was not reached: %v, sent %d times", err, len(g.sent))
		}
		op, lose = stepped("lost in it"), true
		if _, err := do(t, e, op, run); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		lose = false
		_, err := do(t, e, op, run)
		if broken, ok := errors.AsType[*umavez.StepError](err); !ok || broken.Reason != umavez.ReasonStepInDoubt || len(g.sent) != 2 {
			t.Errorf("a step that was lost in the middle: %v, sent %d times in all", err, len(g.sent))
		}
	})
}

// TestStepsAreNeverReleased: with a step kept something did happen, whatever the
// operation says; the next attempt goes on, for the same request only.
func TestStepsAreNeverReleased(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		var g gateway
		op := stepped("k")
		if _, err := do(t, e, op, func(ctx context.Context) (string, error) {
			if _, err := g.steps("a")(ctx); err != nil {
				return "", err
			}
			return "", umavez.NotDone(errLater)
		}); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		wantState(t, e, op, umavez.Lost)
		if _, err := do(t, e, op, g.steps("a")); err != nil || len(g.sent) != 1 {
			t.Errorf("%v, sent %d times", err, len(g.sent))
		}
	})
}

// codecOf keeps values in another form than JSON's plain one.
type codecOf struct{ used *int }

func (c codecOf) Marshal(v any) ([]byte, error) {
	*c.used++
	b, err := json.Marshal(v)
	return append([]byte("mine:"), b...), err
}

func (c codecOf) Unmarshal(b []byte, v any) error {
	*c.used++
	return json.Unmarshal(b[len("mine:"):], v)
}

func TestStepCodec(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := stepped("k")
		used := 0
		run := func(ctx context.Context) (string, error) {
			return umavez.Step(ctx, "a", func(context.Context, string) (string, error) { return "x", nil }, umavez.WithCodec(codecOf{&used}))
		}
		if _, err := do(t, e, op, thenFails(run)); !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		if got, err := do(t, e, op, run); got != "x" || err != nil || used != 2 {
			t.Errorf("%q, %v, codec used %d times", got, err, used)
		}
	})
}

// TestProcessDiesAnywhere: the process dies before or after any of its store
// calls, between the foreign call and its checkpoint among them, again and again.
// Against a gateway that honours keys each step has one effect, and every
// payment ends without anybody settling it.
func TestProcessDiesAnywhere(t *testing.T) {
	const payments = 200
	var g gateway
	deaths := 0
	for n := range payments {
		synctest.Test(t, func(t *testing.T) {
			mem := memstore.New(memstore.Options{})
			op := stepped(fmt.Sprint(n))
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for try := 0; ; try++ {
				lives := rng.IntN(8)
				if try > 5 {
					lives = 1000
				}
				var calls atomic.Int64
				before := rng.IntN(2) == 0
				s := newFaultStore(mem, func(string, int) fault {
					c := calls.Add(1)
					// From its last call on, the process is as good as dead.
					return fault{lost: c > int64(lives) || c == int64(lives) && before, replyLost: c == int64(lives) && !before}
				})
				e := newEngine(t, s, umavez.Options{})
				_, err := do(t, e, op, g.steps("reservar", "cobrar", "avisar"))
				dead, cancel := context.WithCancel(t.Context())
				cancel()
				_ = e.Close(dead) // what a dead process leaves is left
				if err == nil {
					break
				}
				deaths++
				time.Sleep(time.Minute) // its lease runs out
			}
			rec, err := mem.Get(t.Context(), op.Key.ID())
			if err != nil || rec.State != umavez.Done {
				t.Errorf("payment %d ended %v, %v", n, rec.State, err)
			}
		})
	}
	if len(g.charges) != 3*payments {
		t.Errorf("%d steps had an effect, want 3 of each of %d payments", len(g.charges), payments)
	}
	for key, n := range g.charges {
		if n != 1 {
			t.Errorf("step %s had %d effects", key, n)
		}
	}
	if again := len(g.sent) - len(g.charges); again < 20 {
		t.Errorf("only %d steps were sent again after a death; the test shows little", again)
	}
	t.Logf("%d deaths, %d steps sent again", deaths, len(g.sent)-len(g.charges))
}

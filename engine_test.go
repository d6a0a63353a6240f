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

// faultStore stands between an engine and a real store. It hides that the store
// is prompt, counts calls, and lets a test decide what befalls each.
type faultStore struct {
	umavez.Store
	on func(op string, n int) fault // n counts the calls of op, from 1

	mu    sync.Mutex
	calls map[string]int
}

// fault is what befalls one call.
type fault struct {
	delay     time.Duration // before the call reaches the store
	notSent   bool          // it never reaches the store, and the caller knows
	lost      bool          // it never reaches the store, and the caller does not know
	replyLost bool          // it is applied, and the caller does not know
	after     time.Duration // before the reply
}

var (
	errNotSent = &umavez.StoreError{Op: "test", Applied: umavez.No, Err: errors.New("connection refused")}
	errMaybe   = &umavez.StoreError{Op: "test", Applied: umavez.Maybe, Err: errors.New("connection reset")}
)

func newFaultStore(s umavez.Store, on func(op string, n int) fault) *faultStore {
	if on == nil {
		on = func(string, int) fault { return fault{} }
	}
	return &faultStore{Store: s, on: on, calls: map[string]int{}}
}

func (s *faultStore) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

func (s *faultStore) call(ctx context.Context, op string, apply func(context.Context) error) error {
	s.mu.Lock()
	s.calls[op]++
	f := s.on(op, s.calls[op])
	s.mu.Unlock()
	if !sleep(ctx, f.delay) {
		return &umavez.StoreError{Op: op, Err: ctx.Err()}
	}
	switch {
	case f.notSent:
		return errNotSent
	case f.lost:
		return errMaybe
	}
	// What has been sent is applied, whatever becomes of the caller.
	err := apply(context.WithoutCancel(ctx))
	if !sleep(ctx, f.after) {
		return &umavez.StoreError{Op: op, Err: ctx.Err()}
	}
	if f.replyLost {
		return errMaybe
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *faultStore) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (rec umavez.Record, acquired bool, err error) {
	err = s.call(ctx, "claim", func(ctx context.Context) (err error) {
		rec, acquired, err = s.Store.Claim(ctx, id, req)
		return err
	})
	if err != nil {
		return umavez.Record{}, false, err
	}
	return rec, acquired, nil
}

func (s *faultStore) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.call(ctx, "checkpoint", func(ctx context.Context) error { return s.Store.Checkpoint(ctx, l, step, result) })
}

func (s *faultStore) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.call(ctx, "complete", func(ctx context.Context) error { return s.Store.Complete(ctx, l, answer, keep) })
}

func (s *faultStore) Release(ctx context.Context, l umavez.Lease) error {
	return s.call(ctx, "release", func(ctx context.Context) error { return s.Store.Release(ctx, l) })
}

func (s *faultStore) Abandon(ctx context.Context, l umavez.Lease, why umavez.Reason, last []byte) error {
	return s.call(ctx, "abandon", func(ctx context.Context) error { return s.Store.Abandon(ctx, l, why, last) })
}

func (s *faultStore) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.call(ctx, "extend", func(ctx context.Context) error { return s.Store.Extend(ctx, l, d) })
}

func (s *faultStore) Get(ctx context.Context, id umavez.ID) (rec umavez.Record, err error) {
	err = s.call(ctx, "get", func(ctx context.Context) (err error) {
		rec, err = s.Store.Get(ctx, id)
		return err
	})
	return rec, err
}

// newEngine makes an engine that the test closes at its end.
func newEngine(t *testing.T, s umavez.Store, o umavez.Options) *umavez.Engine {
	t.Helper()
	e, err := umavez.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func closeEngine(t *testing.T, e *umavez.Engine) {
	t.Helper()
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func opaque(name string) umavez.Operation {
	return umavez.Operation{Key: umavez.Key{Scope: umavez.Scope{Namespace: "test"}, Name: name}, Route: "test"}
}

func mustClaim(t *testing.T, e *umavez.Engine, op umavez.Operation) *umavez.Attempt {
	t.Helper()
	a, rec, err := e.Claim(t.Context(), op)
	if err != nil || a == nil {
		t.Fatalf("Claim: attempt %v, record %v, error %v; want an attempt", a, rec.State, err)
	}
	return a
}

func wantState(t *testing.T, e *umavez.Engine, op umavez.Operation, want umavez.State) umavez.Record {
	t.Helper()
	rec, err := e.Get(t.Context(), op.Key)
	if err != nil {
		t.Fatal(err)
	}
	if rec.State != want {
		t.Fatalf("record is %v, want %v", rec.State, want)
	}
	return rec
}

// eachStore runs a test over a store that never waits, on the caller's own
// goroutine, and over the same store behind one that may.
func eachStore(t *testing.T, test func(t *testing.T, s umavez.Store)) {
	t.Run("prompt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, memstore.New(memstore.Options{})) })
	})
	t.Run("waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newFaultStore(memstore.New(memstore.Options{}), nil)) })
	})
}

func TestClaimRunsOnceAndReplays(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		a := mustClaim(t, e, op)
		if got := umavez.FromContext(a.Context()); got != a {
			t.Errorf("FromContext gives %p, want the attempt %p", got, a)
		}
		if err := a.Complete([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		if err := a.Release(nil); !errors.Is(err, umavez.ErrEnded) {
			t.Errorf("ending twice: %v, want ErrEnded", err)
		}
		again, rec, err := e.Claim(t.Context(), op)
		if again != nil || err != nil || rec.State != umavez.Done || string(rec.Answer) != "answer" {
			t.Fatalf("second claim: %v %+v %v, want the answer", again, rec, err)
		}
	})
}

func TestFingerprintDecides(t *testing.T) {
	eachStore(t, func(t *testing.T, s umavez.Store) {
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		op := opaque("k")
		op.Fingerprint = umavez.Fingerprint{Recipe: 1, Sum: [32]byte{1}}
		a := mustClaim(t, e, op)

		other := op
		other.Fingerprint.Sum[0] = 2
		other.Wait = time.Hour // it must not wait for an answer that is not its own
		if _, rec, err := e.Claim(t.Context(), other); !errors.Is(err, umavez.ErrKeyReused) || rec.Fingerprint != op.Fingerprint {
			t.Errorf("other request while running: %v, record of %v; want ErrKeyReused", err, rec.Fingerprint)
		}
		if err := a.Complete([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Claim(t.Context(), other); !errors.Is(err, umavez.ErrKeyReused) {
			t.Errorf("other request when done: %v, want ErrKeyReused", err)
		}

		newer := op
		newer.Fingerprint = umavez.Fingerprint{Recipe: 2, Sum: [32]byte{9}}
		if _, _, err := e.Claim(t.Context(), newer); !errors.Is(err, umavez.ErrRecipeUnknown) {
			t.Errorf("request of an unknown recipe: %v, want ErrRecipeUnknown", err)
		}
		newer.Refingerprint = func(recipe uint32) (umavez.Fingerprint, bool) { return op.Fingerprint, recipe == 1 }
		if _, rec, err := e.Claim(t.Context(), newer); err != nil || rec.State != umavez.Done {
			t.Errorf("request fingerprinted by the record's recipe: %v %v, want done", rec.State, err)
		}
	})
}

// TestRace has racers on many keys, in two engines on one store: what two
// processes are to each other.
func TestRace(t *testing.T) {
	const keys, racers = 3000, 4
	s := newFaultStore(memstore.New(memstore.Options{}), nil)
	engines := [2]*umavez.Engine{newEngine(t, s, umavez.Options{}), newEngine(t, s, umavez.Options{})}
	defer closeEngine(t, engines[0])
	defer closeEngine(t, engines[1])
	var effects [keys]atomic.Int32
	var wg sync.WaitGroup
	for r := range racers {
		wg.Go(func() {
			for _, k := range rand.Perm(keys) {
				op := opaque(fmt.Sprint(k))
				op.Wait = 30 * time.Second
				res, err := umavez.Do(t.Context(), engines[r%2], op, func(context.Context) (int, error) {
					effects[k].Add(1)
					return k, nil
				})
				if err != nil || res.Value != k {
					t.Errorf("key %d: %v, %v", k, res.Value, err)
				}
			}
		})
	}
	wg.Wait()
	for k := range effects {
		if n := effects[k].Load(); n != 1 {
			t.Errorf("key %d had %d effects", k, n)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]umavez.Options{
		"negative":   {Retain: -1},
		"waiters":    {MaxWaiters: -1},
		"unsaved":    {MaxUnsaved: -1},
		"tiny lease": {Lease: time.Millisecond},
		"short run":  {Lease: time.Minute, MaxRun: time.Second},
	} {
		if _, err := umavez.New(memstore.New(memstore.Options{}), o); err == nil {
			t.Errorf("%s: New accepts %+v", name, o)
		}
	}
	if _, err := umavez.New(nil, umavez.Options{}); err == nil {
		t.Error("New accepts no store")
	}
}

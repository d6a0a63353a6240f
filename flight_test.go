package umavez_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestDuplicatesFollowAnotherProcess: the first one here who asks for a key that
// runs elsewhere waits for its answer, alone or followed by others.
func TestDuplicatesFollowAnotherProcess(t *testing.T) {
	for _, duplicates := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New(memstore.Options{})
			there, here := newEngine(t, s, umavez.Options{}), newEngine(t, s, umavez.Options{})
			defer closeEngine(t, there)
			defer closeEngine(t, here)
			op := opaque("k")
			running := mustClaim(t, there, op)
			op.Wait = 5 * time.Second
			var wg sync.WaitGroup
			for range duplicates {
				wg.Go(func() {
					a, rec, err := here.Claim(t.Context(), op)
					if a != nil || err != nil || rec.State != umavez.Done || string(rec.Answer) != "answer" {
						t.Errorf("of %d: %v, %v with %q, %v", duplicates, a, rec.State, rec.Answer, err)
					}
				})
				synctest.Wait() // they come one after the other
			}
			if err := running.Complete([]byte("answer")); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
		})
	}
}

// reluctant is a store that loses every second attempt just before it starts.
type reluctant struct {
	*memstore.Store
	starts atomic.Int64
}

func (s *reluctant) Started(umavez.Lease) error {
	if s.starts.Add(1)%2 == 1 {
		return umavez.ErrLeaseLost
	}
	return nil
}

// TestFlightsAreNotMixedUp: flights are used again for other keys. Whoever loses
// its attempt before the start, and waits until that is released, gets its own
// key's turn and nobody else's answer.
func TestFlightsAreNotMixedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, &reluctant{Store: memstore.New(memstore.Options{})}, umavez.Options{})
		defer closeEngine(t, e)
		const callers, keys = 8, 100
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for k := range keys {
					key := fmt.Sprintf("%d of %d", k, c)
					op := opaque(key)
					op.Wait = 30 * time.Second
					res, err := umavez.Do(t.Context(), e, op, func(context.Context) (string, error) { return key, nil })
					if err != nil || res.Value != key || res.Replayed {
						t.Errorf("key %q: %+v, %v", key, res, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestLateAnswerReachesThoseWhoComeAfterIt: a claim finds a key lost, and its
// reply is slow. Meanwhile the late answer is saved. Whoever comes after that
// gets the answer, though it joins the claim that was sent before.
func TestLateAnswerReachesThoseWhoComeAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		there := newEngine(t, s, umavez.Options{})
		here := newEngine(t, newFaultStore(s, func(op string, _ int) fault {
			return fault{after: 900 * time.Millisecond}
		}), umavez.Options{})
		defer closeEngine(t, there)
		defer closeEngine(t, here)
		op := opaque("k")
		late := mustClaim(t, there, op)
		if err := late.Abandon(umavez.ReasonError, nil); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		ask := func(want umavez.State) {
			wg.Go(func() {
				if _, rec, err := here.Claim(t.Context(), op); err != nil || rec.State != want {
					t.Errorf("the record is %v (%v), want %v", rec.State, err, want)
				}
			})
			synctest.Wait()
		}
		ask(umavez.Lost)
		time.Sleep(time.Millisecond)
		if err := s.Complete(t.Context(), late.Lease(), []byte("answer"), umavez.Retention{Retain: time.Hour}); err != nil {
			t.Fatal(err)
		}
		ask(umavez.Done)
		wg.Wait()
	})
}

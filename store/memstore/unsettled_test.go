package memstore_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestUnsettledIsBoundedExactly: of many who claim at once for one scope exactly
// as many are granted as the bound says.
func TestUnsettledIsBoundedExactly(t *testing.T) {
	const bound, callers, each = 50, 8, 20
	s := memstore.New(memstore.Options{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []umavez.Lease
	for caller := range uint64(callers) {
		wg.Go(func() {
			for n := range uint64(each) {
				id, req := numbered(caller*each+n), request(caller*each+n)
				req.Scope, req.MaxUnsettled = umavez.ScopeID{7}, bound
				_, acquired, err := s.Claim(t.Context(), id, req)
				if acquired != (err == nil) || err != nil && !errors.Is(err, umavez.ErrTooManyUnsettled) {
					t.Errorf("claim: acquired %v, error %v", acquired, err)
				}
				if acquired {
					mu.Lock()
					won = append(won, umavez.Lease{ID: id, Attempt: req.Attempt})
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(won) != bound {
		t.Fatalf("%d claims were granted, want %d", len(won), bound)
	}
	for i, lease := range won { // each way out of being unsettled gives the place back
		end := func() error { return s.Release(t.Context(), lease) }
		if i%2 == 0 {
			end = func() error { return s.Complete(t.Context(), lease, benchAnswer, benchKeep) }
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		req := request(1000 + uint64(i))
		req.Scope, req.MaxUnsettled = umavez.ScopeID{7}, bound
		if _, acquired, err := s.Claim(t.Context(), numbered(1000+uint64(i)), req); !acquired || err != nil {
			t.Fatalf("claim when one has ended: acquired %v, error %v", acquired, err)
		}
	}
}

package memstore

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// idAt makes IDs that all fall into one shard.
func idAt(n uint64) (id umavez.ID) {
	binary.BigEndian.PutUint64(id[8:], n+1)
	return id
}

func claimAt(t *testing.T, s *Store, n uint64) umavez.Lease {
	t.Helper()
	l := umavez.Lease{ID: idAt(n), Attempt: umavez.NewAttemptID()}
	if _, acquired, err := s.Claim(t.Context(), l.ID, umavez.ClaimRequest{Attempt: l.Attempt, Lease: time.Hour}); err != nil || !acquired {
		t.Fatalf("claim: acquired %v, error %v", acquired, err)
	}
	return l
}

// TestPageTakesTheSmallest: whatever the order in which records are met, and
// however often, the page has the smallest IDs after the given one, each once.
func TestPageTakesTheSmallest(t *testing.T) {
	const seed = 3
	random := rand.New(rand.NewPCG(seed, 0))
	for _, limit := range []int{1, 2, 10, 99, 100, 101} {
		p := page{after: idAt(49), limit: limit}
		for range 3 {
			for _, n := range random.Perm(150) {
				if id := idAt(uint64(n)); p.takes(id) {
					p.add(id, umavez.Record{})
				}
			}
		}
		p.trim()
		if want := min(limit, 100); len(p.found) != want {
			t.Fatalf("seed %d, page of %d: %d records, want %d", seed, limit, len(p.found), want)
		}
		for i, l := range p.found {
			if l.ID != idAt(uint64(50+i)) {
				t.Fatalf("seed %d, page of %d: record %d is %v", seed, limit, i, l.ID)
			}
		}
		if held := cap(p.found); held > 4*limit+4 {
			t.Errorf("a page of %d has room for %d records: it must not grow with the store", limit, held)
		}
	}
}

// TestListLetsOthersIn: a list gives the shard's mutex up after each chunk. The
// store's clock is read once for each time that it is taken.
func TestListLetsOthersIn(t *testing.T) {
	const rows = 100 * listChunk // many more chunks than there are shards
	var reads atomic.Int64
	s := New(Options{Now: func() time.Time {
		reads.Add(1)
		return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	}})
	for n := range uint64(rows) {
		claimAt(t, s, n)
	}
	for _, q := range []umavez.Query{{Limit: 10}, {Limit: 10, States: []umavez.State{umavez.Running}}} {
		reads.Store(0)
		if page, err := s.List(t.Context(), q); err != nil || len(page) != 10 {
			t.Fatalf("list: %d records, error %v", len(page), err)
		}
		if got := reads.Load(); got < rows/listChunk {
			t.Errorf("the list of %+v has taken the mutex %d times for %d rows, want at least %d", q, got, rows, rows/listChunk)
		}
	}
}

// TestWalkSeesWhatMoves: a row that leaves the open list while it is walked
// through has another one put in its place, which must be seen all the same.
func TestWalkSeesWhatMoves(t *testing.T) {
	const rows = 2 * listChunk
	s := New(Options{})
	for n := range uint64(rows) {
		claimAt(t, s, n)
	}
	sh, seen := s.shardOf(idAt(0)), map[umavez.ID]bool{}
	if err := sh.walkUnsettled(t.Context(), s, func(r *resident, _ umavez.Instant) {
		if len(seen) == 0 { // as a completion between two chunks does
			r.phase = umavez.PhaseDone
			sh.unsettled.place(r)
		}
		seen[r.id] = true
	}); err != nil || len(seen) != rows {
		t.Errorf("%d of %d rows were seen, error %v", len(seen), rows, err)
	}
}

// TestListAgainstCalls lists while keys come, end and go in the same shard. What
// stays must be on every list, and nothing twice.
func TestListAgainstCalls(t *testing.T) {
	const stay = 2 * listChunk
	s := New(Options{})
	var want []umavez.ID
	for n := range uint64(stay) {
		want = append(want, claimAt(t, s, 2*n).ID)
	}
	var callers sync.WaitGroup
	var over atomic.Bool
	for caller := range uint64(2) {
		callers.Go(func() {
			for n := caller; !over.Load(); n = (n + 2) % (4 * stay) {
				l := umavez.Lease{ID: idAt(2*n + 1), Attempt: umavez.NewAttemptID()}
				if _, acquired, err := s.Claim(t.Context(), l.ID, umavez.ClaimRequest{Attempt: l.Attempt, Lease: time.Hour}); err != nil || !acquired {
					t.Errorf("claim: acquired %v, error %v", acquired, err)
				}
				if err := s.Complete(t.Context(), l, nil, umavez.Retention{}); err != nil {
					t.Errorf("complete: %v", err)
				}
				if _, err := s.Purge(t.Context(), 3); err != nil {
					t.Errorf("purge: %v", err)
				}
			}
		})
	}
	for round := range 60 {
		q := umavez.Query{Limit: umavez.MaxPage}
		if round%2 == 0 {
			q.States = []umavez.State{umavez.Running, umavez.Lost}
		}
		page, err := s.List(t.Context(), q)
		var got []umavez.ID
		for _, l := range page {
			got = append(got, l.ID)
		}
		seen := slices.Clone(got)
		got = slices.DeleteFunc(got, func(id umavez.ID) bool { return !slices.Contains(want, id) })
		if err != nil || !slices.Equal(got, want) || len(slices.Compact(seen)) != len(page) {
			t.Errorf("round %d: the list has %d of %d records that stay, error %v", round, len(got), len(want), err)
			break
		}
	}
	over.Store(true)
	callers.Wait()
}

package memstore_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestMemoryOfDoneKeys holds the store to 600 bytes of heap a finished key, an
// answer of 200 bytes included: room, map, and the heap that purging needs.
func TestMemoryOfDoneKeys(t *testing.T) {
	const keys, limit = 100_000, 60_000_000
	before := heap()
	s := memstore.New(memstore.Options{})
	for n := range uint64(keys) {
		finish(t, s, n, make([]byte, 200))
	}
	used := heap() - before
	t.Logf("%d done keys take %d bytes of heap, %d a key", keys, used, used/keys)
	if used > limit {
		t.Errorf("%d done keys take %d bytes of heap, want at most %d", keys, used, limit)
	}
	if got := s.Len(); got != keys {
		t.Errorf("the store holds %d records, want %d", got, keys)
	}
	runtime.KeepAlive(s)
}

// heap returns the bytes that are reachable. A second collection frees what the
// first one only finalised.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAllocations: a replay allocates nothing, a new key its row and now and
// then a larger map, and a completion nothing.
func TestAllocations(t *testing.T) {
	s := memstore.New(memstore.Options{})
	ctx := context.Background()
	next := uint64(0)
	var lease umavez.Lease
	claim := func() {
		next++
		lease = umavez.Lease{ID: numbered(next), Attempt: request(next).Attempt}
		if _, acquired, err := s.Claim(ctx, lease.ID, request(next)); err != nil || !acquired {
			t.Fatalf("claim: acquired %v, error %v", acquired, err)
		}
	}
	complete := func() {
		if err := s.Complete(ctx, lease, benchAnswer, benchKeep); err != nil {
			t.Fatalf("complete: %v", err)
		}
	}
	both := testing.AllocsPerRun(2000, func() { claim(); complete() })
	alone := testing.AllocsPerRun(2000, claim)
	replay := testing.AllocsPerRun(2000, func() {
		if rec, _, err := s.Claim(ctx, numbered(1), request(0)); err != nil || rec.State != umavez.Done {
			t.Fatalf("claim of a done key: %v, %v", rec.State, err)
		}
	})
	again := testing.AllocsPerRun(2000, complete)
	t.Logf("allocations: claim %v, claim and complete %v, complete again %v, replay %v", alone, both, again, replay)
	if alone > 2 || both > 3 || again > 0 || replay > 0 {
		t.Errorf("allocations: claim %v (want at most 2), claim and complete %v (3), complete again %v (0), replay %v (0)",
			alone, both, again, replay)
	}
}

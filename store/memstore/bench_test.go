package memstore_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

var (
	benchAnswer = make([]byte, 118)
	benchKeep   = umavez.Retention{Retain: 24 * time.Hour, Tombstone: 720 * time.Hour}
)

// numbered makes distinct IDs that spread over the shards, as hashes do.
func numbered(n uint64) (id umavez.ID) {
	binary.BigEndian.PutUint64(id[24:], n)
	binary.BigEndian.PutUint64(id[:], n*0x9e3779b97f4a7c15)
	return id
}

func request(n uint64) umavez.ClaimRequest {
	req := umavez.ClaimRequest{
		Route: "POST /pagamentos", Lease: 15 * time.Second,
		// A bound that nobody reaches, so that every claim looks.
		Namespace: "loja", Scope: umavez.ScopeID{byte(n), byte(n >> 8)}, MaxUnsettled: 1 << 30,
	}
	binary.BigEndian.PutUint64(req.Attempt[:], n+1)
	req.Fingerprint.Recipe = 1
	binary.BigEndian.PutUint64(req.Fingerprint.Sum[:], n)
	return req
}

// finish claims and completes a key.
func finish(tb testing.TB, s *memstore.Store, n uint64, answer []byte) {
	ctx, id, req := context.Background(), numbered(n), request(n)
	rec, acquired, err := s.Claim(ctx, id, req)
	if err != nil || !acquired {
		tb.Fatalf("claim of key %d: acquired %v, error %v", n, acquired, err)
	}
	if err := s.Complete(ctx, umavez.Lease{ID: id, Attempt: req.Attempt, Fence: rec.Fence}, answer, benchKeep); err != nil {
		tb.Fatalf("complete of key %d: %v", n, err)
	}
}

// BenchmarkFirst is what a new key costs: claim and complete.
func BenchmarkFirst(b *testing.B) {
	s := memstore.New(memstore.Options{MaxRecords: 1 << 30})
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		finish(b, s, n, benchAnswer)
	}
}

// replayKeys is how many done keys the replays go round.
const replayKeys = 1024

func doneKeys(b *testing.B) *memstore.Store {
	b.Helper()
	s := memstore.New(memstore.Options{})
	for n := range uint64(replayKeys) {
		finish(b, s, n, benchAnswer)
	}
	b.ReportAllocs()
	return s
}

// replay claims the nth of them in turn.
func replay(b *testing.B, s *memstore.Store, n uint64) {
	b.Helper()
	rec, acquired, err := s.Claim(context.Background(), numbered(n%replayKeys), request(n+replayKeys))
	if err != nil || acquired || rec.State != umavez.Done {
		b.Fatalf("claim of a done key: %v, acquired %v, error %v", rec.State, acquired, err)
	}
}

// BenchmarkReplay is what a done key costs: one claim that is answered.
func BenchmarkReplay(b *testing.B) {
	s := doneKeys(b)
	for n := uint64(0); b.Loop(); n++ {
		replay(b, s, n)
	}
}

// BenchmarkReplayParallel has all processors ask for the same keys.
func BenchmarkReplayParallel(b *testing.B) {
	s := doneKeys(b)
	b.RunParallel(func(pb *testing.PB) {
		for n := uint64(0); pb.Next(); n++ {
			replay(b, s, n)
		}
	})
}

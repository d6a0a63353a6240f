package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/umavez/umavez"
)

// TestEverythingIsCounted plays events at random on a few keys of a few scopes.
// After each, the open lists must hold exactly the running and lost rows, each
// where it thinks it is, and the counts of scopes must be those of the rows.
func TestEverythingIsCounted(t *testing.T) {
	const seed, keys, moves = 11, 30, 20_000
	random := rand.New(rand.NewPCG(seed, 0))
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	s := New(Options{Now: func() time.Time { return now }})
	attempts := make([]umavez.AttemptID, 4)
	for i := range attempts {
		attempts[i] = umavez.NewAttemptID()
	}
	ctx := t.Context()
	for move := range moves {
		id := umavez.ID{0: byte(random.IntN(keys)), 1: 1}
		rec, _ := s.Get(ctx, id)
		l := umavez.Lease{ID: id, Attempt: attempts[random.IntN(len(attempts))]}
		settlement := umavez.Settlement{ID: umavez.NewAttemptID(), Fence: rec.Fence, Who: "ana", Why: "so"}
		keep := umavez.Retention{Retain: time.Duration(random.IntN(3)) * time.Minute, Tombstone: time.Duration(random.IntN(2)) * time.Minute}
		switch random.IntN(10) {
		case 0, 1, 2, 3:
			req := umavez.ClaimRequest{
				Attempt: l.Attempt, Policy: umavez.Policy(random.IntN(3)), Lease: time.Duration(random.IntN(3)) * time.Minute,
				Scope: umavez.ScopeID{byte(random.IntN(3))}, MaxUnsettled: random.IntN(12), TakeOver: rec.Fence,
			}
			_, _, _ = s.Claim(ctx, id, req)
		case 4:
			_ = s.Complete(ctx, l, []byte("a"), keep)
		case 5:
			_ = s.Release(ctx, l)
		case 6:
			settlement.Action, settlement.Answer, settlement.Keep = umavez.ActionHappened, []byte("s"), keep
			_ = s.Settle(ctx, id, settlement)
		case 7:
			settlement.Action = umavez.ActionCannotHappen
			_ = s.Settle(ctx, id, settlement)
		case 8:
			_, _ = s.Purge(ctx, 10)
		case 9:
			now = now.Add(30 * time.Second)
		}
		if problem := s.miscounted(); problem != "" {
			t.Fatalf("seed %d, move %d: %s", seed, move, problem)
		}
	}
}

// miscounted says what does not agree with the rows.
func (s *Store) miscounted() string {
	counts := map[umavez.ScopeID]int{}
	for i := range s.shards {
		sh, open := &s.shards[i], 0
		for id, r := range sh.rows {
			if (r.phase == umavez.PhaseRunning) != (r.listed != notListed) || r.listed != notListed && sh.unsettled[r.listed] != r {
				return fmt.Sprintf("row %v of phase %d is at place %d", id, r.phase, r.listed)
			}
			if r.phase == umavez.PhaseRunning {
				open++
				counts[r.scope]++
			}
		}
		if open != len(sh.unsettled) {
			return fmt.Sprintf("the list has %d rows, want %d", len(sh.unsettled), open)
		}
	}
	told := 0
	for i := range s.unsettled {
		for scope, n := range s.unsettled[i].counts {
			if told++; counts[scope] != n {
				return fmt.Sprintf("scope %v has %d, want %d", scope, n, counts[scope])
			}
		}
	}
	if told != len(counts) {
		return fmt.Sprintf("%d scopes are counted, want %d: one without records takes room", told, len(counts))
	}
	return ""
}

// TestNamespacesAreShared: rows of one namespace have its name once, however
// often it was made.
func TestNamespacesAreShared(t *testing.T) {
	var kept []*byte
	for range 2 {
		r := newResident(umavez.ID{})
		r.set(umavez.Row{Namespace: string([]byte("loja do porto"))})
		kept = append(kept, unsafe.StringData(r.namespace()))
	}
	if kept[0] != kept[1] {
		t.Error("two rows hold a copy each of their namespace")
	}
}

package memstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// settlement is one of a record that was looked at under a fence.
func settlement(fence umavez.Fence, action umavez.Action) umavez.Settlement {
	s := umavez.Settlement{
		ID: umavez.NewAttemptID(), Action: action, Fence: fence, Keep: benchKeep, Who: "ana", Why: "the bank says so",
	}
	if action == umavez.ActionHappened {
		s.Answer = []byte("aprovado")
	}
	return s
}

// lose claims a key and lets its lease run out.
func lose(t *testing.T, s *memstore.Store, c *clock, n uint64) umavez.Lease {
	t.Helper()
	lease := mustClaim(t, s, n)
	c.Advance(time.Minute)
	return lease
}

func TestSettleAndTrail(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now})
	lease := lose(t, s, c, 1)
	if err := s.Hold(t.Context(), lease.ID, lease.Fence, umavez.NewAttemptID(), time.Hour); err != nil {
		t.Fatalf("hold: %v", err)
	}
	if err := s.Settle(t.Context(), lease.ID, settlement(lease.Fence, umavez.ActionHappened)); err != nil {
		t.Fatalf("settle: %v", err)
	}
	if err := s.Settle(t.Context(), lease.ID, settlement(lease.Fence, umavez.ActionHappened)); !errors.Is(err, umavez.ErrMoved) {
		t.Errorf("a second settlement: %v, want ErrMoved", err)
	}
	if err := s.Complete(t.Context(), lease, []byte("recusado"), benchKeep); !errors.Is(err, umavez.ErrContradicted) {
		t.Errorf("the late owner's answer: %v, want ErrContradicted", err)
	}
	c.Advance(time.Second)
	trail, err := s.Trail(t.Context(), lease.ID)
	if err != nil || len(trail) != 2 || trail[0].Action != umavez.ActionHappened || trail[0].Who != "ana" ||
		trail[1].Action != umavez.ActionContradicted || trail[1].Ago != time.Second {
		t.Errorf("the audit trail is %+v, error %v", trail, err)
	}
}

// TestTrailOutlivesItsRecord: entries go after AuditKept, and not with their
// record.
func TestTrailOutlivesItsRecord(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now})
	lease := lose(t, s, c, 1)
	if err := s.Settle(t.Context(), lease.ID, settlement(lease.Fence, umavez.ActionHappened)); err != nil {
		t.Fatal(err)
	}
	purge := func(passes time.Duration, wantDropped, wantTrail int) {
		t.Helper()
		c.Advance(passes)
		n, err := s.Purge(t.Context(), 100)
		trail, _ := s.Trail(t.Context(), lease.ID)
		if n != wantDropped || err != nil || len(trail) != wantTrail {
			t.Errorf("purge after %v: %d, error %v, and %d entries are left; want %d and %d", passes, n, err, len(trail), wantDropped, wantTrail)
		}
	}
	gone := benchKeep.Retain + benchKeep.Tombstone
	purge(gone, 1, 1)
	if s.Len() != 0 {
		t.Errorf("%d records are left", s.Len())
	}
	purge(umavez.AuditKept-gone-time.Microsecond, 0, 1)
	purge(time.Microsecond, 1, 0)
}

// TestFullTrailsRefuseSettlements: nothing is settled without its entry, what is
// over makes room, and what a contradicted owner says is kept in any case.
func TestFullTrailsRefuseSettlements(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now, MaxAudit: 1})
	first, second := lose(t, s, c, 1), lose(t, s, c, 2)
	if err := s.Settle(t.Context(), first.ID, settlement(first.Fence, umavez.ActionHappened)); err != nil {
		t.Fatal(err)
	}
	err := s.Settle(t.Context(), second.ID, settlement(second.Fence, umavez.ActionPark))
	if !errors.Is(err, memstore.ErrAuditFull) || umavez.AppliedOf(err) != umavez.No {
		t.Errorf("a settlement beyond MaxAudit: %v, want ErrAuditFull in a StoreError that says no", err)
	}
	if rec, _ := s.Get(t.Context(), second.ID); rec.Reason != umavez.ReasonKilled {
		t.Errorf("the refused settlement has changed the record: %q", rec.Reason)
	}
	if err := s.Complete(t.Context(), first, []byte("recusado"), benchKeep); !errors.Is(err, umavez.ErrContradicted) {
		t.Errorf("the late owner's answer: %v, want ErrContradicted", err)
	}
	if trail, _ := s.Trail(t.Context(), first.ID); len(trail) != 2 {
		t.Errorf("the trail has %d entries, want the contradiction, too", len(trail))
	}
	c.Advance(umavez.AuditKept)
	if err := s.Settle(t.Context(), second.ID, settlement(second.Fence, umavez.ActionPark)); err != nil {
		t.Errorf("a settlement when the entries are over: %v", err)
	}
}

package memstore_test

import (
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestRewriteMeetsAChange: a record that changes while it is being rewritten is
// handed over again, so that nothing that was written meanwhile is lost.
func TestRewriteMeetsAChange(t *testing.T) {
	s := memstore.New(memstore.Options{})
	lease := mustClaim(t, s, 1)
	calls := 0
	last, err := s.Rewrite(t.Context(), umavez.ID{}, 10, func(_ umavez.ID, rec *umavez.Record) error {
		if calls++; calls == 1 {
			if err := s.Checkpoint(t.Context(), lease, "cobrar", []byte("c-1")); err != nil {
				t.Fatal(err)
			}
		}
		for i := range rec.Steps {
			rec.Steps[i].Result = append([]byte("sealed "), rec.Steps[i].Result...)
		}
		return nil
	})
	if err != nil || last != (umavez.ID{}) || calls != 2 {
		t.Errorf("rewrite: last %v, error %v, %d calls; want none, none, 2", last, err, calls)
	}
	if rec, _ := s.Get(t.Context(), lease.ID); len(rec.Steps) != 1 || string(rec.Steps[0].Result) != "sealed c-1" {
		t.Errorf("the steps are %q", rec.Steps)
	}
}

// TestRewriteLeavesExpiredAnswers: an answer that is over is shown to nobody,
// and does not keep the rewriting from its end.
func TestRewriteLeavesExpiredAnswers(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now})
	finish(t, s, 1, benchAnswer)
	c.Advance(benchKeep.Retain)
	calls := 0
	if _, err := s.Rewrite(t.Context(), umavez.ID{}, 10, func(_ umavez.ID, rec *umavez.Record) error {
		calls++
		if rec.Answer != nil {
			t.Errorf("the answer %q was handed out", rec.Answer)
		}
		return nil
	}); err != nil || calls != 1 {
		t.Errorf("rewrite: error %v, %d calls", err, calls)
	}
}

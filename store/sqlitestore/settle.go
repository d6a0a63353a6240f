package sqlitestore

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/umavez/umavez"
)

// Hold implements [umavez.Settler].
func (s *Store) Hold(ctx context.Context, id umavez.ID, fence umavez.Fence, holder umavez.AttemptID, d time.Duration) error {
	s.sweepFor(ctx, id)
	return s.batches.Do(ctx, &op{name: "hold", id: id, ev: umavez.Event{
		Kind: umavez.EventHold, Attempt: holder, Fence: fence, For: d,
	}})
}

// Settle implements [umavez.Settler].
func (s *Store) Settle(ctx context.Context, id umavez.ID, settlement umavez.Settlement) error {
	s.sweepFor(ctx, id)
	return s.batches.Do(ctx, &op{name: "settle", id: id, ev: settlement.Event()})
}

// sweepFor sees to it, before somebody looks into a record, that it is not one
// that never started: of that there is nothing to find out. A failure is not the
// caller's; what it hides is settled by hand then.
func (s *Store) sweepFor(ctx context.Context, id umavez.ID) {
	own, foreign := s.starts.Owner(), false
	err := s.readers.do(ctx, func(c *conn) error {
		c.bind(0, id[:])
		return c.query(stOwner, 1, func(v []driver.Value) error {
			sc := scanner{values: v}
			f := found{owner: sc.blob()}
			foreign = f.foreign(own)
			return sc.err
		})
	})
	if err == nil && foreign {
		s.sweep(ctx)
	}
}

// Trail implements [umavez.Settler].
func (s *Store) Trail(ctx context.Context, id umavez.ID) ([]umavez.AuditEntry, error) {
	var trail []umavez.AuditEntry
	err := s.readers.do(ctx, func(c *conn) error {
		trail = nil
		c.bind(0, id[:])
		return c.query(stTrail, 1, func(v []driver.Value) error {
			e, err := entry(v)
			trail = append(trail, e)
			return err
		})
	})
	now := s.now().Sub(0) // after the read, and one for all: an earlier entry is older
	for i := range trail {
		trail[i].Ago += now
	}
	if err != nil {
		return nil, notApplied("trail", err)
	}
	return trail, nil
}

package memstore

import (
	"context"
	"time"

	"github.com/umavez/umavez"
)

// Hold implements [umavez.Settler].
func (s *Store) Hold(ctx context.Context, id umavez.ID, fence umavez.Fence, holder umavez.AttemptID, d time.Duration) error {
	return s.change(ctx, "hold", id, umavez.Event{Kind: umavez.EventHold, Attempt: holder, Fence: fence, For: d})
}

// Settle implements [umavez.Settler]. When the audit trails are full it is
// ErrAuditFull.
func (s *Store) Settle(ctx context.Context, id umavez.ID, settlement umavez.Settlement) error {
	return s.change(ctx, "settle", id, settlement.Event())
}

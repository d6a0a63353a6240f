package memstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umavez/umavez"
)

// DefaultMaxRecords is how many records a store holds when its options do not
// say. With answers of 200 bytes they take about half a gigabyte.
const DefaultMaxRecords = 1_000_000

// ErrFull: the store holds as many records as it may, and none of them is over.
// It comes inside a [*umavez.StoreError] that says that nothing was written.
var ErrFull = errors.New("umavez: memstore: the store is full")

// ErrAuditFull: the audit trails hold as many entries as they may, so that
// nothing can be settled. It comes as ErrFull does.
var ErrAuditFull = errors.New("umavez: memstore: the audit trails are full")

// Options sets a store up. The zero value of every field means its default.
type Options struct {
	// Now is the store's clock. Leases and retention run by it. It must be safe
	// for concurrent use, and is called with a lock held: it must not call the
	// store. Default time.Now.
	Now func() time.Time
	// MaxRecords bounds the records held, finished ones within their retention
	// included. A key beyond it is refused with ErrFull. Default
	// DefaultMaxRecords.
	MaxRecords int
	// MaxAudit bounds the entries in the audit trails of all records together. A
	// settlement beyond it is refused with ErrAuditFull: an entry is not dropped
	// before its time to make room. Default DefaultMaxAudit.
	MaxAudit int
}

// Store is a [umavez.Store] in memory. Make one with [New]. It is safe for
// concurrent use, starts no goroutine and needs no closing.
type Store struct {
	now              func() time.Time
	max, maxAudit    int64
	records, audited atomic.Int64
	shards           [shardCount]shard
	unsettled        scopeCounts

	settingsMu sync.Mutex
	settings   map[string]kept
}

var (
	_ umavez.Prompt         = (*Store)(nil)
	_ umavez.Purger         = (*Store)(nil)
	_ umavez.SettingsKeeper = (*Store)(nil)
	_ umavez.Settler        = (*Store)(nil)
	_ umavez.Lister         = (*Store)(nil)
	_ umavez.Rewriter       = (*Store)(nil)
)

// New makes an empty store. It panics when a bound is negative.
func New(o Options) *Store {
	if o.MaxRecords < 0 || o.MaxAudit < 0 {
		panic(fmt.Sprintf("umavez: memstore: MaxRecords is %d and MaxAudit %d; they must not be negative", o.MaxRecords, o.MaxAudit))
	}
	s := &Store{now: o.Now, max: int64(o.MaxRecords), maxAudit: int64(o.MaxAudit), settings: map[string]kept{}}
	if s.now == nil {
		s.now = time.Now //nolint:forbidigo // the store owns its clock
	}
	if s.max == 0 {
		s.max = DefaultMaxRecords
	}
	if s.maxAudit == 0 {
		s.maxAudit = DefaultMaxAudit
	}
	for i := range s.shards {
		s.shards[i].rows = map[umavez.ID]*resident{}
		s.unsettled[i].counts = map[umavez.ScopeID]int{}
	}
	return s
}

// Prompt says that no call waits for anything but a mutex.
func (s *Store) Prompt() {}

// Len returns how many records the store holds, those that are over and not yet
// purged included.
func (s *Store) Len() int { return int(s.records.Load()) }

// Claim implements [umavez.Store]. A new key that finds no room is ErrFull.
func (s *Store) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	if err := ctx.Err(); err != nil {
		return umavez.Record{}, false, failed("claim", err)
	}
	rec, eff, err := s.apply("claim", id, umavez.Event{Kind: umavez.EventClaim, Attempt: req.Attempt}, &req)
	if err != nil {
		return rec, false, err
	}
	return rec, eff.Acquired, eff.Err
}

// Checkpoint implements [umavez.Store].
func (s *Store) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.change(ctx, "checkpoint", l.ID, umavez.Event{
		Kind: umavez.EventCheckpoint, Attempt: l.Attempt, Step: step, Payload: result,
	})
}

// Complete implements [umavez.Store].
func (s *Store) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.change(ctx, "complete", l.ID, umavez.Event{
		Kind: umavez.EventComplete, Attempt: l.Attempt, Payload: answer, Keep: keep,
	})
}

// Release implements [umavez.Store]. Releasing a key that has no record keeps
// one, which names the barred attempt; when there is no room it is ErrFull.
func (s *Store) Release(ctx context.Context, l umavez.Lease) error {
	return s.change(ctx, "release", l.ID, umavez.Event{Kind: umavez.EventRelease, Attempt: l.Attempt})
}

// Abandon implements [umavez.Store].
func (s *Store) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	return s.change(ctx, "abandon", l.ID, umavez.Event{
		Kind: umavez.EventAbandon, Attempt: l.Attempt, Reason: reason, Payload: last,
	})
}

// Extend implements [umavez.Store].
func (s *Store) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.change(ctx, "extend", l.ID, umavez.Event{Kind: umavez.EventExtend, Attempt: l.Attempt, For: d})
}

// Get implements [umavez.Store].
func (s *Store) Get(ctx context.Context, id umavez.ID) (umavez.Record, error) {
	if err := ctx.Err(); err != nil {
		return umavez.Record{}, failed("get", err)
	}
	return s.shardOf(id).get(id, s.now), nil
}

func (s *Store) change(ctx context.Context, op string, id umavez.ID, ev umavez.Event) error {
	if err := ctx.Err(); err != nil {
		return failed(op, err)
	}
	_, eff, err := s.apply(op, id, ev, nil)
	if err != nil {
		return err
	}
	return eff.Err
}

// failed is the error of a call that did not touch the store.
func failed(op string, err error) error {
	return &umavez.StoreError{Op: op, Applied: umavez.No, Err: err}
}

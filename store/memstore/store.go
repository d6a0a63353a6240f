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
}

// Store is a [umavez.Store] in memory. Make one with [New]. It is safe for
// concurrent use, starts no goroutine and needs no closing.
type Store struct {
	now     func() time.Time
	max     int64
	records atomic.Int64
	shards  [shardCount]shard

	settingsMu sync.Mutex
	settings   map[string]kept
}

var (
	_ umavez.Prompt         = (*Store)(nil)
	_ umavez.Purger         = (*Store)(nil)
	_ umavez.SettingsKeeper = (*Store)(nil)
)

// New makes an empty store. It panics when MaxRecords is negative.
func New(o Options) *Store {
	if o.MaxRecords < 0 {
		panic(fmt.Sprintf("umavez: memstore: MaxRecords is %d; it must not be negative", o.MaxRecords))
	}
	s := &Store{now: o.Now, max: int64(o.MaxRecords), settings: map[string]kept{}}
	if s.now == nil {
		s.now = time.Now //nolint:forbidigo // the store owns its clock
	}
	if s.max == 0 {
		s.max = DefaultMaxRecords
	}
	for i := range s.shards {
		s.shards[i].rows = map[umavez.ID]*resident{}
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
	return rec, eff.Acquired, err
}

// Checkpoint implements [umavez.Store].
func (s *Store) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.change(ctx, "checkpoint", l, umavez.Event{
		Kind: umavez.EventCheckpoint, Attempt: l.Attempt, Step: step, Payload: result,
	})
}

// Complete implements [umavez.Store].
func (s *Store) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.change(ctx, "complete", l, umavez.Event{
		Kind: umavez.EventComplete, Attempt: l.Attempt, Payload: answer, Keep: keep,
	})
}

// Release implements [umavez.Store]. Releasing a key that has no record keeps
// one, which names the barred attempt; when there is no room it is ErrFull.
func (s *Store) Release(ctx context.Context, l umavez.Lease) error {
	return s.change(ctx, "release", l, umavez.Event{Kind: umavez.EventRelease, Attempt: l.Attempt})
}

// Abandon implements [umavez.Store].
func (s *Store) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	return s.change(ctx, "abandon", l, umavez.Event{
		Kind: umavez.EventAbandon, Attempt: l.Attempt, Reason: reason, Payload: last,
	})
}

// Extend implements [umavez.Store].
func (s *Store) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.change(ctx, "extend", l, umavez.Event{Kind: umavez.EventExtend, Attempt: l.Attempt, For: d})
}

// Get implements [umavez.Store].
func (s *Store) Get(ctx context.Context, id umavez.ID) (umavez.Record, error) {
	if err := ctx.Err(); err != nil {
		return umavez.Record{}, failed("get", err)
	}
	return s.shardOf(id).get(id, s.now), nil
}

func (s *Store) change(ctx context.Context, op string, l umavez.Lease, ev umavez.Event) error {
	if err := ctx.Err(); err != nil {
		return failed(op, err)
	}
	_, eff, err := s.apply(op, l.ID, ev, nil)
	if err != nil {
		return err
	}
	return eff.Err
}

// failed is the error of a call that did not touch the store.
func failed(op string, err error) error {
	return &umavez.StoreError{Op: op, Applied: umavez.No, Err: err}
}

package memstore

import (
	"sync"
	"time"

	"github.com/umavez/umavez"
)

// shardCount is how many maps share the keys. IDs are hashes, so their first
// byte spreads them evenly; 64 keeps two callers on a machine of a few dozen
// cores apart most of the time, and lets a full store look through all shards
// in a few microseconds.
const shardCount = 64

// shard is a part of the keys under one mutex. A call on a key holds it for as
// long as Next takes, which is what makes calls on one key atomic.
type shard struct {
	mu        sync.Mutex
	rows      map[umavez.ID]*resident
	due       dueHeap
	unsettled unsettledList
	trails    trails
	// req is where a claim's request lies while Next reads it. Next takes it by
	// pointer; a pointer to the caller's own copy would move every claim's
	// request to the heap, also that of a claim which is only answered.
	req umavez.ClaimRequest
}

func (s *Store) shardOf(id umavez.ID) *shard { return &s.shards[id[0]%shardCount] }

// sweepRounds bounds what one call on a full store may purge before it is
// refused: sweepRounds × purgeChunk rows of each shard at most. The next call
// goes on where this one stopped.
const sweepRounds = 4

// apply runs one event on one key. req is the claim's request, or nil. When a
// new row is needed and the store is full, what is due goes first.
func (s *Store) apply(op string, id umavez.ID, ev umavez.Event, req *umavez.ClaimRequest) (umavez.Record, umavez.Effect, error) {
	var full error
	for range sweepRounds {
		rec, eff, err := s.try(id, ev, req)
		if err == nil {
			return rec, eff, nil
		}
		if full = err; s.sweep() == 0 {
			break
		}
	}
	return umavez.Record{}, umavez.Effect{}, failed(op, full)
}

// try runs one event on one key. It fails when it needs room that is not there,
// and then it has changed nothing. The clock is read under the lock, so that the
// instants that a key sees are in the order of its calls.
func (s *Store) try(id umavez.ID, ev umavez.Event, req *umavez.ClaimRequest) (umavez.Record, umavez.Effect, error) {
	sh := s.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := umavez.InstantOf(s.now())

	row := sh.rows[id].row()
	var bounded *scopeStripe
	if req != nil {
		sh.req = *req
		ev.Claim = &sh.req
		defer func() { sh.req = umavez.ClaimRequest{} }() // or its slices would live on
		if req.MaxUnsettled > 0 && row.State(now) == umavez.Vacant {
			// Whoever else claims for the scope waits until this claim is
			// counted, so that together they do not get beyond the bound.
			bounded = s.unsettled.stripe(req.Scope)
			bounded.mu.Lock()
			defer bounded.mu.Unlock()
			ev.Unsettled = bounded.counts[req.Scope]
		}
	}
	row, eff := umavez.Next(row, now, ev)
	if eff.Audit != nil && !s.mayAudit(eff.Audit) {
		return umavez.Record{}, umavez.Effect{}, ErrAuditFull
	}
	if eff.Write {
		if err := s.keep(sh, id, row, bounded); err != nil {
			return umavez.Record{}, umavez.Effect{}, err
		}
	}
	if eff.Audit != nil {
		sh.trails.add(id, now, *eff.Audit)
	}
	return row.Record(now), eff, nil
}

// keep writes a row, and counts it where it belongs. bounded is the stripe of
// its scope, if its mutex is held.
func (s *Store) keep(sh *shard, id umavez.ID, row umavez.Row, bounded *scopeStripe) error {
	held := sh.rows[id]
	if held == nil {
		if !s.reserve() {
			return ErrFull
		}
		held = newResident(id)
		sh.rows[id] = held
	}
	was, scope := held.unsettled(), held.scope
	held.set(row)
	sh.due.place(held)
	sh.unsettled.place(held)
	switch is := held.unsettled(); {
	case bounded != nil && is:
		bounded.add(row.Scope, 1)
	case is:
		s.unsettled.move(row.Scope, was, true)
	default:
		s.unsettled.move(scope, was, false)
	}
	return nil
}

// reserve takes one place among the records, if there is one.
func (s *Store) reserve() bool {
	if s.records.Add(1) <= s.max {
		return true
	}
	s.records.Add(-1)
	return false
}

// get looks at a key. The engine looks before it claims, so that most keys it
// looks at are ones that nobody has seen: those cost a look into the map.
func (sh *shard) get(id umavez.ID, clock func() time.Time) umavez.Record {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	held := sh.rows[id]
	if held == nil {
		return umavez.Record{}
	}
	return held.row().Record(umavez.InstantOf(clock()))
}

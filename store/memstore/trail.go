package memstore

import (
	"context"

	"github.com/umavez/umavez"
)

// DefaultMaxAudit is how many entries the audit trails of a store hold together
// when its options do not say: 500 settlements on each day of AuditKept. With
// names and reasons of 200 bytes they take 60 MB.
const DefaultMaxAudit = 200_000

// audited is an entry, and when it was made.
type audited struct {
	at    umavez.Instant
	entry umavez.AuditEntry // its Ago is not set
}

// trails are the audit trails of a shard's records, each with its oldest entry
// first. They outlive the records.
type trails struct {
	of map[umavez.ID][]audited
	// line names the records of all entries in the order in which they were
	// made, so that a purge finds the oldest without a search.
	line []umavez.ID
}

func (t *trails) add(id umavez.ID, now umavez.Instant, entry umavez.AuditEntry) {
	if t.of == nil {
		t.of = map[umavez.ID][]audited{}
	}
	t.of[id] = append(t.of[id], audited{now, entry})
	t.line = append(t.line, id)
}

// purge drops the oldest entry, if it is over.
func (t *trails) purge(now umavez.Instant) bool {
	if len(t.line) == 0 {
		return false
	}
	id := t.line[0]
	trail := t.of[id]
	if now < trail[0].at.Add(umavez.AuditKept) {
		return false
	}
	t.line = t.line[1:]
	if trail[0] = (audited{}); len(trail) > 1 {
		t.of[id] = trail[1:]
	} else {
		delete(t.of, id)
	}
	return true
}

// mayAudit takes one place among the entries, if there is one. What a
// contradicted owner said is kept in any case: a completion that is refused for
// want of room would be repeated for ever. It adds at most one entry to each
// settlement's.
func (s *Store) mayAudit(entry *umavez.AuditEntry) bool {
	if s.audited.Add(1) <= s.maxAudit || entry.Action == umavez.ActionContradicted {
		return true
	}
	s.audited.Add(-1)
	return false
}

// Trail implements [umavez.Settler].
func (s *Store) Trail(ctx context.Context, id umavez.ID) ([]umavez.AuditEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("trail", err)
	}
	sh := s.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := umavez.InstantOf(s.now())
	var trail []umavez.AuditEntry
	for _, a := range sh.trails.of[id] {
		a.entry.Ago = now.Sub(a.at)
		trail = append(trail, a.entry)
	}
	return trail, nil
}

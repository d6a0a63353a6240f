package memstore

import (
	"bytes"
	"context"
	"slices"

	"github.com/umavez/umavez"
)

// listChunk is how many rows are looked at under one hold of a shard's mutex,
// so that a claim in the same shard waits for a tenth of a millisecond at most.
const listChunk = 256

// page collects the records of a page: those with the smallest IDs after a
// given one. It never holds more than twice the page's.
type page struct {
	after umavez.ID
	limit int
	// below is the ID from which on records are not on the page. Set when full.
	below umavez.ID
	full  bool
	found []umavez.Listed
}

// takes reports whether a record with this ID could be on the page.
func (p *page) takes(id umavez.ID) bool {
	return bytes.Compare(id[:], p.after[:]) > 0 && (!p.full || bytes.Compare(id[:], p.below[:]) < 0)
}

func (p *page) add(id umavez.ID, rec umavez.Record) {
	if p.found = append(p.found, umavez.Listed{ID: id, Record: rec}); len(p.found) >= 2*p.limit {
		p.trim()
	}
}

// trim drops what is not on the page. A key that was purged and claimed again
// while the shard was walked through can be there twice.
func (p *page) trim() {
	slices.SortFunc(p.found, func(a, b umavez.Listed) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	p.found = slices.CompactFunc(p.found, func(a, b umavez.Listed) bool { return a.ID == b.ID })
	if len(p.found) >= p.limit {
		clear(p.found[p.limit:]) // or what they refer to would live on
		p.found = p.found[:p.limit]
		p.full, p.below = true, p.found[p.limit-1].ID
	}
}

// List implements [umavez.Lister]. A query that wants running and lost records
// alone looks at those alone; every other one looks at all records, some at a
// time.
func (s *Store) List(ctx context.Context, q umavez.Query) ([]umavez.Listed, error) {
	p := page{after: q.After, limit: q.Limit}
	look := func(r *resident, now umavez.Instant) {
		if !p.takes(r.id) {
			return
		}
		if rec := r.row().Record(now); q.Fits(&rec) {
			p.add(r.id, rec.Brief())
		}
	}
	if err := s.walk(ctx, "list", q.Unsettled(), look); err != nil {
		return nil, err
	}
	p.trim()
	return p.found, nil
}

// walk looks at all rows, or at all running and lost ones, each under its
// shard's mutex.
func (s *Store) walk(ctx context.Context, op string, unsettled bool, look func(*resident, umavez.Instant)) error {
	for i := range s.shards {
		walk := s.shards[i].walkAll
		if unsettled {
			walk = s.shards[i].walkUnsettled
		}
		if err := walk(ctx, s, look); err != nil {
			return failed(op, err)
		}
	}
	return nil
}

// walkAll gives the mutex up now and then in the midst of ranging over the map:
// the language allows it to change meanwhile, and yields every entry that stays.
func (sh *shard) walkAll(ctx context.Context, s *Store, look func(*resident, umavez.Instant)) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now, looked := umavez.InstantOf(s.now()), 0
	for _, r := range sh.rows {
		if looked++; looked%listChunk == 0 {
			sh.mu.Unlock()
			err := ctx.Err()
			sh.mu.Lock()
			if err != nil {
				return err
			}
			now = umavez.InstantOf(s.now())
		}
		look(r, now)
	}
	return ctx.Err()
}

// walkUnsettled goes through a copy of the list, which is one of pointers. A row that
// has left it meanwhile is no running or lost one any more.
func (sh *shard) walkUnsettled(ctx context.Context, s *Store, look func(*resident, umavez.Instant)) error {
	sh.mu.Lock()
	rows := slices.Clone(sh.unsettled)
	sh.mu.Unlock()
	for chunk := range slices.Chunk(rows, listChunk) {
		if err := ctx.Err(); err != nil {
			return err
		}
		sh.mu.Lock()
		now := umavez.InstantOf(s.now())
		for _, r := range chunk {
			look(r, now)
		}
		sh.mu.Unlock()
	}
	return ctx.Err()
}

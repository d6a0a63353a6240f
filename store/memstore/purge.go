package memstore

import (
	"context"

	"github.com/umavez/umavez"
)

// purgeChunk is how many rows are purged under one hold of a shard's mutex, so
// that a claim in the same shard waits for some microseconds at most.
const purgeChunk = 64

// Purge implements [umavez.Purger].
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	purged := 0
	for i := range s.shards {
		for purged < limit {
			if err := ctx.Err(); err != nil {
				return purged, failed("purge", err)
			}
			want := min(purgeChunk, limit-purged)
			got := s.purgeShard(&s.shards[i], want)
			purged += got
			if got < want {
				break
			}
		}
	}
	return purged, nil
}

// sweep makes room in a full store: it purges a chunk of each shard, and
// returns how many rows and entries it dropped or shortened. When nothing is due
// this is a look at the top of each heap.
func (s *Store) sweep() int {
	purged := 0
	for i := range s.shards {
		purged += s.purgeShard(&s.shards[i], purgeChunk)
	}
	return purged
}

// purgeShard purges at most limit rows and entries of a shard, the longest due first.
func (s *Store) purgeShard(sh *shard, limit int) int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := umavez.InstantOf(s.now())
	for purged := range limit {
		if sh.trails.purge(now) {
			s.audited.Add(-1)
			continue
		}
		held := sh.due.top(now)
		if held == nil {
			return purged
		}
		row, keep := held.row().Purge(now)
		if keep {
			held.set(row)
			sh.due.place(held)
			continue
		}
		sh.due.remove(held)
		delete(sh.rows, held.id)
		s.records.Add(-1)
	}
	return limit
}

package memstore

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/umavez/umavez"
)

// Rewrite implements [umavez.Rewriter]. No lock is held while rewrite is at
// work: a record that has changed meanwhile is handed to it again.
func (s *Store) Rewrite(ctx context.Context, after umavez.ID, limit int, rewrite func(umavez.ID, *umavez.Record) error) (umavez.ID, error) {
	p := page{after: after, limit: limit}
	look := func(r *resident, now umavez.Instant) {
		if p.takes(r.id) && r.row().State(now) != umavez.Vacant {
			p.add(r.id, umavez.Record{})
		}
	}
	if err := s.walk(ctx, "rewrite", false, look); err != nil {
		return after, err
	}
	p.trim()
	for _, found := range p.found {
		if err := ctx.Err(); err != nil {
			return after, failed("rewrite", err)
		}
		if err := s.rewriteOne(found.ID, rewrite); err != nil {
			return after, err
		}
		after = found.ID
	}
	if len(p.found) < limit {
		return umavez.ID{}, nil
	}
	return after, nil
}

func (s *Store) rewriteOne(id umavez.ID, rewrite func(umavez.ID, *umavez.Record) error) error {
	sh := s.shardOf(id)
	for {
		seen := sh.get(id, s.now)
		if seen.State == umavez.Vacant {
			return nil
		}
		anew := seen
		anew.Steps = slices.Clone(seen.Steps)
		if err := rewrite(id, &anew); err != nil {
			return err
		}
		if sh.replace(id, &seen, &anew, s.now) {
			return nil
		}
	}
}

// replace exchanges the bytes of a record, if they are those that were seen. The
// answer of an expired record is shown to nobody, and is left for the purge.
func (sh *shard) replace(id umavez.ID, seen, anew *umavez.Record, clock func() time.Time) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	held := sh.rows[id]
	row := held.row()
	rec := row.Record(umavez.InstantOf(clock()))
	if rec.State == umavez.Vacant {
		return true
	}
	same := bytes.Equal(rec.Answer, seen.Answer) && bytes.Equal(rec.Last, seen.Last) &&
		bytes.Equal(rec.Request, seen.Request) &&
		slices.EqualFunc(rec.Steps, seen.Steps, func(a, b umavez.KeptStep) bool {
			return a.Name == b.Name && bytes.Equal(a.Result, b.Result)
		})
	if !same {
		return false
	}
	if rec.State == umavez.Done {
		row.Answer = anew.Answer
	}
	row.Last, row.Request, row.Steps = anew.Last, anew.Request, anew.Steps
	held.set(row)
	sh.due.place(held)
	return true
}

// RewriteSettings implements [umavez.Rewriter].
func (s *Store) RewriteSettings(ctx context.Context, rewrite func(namespace string, settings *umavez.Settings) error) error {
	s.settingsMu.Lock()
	defer s.settingsMu.Unlock()
	for _, namespace := range slices.Sorted(maps.Keys(s.settings)) {
		if err := ctx.Err(); err != nil {
			return failed("rewrite-settings", err)
		}
		row := s.settings[namespace]
		anew := row.Settings
		if err := rewrite(namespace, &anew); err != nil {
			return err
		}
		row.HashKey = anew.HashKey
		s.settings[namespace] = row
	}
	return nil
}

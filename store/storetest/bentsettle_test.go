package storetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/umavez/umavez"
)

// bentSettling is what is wrong with settling, listing and rewriting. Every field
// that is not set means that this is right.
type bentSettling struct {
	// many changes how many unsettled records a scope is said to have; whose,
	// which rows count.
	many  func(n int) int
	whose func(row umavez.Row, scope umavez.ScopeID) bool
	// audit changes a trail when an entry was added, and recall when it is read.
	audit  func(trail []noted) []noted
	recall func(s *bent, id umavez.ID, trail []umavez.AuditEntry) []umavez.AuditEntry
	// trailOf folds the IDs under which trails are kept.
	trailOf func(umavez.ID) umavez.ID
	// stale says which entries a purge drops.
	stale func(n noted, now umavez.Instant) bool
	// fits replaces Query.Fits; page, how a page is made of what fits; brief,
	// Record.Brief.
	fits  func(q *umavez.Query, rec *umavez.Record) bool
	page  func(fitting []umavez.Listed, q umavez.Query) []umavez.Listed
	brief func(umavez.Record) umavez.Record
	// listOver is what a list answers whose context is over.
	listOver func() ([]umavez.Listed, error)
	// rewrites replaces the choice of what a rewriting hands out; rewrote, how
	// its result is kept; last, what is returned.
	rewrites func(ids []umavez.ID) []umavez.ID
	rewrote  func(row umavez.Row, rec *umavez.Record, err error) (umavez.Row, error)
	last     func(last umavez.ID, handed, limit int) umavez.ID
	// apart is called when a rewriting has read and not yet written, with the
	// lock given up.
	apart func(s *bent, id umavez.ID)
	// resettled replaces what a rewriting makes of settings.
	resettled func(was, anew umavez.Settings) umavez.Settings
}

var _ Settling = (*bent)(nil)

func (s *bent) Hold(ctx context.Context, id umavez.ID, fence umavez.Fence, holder umavez.AttemptID, d time.Duration) error {
	return s.change(ctx, "hold", id, umavez.Event{Kind: umavez.EventHold, Attempt: holder, Fence: fence, For: d})
}

func (s *bent) Settle(ctx context.Context, id umavez.ID, settlement umavez.Settlement) error {
	return s.change(ctx, "settle", id, settlement.Event())
}

func (s *bent) Trail(ctx context.Context, id umavez.ID) (trail []umavez.AuditEntry, err error) {
	err = s.call(ctx, "trail", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.clock()
		if s.trailOf != nil {
			id = s.trailOf(id)
		}
		for _, n := range s.trails[id] {
			n.entry.Ago = now.Sub(n.at)
			trail = append(trail, n.entry)
		}
		if s.recall != nil {
			trail = s.recall(s, id, trail)
		}
		return nil
	})
	return trail, err
}

// unsettled counts the running and lost rows of a scope.
func (s *bent) unsettled(scope umavez.ScopeID) (n int) {
	for _, row := range s.rows {
		counts := row.Phase == umavez.PhaseRunning && row.Scope == scope
		if s.whose != nil {
			counts = s.whose(row, scope)
		}
		if counts {
			n++
		}
	}
	if s.many != nil {
		n = s.many(n)
	}
	return n
}

func (s *bent) note(id umavez.ID, entry umavez.AuditEntry) {
	if s.trailOf != nil {
		id = s.trailOf(id)
	}
	s.trails[id] = append(s.trails[id], noted{s.clock(), entry})
	if s.audit != nil {
		s.trails[id] = s.audit(s.trails[id])
	}
}

// purgeTrails drops what is over, at most limit entries.
func (s *bent) purgeTrails(limit int) (dropped int) {
	stale := s.stale
	if stale == nil {
		stale = func(n noted, now umavez.Instant) bool { return now >= n.at.Add(umavez.AuditKept) }
	}
	for id, trail := range s.trails {
		s.trails[id] = slices.DeleteFunc(trail, func(n noted) bool {
			if dropped == limit || !stale(n, s.clock()) {
				return false
			}
			dropped++
			return true
		})
	}
	return dropped
}

func (s *bent) sorted() []umavez.ID {
	return slices.SortedFunc(maps.Keys(s.rows), func(a, b umavez.ID) int { return bytes.Compare(a[:], b[:]) })
}

func (s *bent) List(ctx context.Context, q umavez.Query) ([]umavez.Listed, error) {
	if ctx.Err() != nil && s.listOver != nil {
		return s.listOver()
	}
	var fitting []umavez.Listed
	err := s.call(ctx, "list", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		fits, brief := (*umavez.Query).Fits, umavez.Record.Brief
		if s.fits != nil {
			fits = s.fits
		}
		if s.brief != nil {
			brief = s.brief
		}
		for _, id := range s.sorted() {
			if rec := s.told(s.rows[id]); fits(&q, &rec) {
				fitting = append(fitting, umavez.Listed{ID: id, Record: brief(rec)})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.page != nil {
		return s.page(fitting, q), nil
	}
	return rightPage(fitting, q), nil
}

// rightPage is the page that a query wants of all that fits.
func rightPage(fitting []umavez.Listed, q umavez.Query) []umavez.Listed {
	from := slices.IndexFunc(fitting, func(l umavez.Listed) bool { return bytes.Compare(l.ID[:], q.After[:]) > 0 })
	if from < 0 {
		return nil
	}
	return fitting[from:min(from+q.Limit, len(fitting))]
}

func (s *bent) Rewrite(_ context.Context, after umavez.ID, limit int, rewrite func(umavez.ID, *umavez.Record) error) (last umavez.ID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.DeleteFunc(s.sorted(), func(id umavez.ID) bool {
		return bytes.Compare(id[:], after[:]) <= 0 || s.rows[id].State(s.clock()) == umavez.Vacant
	})
	if s.rewrites != nil {
		ids = s.rewrites(ids)
	}
	handed := ids[:min(limit, len(ids))]
	for _, id := range handed {
		if err := s.rewriteOne(id, rewrite); err != nil {
			return last, err
		}
		last = id
	}
	if len(ids) <= limit {
		last = umavez.ID{}
	}
	if s.last != nil {
		last = s.last(last, len(handed), limit)
	}
	return last, nil
}

func (s *bent) rewriteOne(id umavez.ID, rewrite func(umavez.ID, *umavez.Record) error) error {
	row := s.rows[id]
	rec := row.Record(s.clock())
	rec.Steps = slices.Clone(rec.Steps)
	err := rewrite(id, &rec)
	if s.apart != nil {
		s.mu.Unlock()
		s.apart(s, id)
		s.mu.Lock()
	}
	if s.rewrote != nil {
		row, err = s.rewrote(row, &rec, err)
		s.rows[id] = row
		return err
	}
	if err != nil {
		return err
	}
	if row.State(s.clock()) == umavez.Done {
		row.Answer = rec.Answer
	}
	row.Last, row.Request, row.Steps = rec.Last, rec.Request, rec.Steps
	s.rows[id] = row
	return nil
}

func (s *bent) RewriteSettings(_ context.Context, rewrite func(namespace string, settings *umavez.Settings) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, was := range s.settings {
		anew := was
		if err := rewrite(name, &anew); err != nil {
			return err
		}
		if s.resettled != nil {
			s.settings[name] = s.resettled(was, anew)
			continue
		}
		was.HashKey = anew.HashKey
		s.settings[name] = was
	}
	return nil
}

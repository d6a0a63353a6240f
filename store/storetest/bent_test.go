package storetest

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// bent is a store in memory with one thing wrong, or with nothing wrong when its
// bend is the zero value. Clients of the same data share a bentData.
type bent struct {
	*bentData
	bend
}

// bentData is what outlives a client. It has a clock that is moved by hand.
type bentData struct {
	mu       sync.Mutex
	rows     map[umavez.ID]umavez.Row
	settings map[string]umavez.Settings
	trails   map[umavez.ID][]noted
	passed   time.Duration
}

// noted is an entry of an audit trail, and when it was made.
type noted struct {
	at    umavez.Instant
	entry umavez.AuditEntry
}

// bend is what is wrong. Every field that is not set means that this is right.
type bend struct {
	bentSettling
	// next replaces umavez.Next.
	next func(row umavez.Row, now umavez.Instant, ev umavez.Event) (umavez.Row, umavez.Effect)
	// fold changes IDs before they are used.
	fold func(umavez.ID) umavez.ID
	// tell changes what the store tells of a row.
	tell func(rec umavez.Record, row umavez.Row) umavez.Record
	// keep changes what is written.
	keep func(row umavez.Row) umavez.Row
	// purge replaces Row.Purge; count, what Purge says that it did.
	purge func(row umavez.Row, now umavez.Instant) (umavez.Row, bool)
	count func(purged, limit int) int
	// now replaces the store's clock.
	now func() time.Time
	// between is called after a row was read and before it is written by an
	// event of a kind, with the lock given up.
	between func(id umavez.ID, kind umavez.EventKind)
	// then is called after an event was applied and the lock given up.
	then func(s *bent, id umavez.ID, ev umavez.Event)
	// over is what a call answers whose context is over, given what making the
	// call all the same comes to.
	over func(op string, do func() error) error
	// reopen changes the data when the store is opened again.
	reopen func(d *bentData)
	// peer changes what another client of the same data is.
	peer func(s *bent) umavez.Store
	// settle replaces the choice of what Settings keeps.
	settle func(kept umavez.Settings, found bool, propose umavez.Settings) umavez.Settings
	// space folds the names of namespaces.
	space func(string) string
	// accept replaces what AcceptRecipe makes of a row.
	accept func(kept umavez.Settings, found bool, recipe string) (umavez.Settings, error)
}

// noEvent is the kind of a call that is no event of a key.
const noEvent umavez.EventKind = 255

func newBent(b bend) *bent {
	return &bent{&bentData{
		rows: map[umavez.ID]umavez.Row{}, settings: map[string]umavez.Settings{}, trails: map[umavez.ID][]noted{},
	}, b}
}

// open returns the store with all that a Config can offer.
func (b bend) open(*testing.T) Opened {
	s := newBent(b)
	return Opened{
		Store: s,
		Peer: func(*testing.T) umavez.Store {
			if b.peer != nil {
				return b.peer(s)
			}
			return &bent{s.bentData, b}
		},
		Reopen: func(*testing.T) umavez.Store {
			if b.reopen != nil {
				b.reopen(s.bentData)
			}
			return &bent{s.bentData, b}
		},
		Advance: func(d time.Duration) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.passed += d
		},
	}
}

// openByRealTime returns the store by the machine's clock, with nothing else.
func (b bend) openByRealTime(*testing.T) Opened {
	b.now = time.Now
	return Opened{Store: newBent(b)}
}

func (s *bent) clock() umavez.Instant {
	if s.now != nil {
		return umavez.InstantOf(s.now())
	}
	return umavez.InstantOf(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC).Add(s.passed))
}

// apply runs an event on a key under the lock.
func (s *bent) apply(id umavez.ID, ev umavez.Event) (umavez.Record, umavez.Effect) {
	if s.then != nil {
		defer s.then(s, id, ev) // after the lock, which is given up first
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fold != nil {
		id = s.fold(id)
	}
	row := s.rows[id]
	if ev.Kind == umavez.EventClaim && ev.Claim.MaxUnsettled > 0 {
		ev.Unsettled = s.unsettled(ev.Claim.Scope)
	}
	if s.between != nil {
		s.mu.Unlock()
		s.between(id, ev.Kind)
		s.mu.Lock()
	}
	next := umavez.Next
	if s.next != nil {
		next = s.next
	}
	row, eff := next(row, s.clock(), ev)
	if eff.Write {
		if s.keep != nil {
			row = s.keep(row)
		}
		s.rows[id] = row
	}
	if eff.Audit != nil {
		s.note(id, *eff.Audit)
	}
	return s.told(row), eff
}

func (s *bent) told(row umavez.Row) umavez.Record {
	rec := row.Record(s.clock())
	if s.tell != nil {
		rec = s.tell(rec, row)
	}
	return rec
}

// call makes a call, unless its context is over.
func (s *bent) call(ctx context.Context, op string, do func() error) error {
	if err := ctx.Err(); err != nil {
		if s.over != nil {
			return s.over(op, do)
		}
		return &umavez.StoreError{Op: op, Applied: umavez.No, Err: err}
	}
	return do()
}

func (s *bent) change(ctx context.Context, op string, id umavez.ID, ev umavez.Event) error {
	return s.call(ctx, op, func() error {
		_, eff := s.apply(id, ev)
		return eff.Err
	})
}

func (s *bent) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (rec umavez.Record, acquired bool, err error) {
	err = s.call(ctx, "claim", func() error {
		var eff umavez.Effect
		rec, eff = s.apply(id, umavez.Event{Kind: umavez.EventClaim, Attempt: req.Attempt, Claim: &req})
		acquired = eff.Acquired
		return eff.Err
	})
	return rec, acquired, err
}

func (s *bent) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.change(ctx, "checkpoint", l.ID, umavez.Event{Kind: umavez.EventCheckpoint, Attempt: l.Attempt, Step: step, Payload: result})
}

func (s *bent) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.change(ctx, "complete", l.ID, umavez.Event{Kind: umavez.EventComplete, Attempt: l.Attempt, Payload: answer, Keep: keep})
}

func (s *bent) Release(ctx context.Context, l umavez.Lease) error {
	return s.change(ctx, "release", l.ID, umavez.Event{Kind: umavez.EventRelease, Attempt: l.Attempt})
}

func (s *bent) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	return s.change(ctx, "abandon", l.ID, umavez.Event{Kind: umavez.EventAbandon, Attempt: l.Attempt, Reason: reason, Payload: last})
}

func (s *bent) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.change(ctx, "extend", l.ID, umavez.Event{Kind: umavez.EventExtend, Attempt: l.Attempt, For: d})
}

func (s *bent) Get(ctx context.Context, id umavez.ID) (rec umavez.Record, err error) {
	err = s.call(ctx, "get", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fold != nil {
			id = s.fold(id)
		}
		rec = s.told(s.rows[id])
		return nil
	})
	return rec, err
}

func (s *bent) Purge(_ context.Context, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	purge := umavez.Row.Purge
	if s.purge != nil {
		purge = s.purge
	}
	purged := 0
	for id, row := range maps.Clone(s.rows) {
		if purged == limit {
			break
		}
		next, keep := purge(row, s.clock())
		switch {
		case !keep:
			delete(s.rows, id)
			purged++
		case len(next.Answer) != len(row.Answer):
			s.rows[id] = next
			purged++
		}
	}
	purged += s.purgeTrails(limit - purged)
	if s.count != nil {
		purged = s.count(purged, limit)
	}
	return purged, nil
}

func (s *bent) Settings(_ context.Context, namespace string, propose umavez.Settings) (umavez.Settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.space != nil {
		namespace = s.space(namespace)
	}
	kept, found := s.settings[namespace]
	if s.between != nil {
		s.mu.Unlock()
		s.between(umavez.Key{Name: namespace}.ID(), noEvent)
		s.mu.Lock()
	}
	switch {
	case s.settle != nil:
		kept = s.settle(kept, found, propose)
	case !found:
		kept = propose
	}
	s.settings[namespace] = kept
	return kept, nil
}

func (s *bent) AcceptRecipe(_ context.Context, namespace, recipe, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, found := s.settings[namespace]
	if s.accept != nil {
		kept, err := s.accept(kept, found, recipe)
		s.settings[namespace] = kept
		return err
	}
	if !found {
		return &umavez.StoreError{Op: "accept-recipe", Applied: umavez.No, Err: errors.New("no such namespace")}
	}
	kept.Recipe = recipe
	s.settings[namespace] = kept
	return nil
}

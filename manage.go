package umavez

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// This file is what operators, their console and their command line do with
// records: look, and settle.

// ErrNotOffered: the store cannot do this.
var ErrNotOffered = errors.New("umavez: the store does not offer this")

// List returns a page of the store's records.
func (e *Engine) List(ctx context.Context, q Query) ([]Listed, error) {
	lister, ok := e.base.(Lister)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: listing records", ErrNotOffered)
	case q.Limit < 1 || q.Limit > MaxPage:
		return nil, errorf("Query.Limit is %d; a page has 1 to %d records", q.Limit, MaxPage)
	}
	return lister.List(ctx, q)
}

// Inspect returns all that the store knows of a record: what it holds, and its
// audit trail. Of a key that nobody holds the trail alone may be left.
func (e *Engine) Inspect(ctx context.Context, id ID) (Record, []AuditEntry, error) {
	rec, err := e.store.Get(ctx, id)
	if err != nil && !errors.Is(err, ErrUnreadable) { // rec.Unreadable says it
		return Record{}, nil, err
	}
	settler, ok := e.base.(Settler)
	if !ok {
		return rec, nil, nil
	}
	trail, err := settler.Trail(ctx, id)
	return rec, trail, err
}

// Settle applies a settlement, and repeats it until the store has answered, for
// at most SaveTimeout. An ID that is zero is drawn. A Keep that is zero is the
// engine's own, for the record's policy.
func (e *Engine) Settle(ctx context.Context, id ID, s Settlement) error {
	if _, ok := e.base.(Settler); !ok {
		return fmt.Errorf("%w: settling records", ErrNotOffered)
	}
	if err := s.check(); err != nil {
		return err
	}
	if s.ID == (AttemptID{}) {
		s.ID = NewAttemptID()
	}
	rec, err := e.base.Get(ctx, id) // what it holds does not matter, nor whether it opens
	if err != nil {
		return err
	}
	now := e.clock()
	e.leaps.look(now, e.opt.Lease)
	if s.Action == ActionCannotHappen && e.leaps.calm(now) < s.Quiet {
		return ErrNotQuiet // the store's clock has leapt, as this process's has
	}
	if s.Keep == (Retention{}) {
		s.Keep = e.opt.retention(&Operation{Policy: rec.Policy})
	}
	if s.Action == ActionForget && s.Keep.Tombstone <= 0 {
		s.Keep.Tombstone = DefaultTombstone
	}
	//nolint:contextcheck // what was sent is repeated, also when its caller has left
	err = e.repeat(func(ctx context.Context) error { return e.store.(Settler).Settle(ctx, id, s) })
	e.tell(MomentSettled, id, rec.Route, rec.Policy, Observation{Fence: s.Fence, Reason: rec.Reason, Err: err})
	return err
}

// check refuses a settlement that no record could take.
func (s *Settlement) check() error {
	switch {
	case !plainText(s.Who) || !plainText(s.Why):
		return errorf("Settlement.Who and Why are text in UTF-8, without NUL")
	case s.Who == "" || len(s.Who) > MaxWho:
		return errorf("Settlement.Who has %d bytes; the audit trail needs 1 to %d", len(s.Who), MaxWho)
	case s.Why == "" || len(s.Why) > MaxWhy:
		return errorf("Settlement.Why has %d bytes; the audit trail needs 1 to %d", len(s.Why), MaxWhy)
	case s.Fence == 0:
		return errorf("Settlement.Fence is missing: it says which attempt was looked at")
	case s.Quiet < 0:
		return errorf("Settlement.Quiet is negative: %v", s.Quiet)
	case s.Keep.Retain < 0 || s.Keep.Tombstone < 0:
		return errorf("Settlement.Keep is negative: %v, %v", s.Keep.Retain, s.Keep.Tombstone)
	}
	switch s.Action {
	case ActionHappened:
		switch {
		case s.Answer == nil:
			return errorf("Settlement.Answer is missing: it is what every attempt gets from now on")
		case s.Keep.Retain == 0 && s.Keep.Tombstone > 0:
			return errorf("Settlement.Keep.Retain is missing: nobody would get the answer")
		}
	case ActionCannotHappen, ActionPark, ActionForget:
		if s.Answer != nil {
			return errorf("Settlement.Answer goes with %q only, not with %q", ActionHappened, s.Action)
		}
	default:
		return errorf("Settlement.Action is unknown: %q", string(s.Action))
	}
	return nil
}

// plainText: stores keep it in a column of text.
func plainText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// plain makes text of at most so many bytes that any store takes.
func plain(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	return strings.ToValidUTF8(s[:min(len(s), most)], "") // not in the middle of a rune
}

// DefaultQuiet is how long after a loss it is too early to say that nothing can
// happen any more, unless the engine's MaxRun is long.
const DefaultQuiet = 10 * time.Minute

// OnTheWire is the longest that a foreign system is taken to hold a request before
// it acts on it.
const OnTheWire = 5 * time.Minute

// Quiet is the engine's default for [Settlement].Quiet: an owner that lost its
// lease may send until MaxRun, and what it sends may arrive OnTheWire later.
func (e *Engine) Quiet() time.Duration { return max(DefaultQuiet, e.opt.MaxRun+OnTheWire) }

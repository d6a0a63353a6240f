package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/groupcommit"
	"github.com/umavez/umavez/store/sqlitestore/internal/startlog"
)

// Store keeps records in one SQLite file. Make one with [Open], and end it with
// Close. It is safe for concurrent use, and so are two of them on one file, in
// one process or in several.
type Store struct {
	opt     Options
	readers *readers
	writer  *writer
	starts  *startlog.Log
	batches *groupcommit.Batcher[*op]

	closing  sync.Once
	closeErr error
}

var (
	_ umavez.Store          = (*Store)(nil)
	_ umavez.Purger         = (*Store)(nil)
	_ umavez.SettingsKeeper = (*Store)(nil)
	_ umavez.StartMarker    = (*Store)(nil)
	_ umavez.Settler        = (*Store)(nil)
	_ umavez.Lister         = (*Store)(nil)
	_ umavez.Rewriter       = (*Store)(nil)
)

var (
	errClosed      = errors.New("umavez: sqlite: the store is closed")
	errNoNamespace = errors.New("umavez: sqlite: the namespace has no settings yet")
)

// Claim implements [umavez.Store]. A key that is done may be answered by a
// reader, everything else is the writer's to say.
//
// While the writer is at work a claim would have to wait for it, and looks with
// a reader meanwhile: replays do not queue behind syncs. When the writer is idle
// the look would only cost time, since most keys are new. When it fails, for a
// full disk or another process that does not let go of the file, done keys are
// answered all the same.
func (s *Store) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	o := newClaim(id, req)
	if !s.batches.Idle() {
		rec, there := s.look(ctx, o.ev, id)
		if rec.State != umavez.Vacant {
			return rec, false, nil
		}
		o.absent = o.absent && !there
	}
	err := s.batches.Do(ctx, o)
	if err == nil && o.foreign && s.sweep(ctx) {
		o = newClaim(id, req)
		err = s.batches.Do(ctx, o)
	}
	if err == nil || errors.Is(err, umavez.ErrTooManyUnsettled) {
		return o.rec, o.acquired, err
	}
	if ctx.Err() == nil {
		if rec, _ := s.look(ctx, o.ev, id); rec.State != umavez.Vacant {
			return rec, false, nil
		}
	}
	return umavez.Record{}, false, err
}

// look asks a reader about a key that is to be claimed. It returns the record
// of one that is done or expired, and whether there is a row at all.
//
// A done row never changes until its tombstone ends, so that what it says is
// true at the instant when it is compared with the clock, after the read. Any
// other state may be past already, and so may there not being a row. A failure
// to read is not the claim's: the writer will see.
func (s *Store) look(ctx context.Context, ev umavez.Event, id umavez.ID) (rec umavez.Record, there bool) {
	_ = s.readers.do(ctx, func(c *conn) error {
		phase, found, err := c.phase(id)
		there = found
		if err != nil || phase != umavez.PhaseDone {
			return err
		}
		row, _, err := c.row(id)
		if err != nil {
			return err
		}
		now := s.now()
		switch row.State(now) {
		case umavez.Done, umavez.Expired:
			if row, eff := umavez.Next(row, now, ev); !eff.Write {
				rec = row.Record(now)
			}
		}
		return nil
	})
	return rec, there
}

// Checkpoint implements [umavez.Store].
func (s *Store) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.write(ctx, "checkpoint", l, umavez.Event{Kind: umavez.EventCheckpoint, Step: step, Payload: result})
}

// Complete implements [umavez.Store].
func (s *Store) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	err := s.write(ctx, "complete", l, umavez.Event{Kind: umavez.EventComplete, Payload: answer, Keep: keep})
	if err == nil || errors.Is(err, umavez.ErrLeaseLost) {
		s.starts.Ended(l.Attempt)
	}
	return err
}

// Release implements [umavez.Store].
func (s *Store) Release(ctx context.Context, l umavez.Lease) error {
	err := s.write(ctx, "release", l, umavez.Event{Kind: umavez.EventRelease})
	// ErrLeaseLost may come of an abandoned record, which is still there;
	// ErrContradicted, which it is too, of a settled one, which is not.
	if err == nil || errors.Is(err, umavez.ErrContradicted) {
		s.starts.Ended(l.Attempt)
	}
	return err
}

// Abandon implements [umavez.Store].
func (s *Store) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	err := s.write(ctx, "abandon", l, umavez.Event{Kind: umavez.EventAbandon, Reason: reason, Payload: last})
	// Nobody asks any more whether it had started: the row has no owner now, or
	// it was taken over or settled.
	if err == nil || errors.Is(err, umavez.ErrLeaseLost) {
		s.starts.Ended(l.Attempt)
	}
	return err
}

// Extend implements [umavez.Store].
func (s *Store) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.write(ctx, "extend", l, umavez.Event{Kind: umavez.EventExtend, For: d})
}

func (s *Store) write(ctx context.Context, name string, l umavez.Lease, ev umavez.Event) error {
	ev.Attempt = l.Attempt
	return s.batches.Do(ctx, &op{name: name, id: l.ID, ev: ev})
}

// Get implements [umavez.Store].
func (s *Store) Get(ctx context.Context, id umavez.ID) (umavez.Record, error) {
	var rec umavez.Record
	err := s.readers.do(ctx, func(c *conn) error {
		row, _, err := c.row(id)
		rec = row.Record(s.now())
		return err
	})
	if err != nil {
		return umavez.Record{}, notApplied("get", err)
	}
	return rec, nil
}

func (s *Store) now() umavez.Instant { return umavez.InstantOf(s.opt.Now()) }

// closeWait is how long Close waits for a disk that does not answer.
const closeWait = 10 * time.Second

// Close takes no new calls, waits for those under way, and closes the file;
// what is the last process on it also empties the write-ahead log. What was
// claimed and had not started is released. Calls after it fail, and nothing is
// applied. When the disk has not answered for 10 s, Close returns an error and
// leaves the file open.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if err := s.batches.Close(ctx); err != nil {
		return fmt.Errorf("umavez: sqlite: close: writes are still under way: %w", err)
	}
	err := s.starts.Close() // from here on nothing starts
	if err == nil {
		// Its own log is a dead one's now. A failure is no harm: it stays for
		// whoever opens the file next.
		_ = s.sweepBy(s.writer.do(ctx))
	}
	err = errors.Join(err, s.readers.close())
	if s.writer.c != nil {
		err = errors.Join(err, s.writer.c.close())
		s.writer.c = nil
	}
	return err
}

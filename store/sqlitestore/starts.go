package sqlitestore

import (
	"context"
	"errors"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/sqlitestore/internal/startlog"
)

// A process that dies between a claim and the start of its operation leaves a
// running record whose operation never ran. The start log tells it from one
// that did run: see package startlog. A record names the log of its owner while
// it runs; who meets it lost, or opens the file, looks whether that owner is
// dead, and releases what it had claimed and not started.

// Started implements [umavez.StartMarker].
func (s *Store) Started(l umavez.Lease) error { return s.starts.Started(l.Attempt) }

// sweep releases what dead processes had claimed and not started. It reports
// whether there was one: then a key that was lost may be vacant now. A failure
// changes nothing, and the next one to meet such a record tries again.
func (s *Store) sweep(ctx context.Context) (any bool) {
	err := s.sweepBy(func(task *op) error {
		any = true
		return s.batches.Do(ctx, task)
	})
	return any && err == nil
}

// sweepBy runs a task for each dead owner.
func (s *Store) sweepBy(run func(*op) error) error {
	return startlog.Sweep(s.writer.path, func(dead *startlog.Dead) error {
		return run(newTask("sweep", func(t *tx) error { return t.sweep(dead) }))
	})
}

// do runs one task as a batch, where the batcher is not there, or closed.
func (w *writer) do(ctx context.Context) func(*op) error {
	return func(task *op) error {
		errs := make([]error, 1)
		err := w.flush(ctx, []*op{task}, errs)
		return errors.Join(err, errs[0])
	}
}

// sweep releases each record that a dead owner claimed and did not start. What
// it started, or abandoned, stays as it is; nobody need ask about it again.
func (t *tx) sweep(dead *startlog.Dead) error {
	var unstarted []found
	t.c.bind(0, dead.Owner[:])
	err := t.c.rows(stOwned, 1, func(f found, err error) {
		if err == nil && dead.NeverStarted(f.row.Attempt) {
			unstarted = append(unstarted, f)
		}
	})
	if err != nil {
		return err
	}
	for _, f := range unstarted {
		row, eff := umavez.Next(f.row, t.now, umavez.Event{Kind: umavez.EventRelease, Attempt: f.row.Attempt})
		if !eff.Write {
			continue // it was abandoned, so it had started; or it holds a step or follows a lost attempt, and stays lost
		}
		f.row, f.owner = row, nil
		t.wrote = true
		if err := t.update(&group{ops: []*op{{id: umavez.ID(f.id)}}, found: f}, false); err != nil {
			return err
		}
	}
	t.c.bind(0, dead.Owner[:])
	n, err := t.c.exec(stDisown, 1)
	t.wrote = t.wrote || n > 0
	return err
}

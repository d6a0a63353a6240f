package sqlitestore

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/umavez/umavez"
)

// rewriteRows and rewriteBytes bound what is read, and then written in one
// transaction: claims wait behind it.
const (
	rewriteRows  = 64
	rewriteBytes = 1 << 20
)

// rewriteTries bounds how often a record is rewritten that its owner writes to
// at the same time: it has few calls to make.
const rewriteTries = 20

// Rewrite implements [umavez.Rewriter]. It looks at 64 records at most at a time.
//
// The rewrite function is called outside any transaction, by the caller's own
// goroutine: a slow one keeps nobody waiting. What it returns is written if the
// record's bytes are still those that it was given; else it is called again with
// what is there now. A record that cannot be read or rewritten is left as it is
// and named by the error, which then comes with the last ID: the next call can go
// on after it.
func (s *Store) Rewrite(
	ctx context.Context, after umavez.ID, limit int, rewrite func(umavez.ID, *umavez.Record) error,
) (last umavez.ID, err error) {
	limit = min(limit, rewriteRows)
	read, more, err := s.readFrom(ctx, after, limit)
	if err != nil {
		return umavez.ID{}, notApplied("rewrite", err)
	}
	var failed []error
	for todo, try := read, 0; len(todo) > 0; try++ {
		if try == rewriteTries {
			return umavez.ID{}, notApplied("rewrite", fmt.Errorf("record %v does not stand still", todo[0].id))
		}
		changes, errs := rewritten(todo, s.now(), rewrite)
		failed = append(failed, errs...)
		if todo, err = s.writeBytes(ctx, changes); err != nil {
			return umavez.ID{}, err
		}
	}
	if more {
		last = read[len(read)-1].id
	}
	return last, errors.Join(failed...)
}

// readRow is a record to be rewritten, as it was read.
type readRow struct {
	id  umavez.ID
	row umavez.Row
	err error
}

// readFrom reads the next records: limit of them at most, and fewer if they are
// large. more: there may be others behind them.
func (s *Store) readFrom(ctx context.Context, after umavez.ID, limit int) (read []readRow, more bool, err error) {
	err = s.readers.do(ctx, func(c *conn) error {
		read, more = nil, false
		size := 0
		c.bind(0, after[:], int64(limit))
		err := c.rowsUntil(stFrom, 2, func(f found, err error) bool {
			read = append(read, readRow{umavez.ID(f.id), f.row, err})
			size += payload(&f.row)
			more = len(read) == limit || size >= rewriteBytes
			return !more
		})
		return err
	})
	return read, more, err
}

func payload(row *umavez.Row) int {
	n := len(row.Answer) + len(row.Last) + len(row.Request)
	for _, step := range row.Steps {
		n += len(step.Result)
	}
	return n
}

// change is a record's bytes before and after.
type change struct {
	id       umavez.ID
	from, to umavez.Row
}

// rewritten calls rewrite for each record that was read, and returns what has
// changed.
func rewritten(
	read []readRow, now umavez.Instant, rewrite func(umavez.ID, *umavez.Record) error,
) (changes []change, errs []error) {
	for _, r := range read {
		err := r.err
		to := r.row
		if err == nil {
			rec := r.row.Record(now)
			if rec.State == umavez.Vacant && payload(&r.row) == 0 {
				continue // there is no record
			}
			// Whatever the record's state is: an answer that is over, and not
			// purged yet, is in the file all the same.
			rec.Fence, rec.Answer, rec.Last, rec.Request = r.row.Fence, r.row.Answer, r.row.Last, r.row.Request
			rec.Steps = append([]umavez.KeptStep(nil), r.row.Steps...)
			err = rewrite(r.id, &rec)
			to.Answer, to.Last, to.Request, to.Steps = rec.Answer, rec.Last, rec.Request, rec.Steps
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("umavez: sqlite: record %v is left as it is: %w", r.id, err))
		case !sameBytes(&r.row, &to):
			changes = append(changes, change{r.id, r.row, to})
		}
	}
	return changes, errs
}

func sameBytes(a, b *umavez.Row) bool {
	return bytes.Equal(a.Answer, b.Answer) && bytes.Equal(a.Last, b.Last) && bytes.Equal(a.Request, b.Request) &&
		bytes.Equal(encodeSteps(a.Steps), encodeSteps(b.Steps))
}

// writeBytes writes the changes, and returns the records that have changed
// meanwhile as they are now.
func (s *Store) writeBytes(ctx context.Context, changes []change) ([]readRow, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	// The task may outlive this call; it writes into a variable of its own.
	moved := new([]readRow)
	err := s.batches.Do(ctx, newTask("rewrite", func(t *tx) error {
		for i := range changes {
			if err := t.rewrite(&changes[i], moved); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return *moved, nil
}

func (t *tx) rewrite(ch *change, moved *[]readRow) error {
	t.c.bind(0, stepsValue(&ch.to), blob(ch.to.Answer), blob(ch.to.Last), blob(ch.to.Request), ch.id[:],
		stepsValue(&ch.from), blob(ch.from.Answer), blob(ch.from.Last), blob(ch.from.Request))
	n, err := t.c.exec(stRewrite, 9)
	if err != nil {
		return err
	}
	if n == 1 {
		t.wrote = true
		return nil
	}
	row, there, err := t.c.row(ch.id)
	if there {
		*moved = append(*moved, readRow{ch.id, row, err})
		err = nil // it comes back with the record
	}
	return err
}

// RewriteSettings implements [umavez.Rewriter]. An error of rewrite ends it.
func (s *Store) RewriteSettings(ctx context.Context, rewrite func(namespace string, s *umavez.Settings) error) error {
	var all []namedSettings
	err := s.readers.do(ctx, func(c *conn) error {
		all = nil
		return c.query(stNamespaces, 0, func(v []driver.Value) error {
			sc := scanner{values: v}
			name := string(sc.blob())
			kept, err := settingsOf(&sc, name)
			all = append(all, namedSettings{name, kept})
			return err
		})
	})
	if err != nil {
		return notApplied("rewrite-settings", err)
	}
	for _, n := range all {
		was := n.HashKey
		if err := rewrite(n.name, &n.Settings); err != nil {
			return err
		}
		if n.HashKey == was {
			continue
		}
		if err := s.writeHashKey(ctx, n.name, was, n.HashKey); err != nil {
			return err
		}
	}
	return nil
}

type namedSettings struct {
	name string
	umavez.Settings
}

// writeHashKey replaces a hash key, if it is still what it was: else somebody
// has rewritten it meanwhile.
func (s *Store) writeHashKey(ctx context.Context, namespace, was, is string) error {
	return s.batches.Do(ctx, newTask("rewrite-settings", func(t *tx) error {
		t.c.bind(0, []byte(is), []byte(namespace), []byte(was))
		n, err := t.c.exec(stRewriteSettings, 3)
		if err == nil && n != 1 {
			err = fmt.Errorf("umavez: sqlite: the hash key of namespace %q has changed meanwhile", namespace)
		}
		t.wrote = t.wrote || n > 0
		return err
	}))
}

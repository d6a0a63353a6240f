package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/umavez/umavez/internal/groupcommit"
	"github.com/umavez/umavez/store/sqlitestore/internal/startlog"
)

// Open opens the file at path, makes it and its schema if they are not there,
// and checks what the promise rests on. The path is that of a file, taken as it
// stands: a "?" or "%" in it means itself. Its directory must exist.
//
// Errors wrap [ErrPath], [ErrReadOnly], [ErrSetting], [ErrSchemaDrift] or
// [ErrSchemaNewer], or are a [*RiskError].
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if path, err = locate(path, o); err != nil {
		return nil, err
	}
	c, err := dial(ctx, path, o, writing)
	if err != nil {
		return nil, err
	}
	err = untilNotBusy(ctx.Done(), o.BusyTimeout, func() error { return c.prepareFile(o) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (in %q)", err, path), c.close())
	}
	w := &writer{path: path, opt: o, c: c}
	if w.file, err = os.Stat(path); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrPath, err), c.close())
	}
	starts, err := startlog.Open(path)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	w.tx.owner = starts.Owner()
	s := &Store{opt: o, readers: newReaders(path, o), writer: w, starts: starts}
	s.batches = groupcommit.New(groupcommit.Config[*op]{Flush: s.writer.flush, MaxTime: o.batchTime})
	if err := s.sweepBy(s.writer.do(ctx)); err != nil && !isBusy(err) {
		// Busy: whoever meets such a record will see to it.
		return nil, errors.Join(fmt.Errorf("umavez: sqlite: release what dead processes had not started: %w", err), s.Close())
	}
	return s, nil
}

// prepareFile checks the library and the file, and migrates it. It may be
// repeated: another process may be recovering the log, or migrating.
func (c *conn) prepareFile(o Options) error {
	if err := c.checkVersion(o); err != nil {
		return err
	}
	if err := c.migrate(o.Now(), o.BusyTimeout); err != nil {
		return err
	}
	if err := c.checkSchema(); err != nil {
		return err
	}
	return c.checkIntegrity()
}

package sqlitestore

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/sqlitestore/internal/startlog"
)

// found is a row as it was read.
type found struct {
	rowid int64
	id    []byte
	owner []byte // nil: none
	row   umavez.Row
}

// foreign reports whether the row was another process's: it has an owner, and
// that is not this one.
func (f *found) foreign(own startlog.Owner) bool {
	return f.owner != nil && !bytes.Equal(f.owner, own[:])
}

// selectRows reads the rows of at most 256 ids and hands on each that is there.
func (c *conn) selectRows(ids []*umavez.ID, each func(found, error)) error {
	if len(ids) == 0 {
		return nil
	}
	st, n := selectFor(len(ids))
	for i := range n {
		var v driver.Value // NULL
		if i < len(ids) {
			v = ids[i][:]
		}
		c.args[i].Value = v
	}
	return c.rows(st, n, each)
}

// rows runs a statement that gives whole rows. The error of one that cannot be
// read goes to each, with what it is called.
func (c *conn) rows(st statement, n int, each func(found, error)) error {
	return c.rowsUntil(st, n, func(f found, err error) bool { each(f, err); return true })
}

// rowsUntil is rows for a caller that may have enough before the end.
func (c *conn) rowsUntil(st statement, n int, each func(found, error) bool) error {
	err := c.query(st, n, func(v []driver.Value) (err error) {
		s := scanner{values: v}
		f := found{rowid: s.integer(), id: s.blob(), owner: s.blob()}
		if len(f.id) != len(umavez.ID{}) {
			s.note(fmt.Errorf("an id of %d bytes", len(f.id)))
		}
		if s.err != nil {
			return fmt.Errorf("%w: %w", errDamaged, s.err)
		}
		f.row, err = decode(v[s.next:])
		if !each(f, err) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}

// errEnough ends a statement whose further rows are not wanted.
var errEnough = errors.New("umavez: sqlite: enough rows")

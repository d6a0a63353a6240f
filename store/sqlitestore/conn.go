package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one connection with its prepared statements. It speaks to the driver
// without database/sql between them: a store has one writer and a few readers,
// each used by one goroutine at a time, and a pool's locks, conversions and
// checks would cost as much as the statements.
//
// No context reaches the driver: watching one costs a goroutine for each
// statement, and interrupts the connection. What may wait is bounded by other
// means.
type conn struct {
	dc   driver.Conn
	prep [statements]driver.Stmt
	args []driver.NamedValue // scratch, with its ordinals filled in
	dest []driver.Value      // scratch
}

// dial opens a connection with its settings.
func dial(ctx context.Context, path string, o Options, role role) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		return nil, err
	}
	dc, err := connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("umavez: sqlite: open %q: %w", path, err)
	}
	if ro, ok := dc.(interface{ IsReadOnly(string) (bool, error) }); ok {
		// SQLite opens a file that it may not write read-only, and says nothing.
		if is, err := ro.IsReadOnly("main"); err == nil && is {
			return nil, errors.Join(fmt.Errorf("%w: %q", ErrReadOnly, path), dc.Close())
		}
	}
	if o.wrap != nil {
		dc = o.wrap(dc)
	}
	c := newConn(dc)
	if err := c.configure(role, o); err != nil {
		return nil, errors.Join(fmt.Errorf("umavez: sqlite: open %q: %w", path, err), c.close())
	}
	return c, nil
}

func newConn(dc driver.Conn) *conn {
	c := &conn{dc: dc, args: make([]driver.NamedValue, 256), dest: make([]driver.Value, columnCount+3)}
	for i := range c.args {
		c.args[i].Ordinal = i + 1
	}
	return c
}

// close ends the connection, and with it a transaction that may be open. Its
// statements come first: with one left, SQLite would keep the connection, and
// its locks, alive.
func (c *conn) close() error {
	var errs []error
	for i, s := range c.prep {
		if s != nil {
			errs = append(errs, s.Close())
			c.prep[i] = nil
		}
	}
	return errors.Join(append(errs, c.dc.Close())...)
}

// bind puts the arguments of the next statement into place, from the nth on.
func (c *conn) bind(from int, values ...driver.Value) {
	for i, v := range values {
		c.args[from+i].Value = v
	}
}

func (c *conn) prepared(id statement) (driver.Stmt, error) {
	if s := c.prep[id]; s != nil {
		return s, nil
	}
	s, err := c.dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), texts[id])
	if err != nil {
		return nil, err
	}
	c.prep[id] = s
	return s, nil
}

// exec runs a statement with the first n bound arguments and returns how many
// rows it changed.
func (c *conn) exec(id statement, n int) (int64, error) {
	res, err := c.run(id, n)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// run is exec for those who want to know more of the result.
func (c *conn) run(id statement, n int) (driver.Result, error) {
	s, err := c.prepared(id)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(context.Background(), c.args[:n])
}

// query runs a statement with the first n bound arguments and calls each for
// every row. The values are good until each returns; the byte slices in them
// may be kept.
func (c *conn) query(id statement, n int, each func([]driver.Value) error) error {
	s, err := c.prepared(id)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.args[:n])
	if err != nil {
		return err
	}
	return readAll(rows, c.dest, each)
}

// readAll reads rows to their end and closes them: a statement that is not
// reset would keep its snapshot, and with it the write-ahead log.
func readAll(rows driver.Rows, dest []driver.Value, each func([]driver.Value) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	if n := len(rows.Columns()); n > len(dest) {
		dest = make([]driver.Value, n)
	} else {
		dest = dest[:n]
	}
	for {
		switch err := rows.Next(dest); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(dest); err != nil {
			return err
		}
	}
}

// script runs SQL that is not worth preparing.
func (c *conn) script(sql string, args ...driver.Value) error {
	_, err := c.dc.(driver.ExecerContext).ExecContext(context.Background(), sql, named(args))
	return err
}

// ask is query for SQL that is not worth preparing.
func (c *conn) ask(sql string, each func([]driver.Value) error, args ...driver.Value) error {
	rows, err := c.dc.(driver.QueryerContext).QueryContext(context.Background(), sql, named(args))
	if err != nil {
		return err
	}
	return readAll(rows, nil, each)
}

func named(values []driver.Value) []driver.NamedValue {
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args
}

// primaryCode returns SQLite's result code for an error, without what refines
// it; 0 if the error is not SQLite's.
func primaryCode(err error) int {
	if se, ok := errors.AsType[*sqlite.Error](err); ok {
		return se.Code() & 0xFF
	}
	return 0
}

// isBusy reports whether somebody else has the lock, or is recovering the log.
func isBusy(err error) bool {
	switch primaryCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// isOfOneRow reports whether a statement failed for what it was given: it alone
// was undone, and the transaction goes on.
func isOfOneRow(err error) bool {
	if errors.Is(err, errDamaged) {
		return true
	}
	switch primaryCode(err) {
	case sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}

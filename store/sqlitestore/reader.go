package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/umavez/umavez"
)

// readers is a fixed number of places for connections that only read. They
// never wait for the writer, nor it for them.
//
// Each read is one statement, read to its end: its snapshot is taken when it
// begins, so that it sees every write acknowledged before, by any process, and
// holds back the write-ahead log for no longer than it lasts.
type readers struct {
	path   string
	opt    Options
	places chan *conn // nil: no connection yet
}

// readerPlaces: reading is a matter of the processor, not of waiting, and more
// of them would only share the same cores.
const readerPlaces = 4

func newReaders(path string, o Options) *readers {
	r := &readers{path: path, opt: o, places: make(chan *conn, readerPlaces)}
	for range readerPlaces {
		r.places <- nil
	}
	return r
}

// do calls f with a connection. After an error the connection is not used again.
func (r *readers) do(ctx context.Context, f func(*conn) error) error {
	var c *conn
	select {
	case place, open := <-r.places:
		if !open {
			return errClosed
		}
		c = place
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { r.places <- c }()
	if c == nil {
		var err error
		if c, err = dial(ctx, r.path, r.opt, reading); err != nil {
			return err
		}
	}
	err := f(c)
	if err != nil && !isOfOneRow(err) {
		_ = c.close() // it is given up because it fails
		c = nil
	}
	return err
}

// close waits for the reads under way and closes every connection.
func (r *readers) close() error {
	var errs []error
	for range readerPlaces {
		if c := <-r.places; c != nil {
			errs = append(errs, c.close())
		}
	}
	close(r.places)
	return errors.Join(errs...)
}

// row reads one row, and says whether there is one.
func (c *conn) row(id umavez.ID) (row umavez.Row, there bool, err error) {
	var damaged error
	err = c.selectRows([]*umavez.ID{&id}, func(f found, err error) {
		row, there, damaged = f.row, true, err
	})
	if err == nil {
		err = damaged
	}
	return row, there, err
}

// phase reads one row's phase, and says whether there is one.
func (c *conn) phase(id umavez.ID) (p umavez.Phase, there bool, err error) {
	c.bind(0, id[:])
	err = c.query(stPhase, 1, func(v []driver.Value) error {
		s := scanner{values: v}
		p, there = umavez.Phase(s.within(int64(umavez.PhaseDone))), true
		return s.err
	})
	return p, there, err
}

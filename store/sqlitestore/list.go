package sqlitestore

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/sqlitestore/internal/startlog"
)

// List implements [umavez.Lister]. A list of what is unsettled goes over the
// index of running rows, of which there are few; any other one walks through the
// keys in their order, listChunk at a time, until its page is full.
//
// A record that cannot be read is left out of the page and named by the error,
// which then comes with the page: the list can go on after it.
func (s *Store) List(ctx context.Context, q umavez.Query) ([]umavez.Listed, error) {
	l := listing{q: q, own: s.starts.Owner()}
	err := s.list(ctx, &l)
	if err == nil && l.foreign && s.sweep(ctx) {
		// What its dead owner had not started is none to be settled.
		l = listing{q: q, own: l.own}
		err = s.list(ctx, &l)
	}
	if err != nil {
		return nil, notApplied("list", err)
	}
	return l.page, errors.Join(l.damaged...)
}

func (s *Store) list(ctx context.Context, l *listing) error {
	return s.readers.do(ctx, func(c *conn) error {
		l.now = s.now()
		if l.q.Unsettled() {
			return l.unsettled(ctx, c)
		}
		return l.all(ctx, c)
	})
}

// listChunk is how many keys one statement walks through. For that long it holds
// back the write-ahead log: some ten milliseconds.
const listChunk = 4096

// listing is a page in the making.
type listing struct {
	q       umavez.Query // After moves on
	own     startlog.Owner
	now     umavez.Instant
	page    []umavez.Listed
	damaged []error
	foreign bool // a lost record has an owner that is not this process
}

// unsettled fills the page from the index of running rows. Most often with one
// statement: only what SQL does not ask for takes another.
func (l *listing) unsettled(ctx context.Context, c *conn) error {
	st := stListUnsettled
	if l.q.Scope != (umavez.ScopeID{}) {
		st = stListScope
	}
	for {
		whole, err := l.read(c, st, 8)
		if err != nil || whole || l.full() {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// all fills the page from the table, chunk by chunk.
func (l *listing) all(ctx context.Context, c *conn) error {
	for !l.full() {
		if err := ctx.Err(); err != nil {
			return err
		}
		last, end, err := l.endOfChunk(c)
		if err != nil {
			return err
		}
		c.bind(8, last[:])
		whole, err := l.read(c, stListAll, 9)
		if err != nil {
			return err
		}
		if whole {
			if end {
				return nil
			}
			l.q.After = last
		}
	}
	return nil
}

// endOfChunk returns the last id of the next chunk. end: there is none behind it.
func (l *listing) endOfChunk(c *conn) (last umavez.ID, end bool, err error) {
	c.bind(0, l.q.After[:], int64(listChunk-1))
	end = true
	err = c.query(stListEnd, 2, func(v []driver.Value) error {
		s := scanner{values: v}
		s.into(last[:])
		end = false
		return s.err
	})
	if end {
		last = umavez.ID(bytes.Repeat([]byte{0xFF}, len(last)))
	}
	return last, end, err
}

func (l *listing) full() bool { return len(l.page) >= l.q.Limit }

// read runs a statement for what is left of the page. whole: the statement had
// no more rows than it gave.
func (l *listing) read(c *conn, st statement, n int) (whole bool, err error) {
	var scope driver.Value
	if l.q.Scope != (umavez.ScopeID{}) {
		scope = l.q.Scope[:]
	}
	after := l.q.After // which moves on with the rows
	left, got := l.q.Limit-len(l.page), 0
	c.bind(0, after[:], int64(l.now), l.states(), l.q.Namespace, scope, l.q.Route,
		int64(l.now.Add(-roundUp(l.q.MinAge))), int64(left))
	err = c.rows(st, n, func(f found, err error) {
		got++
		l.take(f, err)
	})
	return got < left, err
}

// take puts a row onto the page, if it fits.
func (l *listing) take(f found, err error) {
	l.q.After = umavez.ID(f.id)
	if err != nil {
		l.damaged = append(l.damaged, fmt.Errorf("record %v: %w", l.q.After, err))
		return
	}
	rec := f.row.Record(l.now)
	if !l.q.Fits(&rec) {
		return
	}
	if rec.State == umavez.Lost && f.foreign(l.own) {
		l.foreign = true
	}
	l.page = append(l.page, umavez.Listed{ID: l.q.After, Record: rec.Brief()})
}

// states are the wanted ones, as bits.
func (l *listing) states() (bits int64) {
	lostOnly := l.q.Unknown || l.q.Reason != ""
	for st := umavez.Running; st <= umavez.Expired; st++ {
		wanted := umavez.Query{States: l.q.States}
		if wanted.Fits(&umavez.Record{State: st}) && (!lostOnly || st == umavez.Lost) {
			bits |= 1 << st
		}
	}
	return bits
}

// roundUp makes whole microseconds of a duration, as the clock counts.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

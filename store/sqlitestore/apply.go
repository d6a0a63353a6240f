package sqlitestore

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/umavez/umavez"
)

// tx is what happens between BEGIN and COMMIT. It is kept, with its slices,
// from one transaction to the next.
type tx struct {
	c *conn
	// now is the store's clock, read after the write lock was taken: instants
	// follow the order of transactions, also between processes.
	now umavez.Instant
	// wrote: there is something to commit.
	wrote  bool
	groups []group
	ids    []*umavez.ID
}

// group is the operations of a batch on one key, in their order.
type group struct {
	ops   []*op
	errs  []error
	row   umavez.Row
	rowid int64 // 0: no row
	err   error // the row could not be read
}

// apply runs a batch, sorted by key. An operation that fails for what it was
// given gets an error of its own; the error that apply returns fails all.
func (t *tx) apply(ops []*op, errs []error) error {
	t.divide(ops, errs)
	defer t.forget()
	if err := t.load(); err != nil {
		return err
	}
	for i := range t.groups {
		g := &t.groups[i]
		err := g.err
		if err == nil {
			err = t.run(g)
		}
		switch {
		case err == nil:
		case isOfOneRow(err):
			g.fail(err)
		case g.ops[0].task != nil && primaryCode(err) == 0:
			g.errs[0] = err // a task's own answer
		default:
			return err
		}
	}
	return nil
}

// forget lets go of the batch, so that its slices keep no answer alive.
func (t *tx) forget() {
	clear(t.groups)
	clear(t.ids)
}

// divide cuts the batch into groups.
func (t *tx) divide(ops []*op, errs []error) {
	t.groups = t.groups[:0]
	for i := 0; i < len(ops); {
		j := i + 1
		for j < len(ops) && ops[i].task == nil && ops[j].task == nil && ops[j].id == ops[i].id {
			j++
		}
		t.groups = append(t.groups, group{ops: ops[i:j], errs: errs[i:j]})
		i = j
	}
}

// load reads the rows of all groups, but for the claims of keys that are thought
// to be absent: most of those are, and are inserted unseen.
func (t *tx) load() error {
	t.ids = t.ids[:0]
	for i := range t.groups {
		if o := t.groups[i].ops[0]; o.task == nil && !o.absent {
			t.ids = append(t.ids, &o.id)
		}
	}
	for ids := range slices.Chunk(t.ids, 256) {
		if err := t.c.selectRows(ids, t.found); err != nil {
			return err
		}
	}
	return nil
}

// found hands a row to its group.
func (t *tx) found(rowid int64, id []byte, row umavez.Row, err error) {
	i, ok := slices.BinarySearchFunc(t.groups, id, func(g group, id []byte) int {
		return bytes.Compare(g.ops[0].id[:], id)
	})
	if ok {
		g := &t.groups[i]
		g.rowid, g.row, g.err = rowid, row, err
	}
}

// run does a group's operations and writes its row once.
func (t *tx) run(g *group) error {
	if task := g.ops[0].task; task != nil {
		return task(t)
	}
	write, leaseOnly := g.advance(t.now)
	if !write {
		return nil
	}
	if g.rowid != 0 {
		t.wrote = true
		return t.update(g, leaseOnly)
	}
	inserted, err := t.insert(g)
	if err != nil || inserted {
		t.wrote = true
		return err
	}
	// The key was claimed before, or somebody was quicker.
	if err := t.c.selectRows([]*umavez.ID{&g.ops[0].id}, t.found); err != nil {
		return err
	}
	switch {
	case g.err != nil:
		return g.err
	case g.rowid == 0:
		return fmt.Errorf("umavez: sqlite: record %v is neither there nor can it be inserted", g.ops[0].id)
	}
	if write, leaseOnly = g.advance(t.now); !write {
		return nil
	}
	t.wrote = true
	return t.update(g, leaseOnly)
}

// advance takes the row through the group's operations. leaseOnly: nothing but
// the lease's end has changed.
func (g *group) advance(now umavez.Instant) (write, leaseOnly bool) {
	leaseOnly = true
	for i, o := range g.ops {
		var eff umavez.Effect
		g.row, eff = umavez.Next(g.row, now, o.ev)
		if eff.Write {
			write = true
			leaseOnly = leaseOnly && o.ev.Kind == umavez.EventExtend
		}
		g.errs[i] = eff.Err
		if o.ev.Kind == umavez.EventClaim {
			o.rec, o.acquired = g.row.Record(now), eff.Acquired
		}
	}
	return write, leaseOnly
}

// fail gives each of the group's operations the same failure: the statement was
// undone, and nothing of them will be committed.
func (g *group) fail(err error) {
	for i, o := range g.ops {
		g.errs[i] = notApplied(o.name, err)
	}
}

func (t *tx) insert(g *group) (bool, error) {
	encode(t.c.args, &g.row)
	t.c.bind(columnCount, due(&g.row), g.ops[0].id[:])
	n, err := t.c.exec(stInsert, columnCount+2)
	return n == 1, err
}

func (t *tx) update(g *group, leaseOnly bool) error {
	if leaseOnly {
		t.c.bind(0, int64(g.row.Until), g.rowid)
		return t.one(t.c.exec(stExtend, 2))
	}
	encode(t.c.args, &g.row)
	t.c.bind(columnCount, due(&g.row), g.rowid)
	return t.one(t.c.exec(stUpdate, columnCount+2))
}

// one makes an error of an update that did not find its row: the write lock is
// held, so that nobody can have taken it away.
func (t *tx) one(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("umavez: sqlite: %d rows were updated instead of 1", n)
	}
	return err
}

// selectRows reads the rows of at most 256 ids and hands on each that is there.
func (c *conn) selectRows(
	ids []*umavez.ID, found func(rowid int64, id []byte, row umavez.Row, err error),
) error {
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
	return c.query(st, n, func(v []driver.Value) error {
		s := scanner{values: v}
		rowid, id := s.integer(), s.blob()
		if s.err != nil {
			return fmt.Errorf("%w: %w", errDamaged, s.err)
		}
		row, err := decode(v[2:])
		found(rowid, id, row, err)
		return nil
	})
}

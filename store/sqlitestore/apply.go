package sqlitestore

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/sqlitestore/internal/startlog"
)

// tx is what happens between BEGIN and COMMIT. It is kept, with its slices,
// from one transaction to the next.
type tx struct {
	c *conn
	// now is the store's clock, read after the write lock was taken: instants
	// follow the order of transactions, also between processes.
	now umavez.Instant
	// owner names this process's start log.
	owner startlog.Owner
	// wrote: there is something to commit.
	wrote     bool
	audited   uint64 // entries that this transaction wrote into the audit trail
	recall    recall
	unsettled unsettled
	groups    []group
	ids       []*umavez.ID
}

// group is the operations of a batch on one key, in their order.
type group struct {
	ops   []*op
	errs  []error
	found       // rowid 0: no row
	err   error // the row could not be read
	// unseen: nobody has looked whether there is a row.
	unseen bool
	// audit is what goes into the audit trail with the row.
	audit []*umavez.AuditEntry
}

// apply runs a batch, sorted by key. An operation that fails for what it was
// given gets an error of its own; the error that apply returns fails all.
func (t *tx) apply(ops []*op, errs []error) error {
	t.divide(ops, errs)
	defer t.forget()
	// Tasks go first: the rows that they change are not read yet.
	for i := range t.groups {
		if g := &t.groups[i]; g.ops[0].task != nil {
			if err := t.do(g); err != nil {
				return err
			}
		}
	}
	if err := t.load(); err != nil {
		return err
	}
	for i := range t.groups {
		g := &t.groups[i]
		if g.ops[0].task != nil {
			continue
		}
		err := g.err
		if err == nil {
			err = t.run(g)
		}
		if err != nil && !isOfOneRow(err) {
			return err
		}
		if err != nil {
			g.fail(err)
		}
	}
	return nil
}

// do runs a task.
func (t *tx) do(g *group) error {
	err := g.ops[0].task(t)
	t.recall.forget() // it writes rows by statements of its own
	switch {
	case err == nil:
	case isOfOneRow(err):
		g.fail(err)
	case primaryCode(err) == 0:
		g.errs[0] = err // the task's own answer
	default:
		return err
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

// load reads the rows of all groups, but for those that it recalls, and for the
// claims of keys that are thought to be absent: most of those are, and are
// inserted unseen.
func (t *tx) load() error {
	t.ids = t.ids[:0]
	for i := range t.groups {
		g := &t.groups[i]
		o := g.ops[0]
		if o.task != nil {
			continue
		}
		if f, ok := t.recall.rows[o.id]; ok {
			g.found = f
		} else if g.unseen = o.absent; !g.unseen {
			t.ids = append(t.ids, &o.id)
		}
	}
	for ids := range slices.Chunk(t.ids, 256) {
		if err := t.c.selectRows(ids, t.handOut); err != nil {
			return err
		}
	}
	return nil
}

// handOut gives a row to its group.
func (t *tx) handOut(f found, err error) {
	i, ok := slices.BinarySearchFunc(t.groups, f.id, func(g group, id []byte) int {
		return bytes.Compare(g.ops[0].id[:], id)
	})
	if ok {
		t.groups[i].found, t.groups[i].err = f, err
	}
}

// run does a group's operations and writes its row once.
func (t *tx) run(g *group) error {
	write, leaseOnly, err := g.advance(t)
	if err != nil {
		return err
	}
	if write && g.rowid == 0 {
		inserted, err := t.insert(g)
		if err != nil || inserted {
			t.wrote = true
			return err
		}
	}
	if g.rowid == 0 && (write || g.unseen) {
		// The key was claimed before, or somebody was quicker; or what a vacant
		// key answers is no answer as long as nobody has looked.
		if write, leaseOnly, err = t.again(g, write); err != nil {
			return err
		}
	}
	if !write {
		return nil
	}
	t.wrote = true
	return t.update(g, leaseOnly)
}

// again does a group's operations once more, on the row that is there after all.
// needed: there must be one, since none could be inserted.
func (t *tx) again(g *group, needed bool) (write, leaseOnly bool, err error) {
	g.row = umavez.Row{}
	if err := t.c.selectRows([]*umavez.ID{&g.ops[0].id}, t.handOut); err != nil {
		return false, false, err
	}
	switch {
	case g.err != nil:
		return false, false, g.err
	case g.rowid == 0 && needed:
		return false, false, fmt.Errorf("umavez: sqlite: record %v is neither there nor can it be inserted", g.ops[0].id)
	case g.rowid == 0:
		return false, false, nil // the answer stands
	}
	return g.advance(t)
}

// advance takes the row through the group's operations. leaseOnly: nothing but
// the lease's end has changed. An answer that is an error may be a write, too.
func (g *group) advance(t *tx) (write, leaseOnly bool, err error) {
	leaseOnly, g.audit = true, nil
	for i, o := range g.ops {
		claim := o.ev.Kind == umavez.EventClaim
		vacant := claim && g.row.State(t.now) == umavez.Vacant
		if vacant && o.req.MaxUnsettled > 0 {
			if o.ev.Unsettled, err = t.unsettled.count(t, o.req.Scope, o.req.MaxUnsettled); err != nil {
				return false, false, err
			}
		}
		var eff umavez.Effect
		g.row, eff = umavez.Next(g.row, t.now, o.ev)
		if eff.Write {
			write = true
			leaseOnly = leaseOnly && o.ev.Kind == umavez.EventExtend
		}
		if eff.Audit != nil {
			g.audit = append(g.audit, eff.Audit)
		}
		g.errs[i] = eff.Err
		if claim {
			g.claimed(t, o, eff)
		}
		if vacant && eff.Acquired {
			t.unsettled.granted(o.req.Scope)
		}
	}
	if g.row.Phase != umavez.PhaseRunning || g.row.Ended != "" {
		g.owner = nil // it runs no more: whether it had started is not asked again
	}
	return write, leaseOnly, nil
}

// claimed gives a claim its results. The claim that is granted makes the row
// this process's; one that meets somebody else's lost row may ask whether its
// owner is dead.
func (g *group) claimed(t *tx, o *op, eff umavez.Effect) {
	o.rec, o.acquired = g.row.Record(t.now), eff.Acquired
	if eff.Acquired {
		g.owner = nil
		if t.owner != (startlog.Owner{}) {
			g.owner = t.owner[:]
		}
	}
	o.foreign = o.rec.State == umavez.Lost && g.foreign(t.owner)
}

// fail gives each of the group's operations the same failure: the statement was
// undone, and nothing of them will be committed.
func (g *group) fail(err error) {
	for i, o := range g.ops {
		g.errs[i] = notApplied(o.name, err)
	}
}

// insert writes a new row, unless there is one: then it reports false.
func (t *tx) insert(g *group) (bool, error) {
	encode(t.c.args, &g.row)
	t.c.bind(columnCount, due(&g.row), blob(g.owner), g.ops[0].id[:])
	res, err := t.c.run(stInsert, columnCount+3)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n != 1 {
		return false, err
	}
	if g.rowid, err = res.LastInsertId(); err != nil {
		return false, err
	}
	t.recall.put(g.ops[0].id, g.found)
	return true, nil
}

// update writes the row anew, with its entries in the audit trail. leaseOnly:
// only its lease's end has changed.
func (t *tx) update(g *group, leaseOnly bool) error {
	var err error
	switch {
	case len(g.audit) > 0:
		err = t.updateAudited(g)
	case leaseOnly:
		t.c.bind(0, int64(g.row.Until), g.rowid)
		err = t.one(t.c.exec(stExtend, 2))
	default:
		err = t.updateAll(g)
	}
	if err == nil {
		t.recall.put(g.ops[0].id, g.found)
	}
	return err
}

func (t *tx) updateAll(g *group) error {
	encode(t.c.args, &g.row)
	t.c.bind(columnCount, due(&g.row), blob(g.owner), g.rowid)
	return t.one(t.c.exec(stUpdate, columnCount+3))
}

// one makes an error of an update that did not find its row: the write lock is
// held, so that nobody can have taken it away.
func (t *tx) one(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("umavez: sqlite: %d rows were updated instead of 1", n)
	}
	return err
}

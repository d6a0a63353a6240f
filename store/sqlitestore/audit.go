package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/umavez/umavez"
)

// updateAudited writes a row and its entries in the audit trail: in the file
// there is never the one without the other. A savepoint keeps it so when the
// statements of this row fail, and those of others go on.
func (t *tx) updateAudited(g *group) error {
	if _, err := t.c.exec(stSave, 0); err != nil {
		return err
	}
	err := t.updateAll(g)
	for _, e := range g.audit {
		if err == nil {
			err = t.audit(&g.ops[0].id, e)
		}
	}
	if err != nil {
		if _, undo := t.c.exec(stUndoSaved, 0); undo != nil {
			// Not wrapped: it is the whole batch's failure, whatever it is.
			return errors.New("umavez: sqlite: a change is left without its entry in the audit trail: " + undo.Error())
		}
	} else {
		t.audited += uint64(len(g.audit))
	}
	_, release := t.c.exec(stKeepSaved, 0)
	return errors.Join(release, err)
}

// audit writes one entry.
func (t *tx) audit(id *umavez.ID, e *umavez.AuditEntry) error {
	t.c.bind(0, id[:], int64(t.now), string(e.Action), e.Who, e.Why, int64(e.Fence),
		int64(e.Before), string(e.BeforeReason), int64(e.After), string(e.AfterReason))
	return t.one(t.c.exec(stAudit, 10))
}

// entry reads what audit wrote. Its Ago counts from the clock's zero.
func entry(v []driver.Value) (umavez.AuditEntry, error) {
	s := scanner{values: v}
	e := umavez.AuditEntry{Ago: -umavez.Instant(s.integer()).Sub(0)}
	e.Action = umavez.Action(s.text())
	e.Who, e.Why = s.text(), s.text()
	e.Fence = umavez.Fence(s.integer())
	e.Before = umavez.State(s.within(int64(umavez.Expired)))
	e.BeforeReason = umavez.Reason(s.text())
	e.After = umavez.State(s.within(int64(umavez.Expired)))
	e.AfterReason = umavez.Reason(s.text())
	if s.err != nil {
		return umavez.AuditEntry{}, fmt.Errorf("%w: its audit trail: %w", errDamaged, s.err)
	}
	return e, nil
}

// dropAudit drops at most limit entries that are older than they are kept.
func (t *tx) dropAudit(limit int) (int, error) {
	t.c.bind(0, int64(t.now.Add(-umavez.AuditKept)), int64(limit))
	n, err := t.c.exec(stDropAudit, 2)
	t.wrote = t.wrote || n > 0
	return int(n), err
}

package sqlitestore

import (
	"context"
	"database/sql/driver"

	"github.com/umavez/umavez"
)

// purgeRows bounds a purging transaction: claims wait behind it.
const purgeRows = 256

// Purge implements [umavez.Purger], in transactions of at most 256 rows, records
// first and then entries of the audit trail. Space that becomes free in the file
// is used again.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	purged := 0
	for purged < limit {
		want, n := min(limit-purged, purgeRows), 0
		err := s.batches.Do(ctx, newTask("purge", func(t *tx) (err error) {
			if n, err = t.purge(want); err != nil || n == want {
				return err
			}
			dropped, err := t.dropAudit(want - n)
			n += dropped
			return err
		}))
		if err != nil {
			return purged, err
		}
		purged += n
		if n < want {
			break
		}
	}
	return purged, nil
}

// dueRow is a row that purging looks at, with what Row.Purge asks of it.
type dueRow struct {
	rowid int64
	row   umavez.Row
}

// purge drops or shortens at most limit records that are due.
func (t *tx) purge(limit int) (int, error) {
	var found []dueRow
	t.c.bind(0, int64(t.now), int64(limit))
	err := t.c.query(stDue, 2, func(v []driver.Value) error {
		s := scanner{values: v}
		d := dueRow{rowid: s.integer()}
		d.row.Phase = umavez.Phase(s.within(int64(umavez.PhaseDone)))
		d.row.Until = umavez.Instant(s.integer())
		d.row.Gone = umavez.Instant(s.integer())
		found = append(found, d)
		return s.err
	})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, d := range found {
		changed, err := t.purgeOne(d)
		if err != nil {
			return 0, err
		}
		if changed {
			n++
		}
	}
	return n, nil
}

func (t *tx) purgeOne(d dueRow) (bool, error) {
	row, keep := d.row.Purge(t.now)
	switch {
	case !keep:
		t.c.bind(0, d.rowid)
		t.wrote = true
		return true, t.one(t.c.exec(stDelete, 1))
	case row.Phase == umavez.PhaseDone && row.State(t.now) == umavez.Expired:
		t.c.bind(0, due(&row), d.rowid)
		t.wrote = true
		return true, t.one(t.c.exec(stForget, 2))
	}
	return false, nil
}

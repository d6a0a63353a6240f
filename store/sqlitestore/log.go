package sqlitestore

import (
	"database/sql/driver"
	"os"
)

// lookEvery is how many commits pass between two looks at the log's size. A
// look is one system call; trying to empty the log under a reader copies pages.
const lookEvery = 128

// tendLog empties the write-ahead log when it has grown over its limit. SQLite
// starts the log over by itself once all of it is in the database and nobody
// reads an old state; it grows while somebody does, and stays large after.
//
// The attempt does not wait for readers or other writers (the writer's
// busy_timeout is 0): it copies what it can, and the next one may do better.
func (w *writer) tendLog() {
	w.sinceLook++
	if w.sinceLook < lookEvery {
		return
	}
	w.sinceLook = 0
	info, err := os.Stat(w.path + "-wal")
	if err != nil || info.Size() <= w.opt.walLimit {
		return
	}
	// Of three numbers the first is 1 when somebody was in the way. An error is
	// not the batch's, which is committed; a bad connection will show itself.
	_ = w.c.ask("PRAGMA wal_checkpoint(TRUNCATE)", func(v []driver.Value) error {
		if blocked, ok := v[0].(int64); ok && blocked == 0 {
			w.emptied.Add(1)
		}
		return nil
	})
}

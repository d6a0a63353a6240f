package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/umavez/umavez"
)

// writer owns the one connection that writes. groupcommit has one batch in
// flight, so that nothing here is called twice at a time; only the counts are
// read from elsewhere.
type writer struct {
	path string
	file os.FileInfo // of the file that was opened
	opt  Options
	c    *conn // nil after a failure, until the next batch opens it again
	tx   tx
	// unburied: a commit failed, and its frames may still lie in the log.
	unburied bool

	commits, failedCommits, reopened, emptied, audited atomic.Uint64
	sinceLook                                          int // commits since the log's size was last looked at
}

// flush applies one batch in one transaction. It is the groupcommit.Flush.
func (w *writer) flush(ctx context.Context, ops []*op, errs []error) error {
	if err := w.begin(ctx); err != nil {
		return notApplied("begin", err)
	}
	err := w.fill(ops, errs)
	if err == nil {
		err = ctx.Err() // it took too long, and its callers may be gone
	}
	if err != nil {
		w.drop() // also rolls back
		return notApplied("write", err)
	}
	if !w.tx.wrote {
		return w.end()
	}
	if err := w.commit(); err != nil {
		return err
	}
	w.tendLog()
	return nil
}

// begin takes the file's write lock, on a connection that works.
func (w *writer) begin(ctx context.Context) error {
	if err := w.stillThere(); err != nil {
		return err
	}
	if w.c == nil {
		c, err := dial(ctx, w.path, w.opt, writing)
		if err != nil {
			return err
		}
		w.c = c
		w.reopened.Add(1)
	}
	err := untilNotBusy(ctx.Done(), w.opt.BusyTimeout, func() error {
		_, err := w.c.exec(stBegin, 0)
		return err
	})
	if err != nil && !isBusy(err) {
		w.drop()
	}
	return err
}

// stillThere fails when the path leads to another file by now, or to none: a
// backup was moved to its place, say. Whoever opens that one would not know of
// the claims that we go on making in ours. It costs one system call for a batch.
func (w *writer) stillThere() error {
	now, err := os.Stat(w.path)
	if err != nil {
		return fmt.Errorf("umavez: sqlite: the file has gone while it was open: %w", err)
	}
	if !os.SameFile(w.file, now) {
		return fmt.Errorf("umavez: sqlite: %q is another file than the one that was opened", w.path)
	}
	return nil
}

// fill does what is to be done inside the transaction.
func (w *writer) fill(ops []*op, errs []error) error {
	w.tx.c, w.tx.wrote, w.tx.audited = w.c, false, 0
	w.tx.now = umavez.InstantOf(w.opt.Now())
	w.tx.recall.begin(w.c)
	if w.unburied {
		if err := w.tx.bury(); err != nil {
			return err
		}
	}
	return w.tx.apply(ops, errs)
}

// end closes a transaction that wrote nothing: there is nothing to sync.
func (w *writer) end() error {
	if _, err := w.c.exec(stRollback, 0); err != nil {
		w.drop()
	}
	return nil
}

// commit makes the transaction durable. An error of COMMIT is "don't know": the
// frames may be in the log already, and whoever opens the file after a crash
// would find them.
func (w *writer) commit() error {
	_, err := w.c.exec(stCommit, 0)
	if err == nil {
		w.commits.Add(1)
		w.audited.Add(w.tx.audited)
		w.unburied = false
		w.tx.recall.committed(w.c)
		return nil
	}
	w.failedCommits.Add(1)
	w.unburied = true
	w.drop()
	// Before its callers look at what became of it.
	if buryErr := w.buryNow(); buryErr != nil {
		err = errors.Join(err, buryErr)
	}
	return &umavez.StoreError{Op: "commit", Applied: umavez.Maybe, Err: err}
}

// buryNow writes a commit over what a failed one has left in the log. SQLite
// does not count its frames as committed, but finds them if it recovers the log
// after a crash: a claim that everybody saw fail would stand there again, and
// nobody would run it. The next commit takes their place in the log.
func (w *writer) buryNow() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opt.BusyTimeout)
	defer cancel()
	if err := w.begin(ctx); err != nil {
		return fmt.Errorf("then begin anew: %w", err)
	}
	err := w.fill(nil, nil)
	if err == nil {
		_, err = w.c.exec(stCommit, 0)
	}
	if err != nil {
		w.drop()
		return fmt.Errorf("then commit anew: %w", err)
	}
	w.unburied = false
	w.commits.Add(1)
	return nil
}

func (t *tx) bury() error {
	t.wrote = true
	t.c.bind(0, int64(t.now))
	return t.one(t.c.exec(stBury, 1))
}

// drop closes the connection, which rolls back what is open on it.
func (w *writer) drop() {
	w.tx.recall.forget()
	w.tx.unsettled.forget()
	if w.c != nil {
		_ = w.c.close() // it is given up because it fails
		w.c = nil
	}
}

// notApplied is a failure before COMMIT: it was rolled back.
func notApplied(name string, err error) error {
	return &umavez.StoreError{Op: name, Applied: umavez.No, Err: err}
}

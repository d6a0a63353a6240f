package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"modernc.org/sqlite"

	"github.com/umavez/umavez"
)

// faults decorates every connection of a store. Both ways: a statement that
// fails and was not run, and one that was run and whose reply is lost.
type faults struct {
	mu            sync.Mutex
	before, after func(dc driver.Conn, sql string, args []driver.NamedValue) error
}

func (f *faults) set(before, after func(driver.Conn, string, []driver.NamedValue) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faults) wrap(dc driver.Conn) driver.Conn { return &faultyConn{dc, f} }

// around runs a statement between the two faults.
func (f *faults) around(dc driver.Conn, sql string, args []driver.NamedValue, run func() error) error {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(dc, sql, args); err != nil {
			return err
		}
	}
	err := run()
	if after != nil && err == nil {
		err = after(dc, sql, args)
	}
	return err
}

type faultyConn struct {
	driver.Conn
	f *faults
}

func (c *faultyConn) PrepareContext(ctx context.Context, sql string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, sql)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{s, c, sql}, nil
}

func (c *faultyConn) ExecContext(ctx context.Context, sql string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.f.around(c.Conn, sql, args, func() (err error) {
		r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, sql, args)
		return err
	})
	return r, err
}

func (c *faultyConn) QueryContext(ctx context.Context, sql string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.f.around(c.Conn, sql, args, func() (err error) {
		r, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, sql, args)
		return err
	})
	return r, err
}

// FileControlDataVersion passes on what recall asks.
func (c *faultyConn) FileControlDataVersion(name string) (uint32, error) {
	return c.Conn.(sqlite.FileControl).FileControlDataVersion(name)
}

// FileControlPersistWAL makes the connection a sqlite.FileControl.
func (c *faultyConn) FileControlPersistWAL(name string, mode int) (int, error) {
	return c.Conn.(sqlite.FileControl).FileControlPersistWAL(name, mode)
}

type faultyStmt struct {
	driver.Stmt
	c   *faultyConn
	sql string
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.c.f.around(s.c.Conn, s.sql, args, func() (err error) {
		r, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
	return r, err
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	err = s.c.f.around(s.c.Conn, s.sql, args, func() (err error) {
		r, err = s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		return err
	})
	return r, err
}

var errDisk = errors.New("disk I/O error")

// once fails the next statement that begins like this, and no later one.
func once(prefix string) func(driver.Conn, string, []driver.NamedValue) error {
	var did sync.Once
	return func(_ driver.Conn, sql string, _ []driver.NamedValue) (err error) {
		if strings.HasPrefix(sql, prefix) {
			did.Do(func() { err = errDisk })
		}
		return err
	}
}

func faulty(t *testing.T) (*Store, *faults) {
	t.Helper()
	f := new(faults)
	return open(t, file(t), Options{wrap: f.wrap}), f
}

// A COMMIT that fails is "don't know", whichever it was, and the same call
// again settles it.
func TestFailedCommitIsDontKnow(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after bool
		state         umavez.State
	}{
		{"not applied", true, false, umavez.Vacant},
		{"applied, reply lost", false, true, umavez.Running},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, f := faulty(t)
			arm := func() {
				if c.before {
					f.set(once("COMMIT"), nil)
				} else {
					f.set(nil, once("COMMIT"))
				}
			}
			arm()
			req := request()
			_, acquired, err := s.Claim(t.Context(), idOf("k"), req)
			wantApplied(t, err, umavez.Maybe)
			if acquired || !errors.Is(err, errDisk) {
				t.Errorf("acquired %v, error %v; want the disk's error", acquired, err)
			}
			if rec := get(t, s, "k"); rec.State != c.state {
				t.Errorf("after the failed commit the key is %v, want %v", rec.State, c.state)
			}
			l := claim(t, s, "k", req) // the same attempt again

			arm()
			wantApplied(t, s.Complete(t.Context(), l, []byte("answer"), keep), umavez.Maybe)
			if err := s.Complete(t.Context(), l, []byte("answer"), keep); err != nil {
				t.Errorf("the completion again: %v", err)
			}
			if rec := get(t, s, "k"); rec.State != umavez.Done || string(rec.Answer) != "answer" {
				t.Errorf("the key is %v, answer %q", rec.State, rec.Answer)
			}
			if st := s.Stats(); st.FailedCommits != 2 || st.Reopened != 2 {
				t.Errorf("stats are %+v, want two failed commits, each on a connection that was opened again", st)
			}
		})
	}
}

// A batch that ends in "don't know" is that for each of its callers.
func TestFailedCommitIsThatForTheWholeBatch(t *testing.T) {
	s, f := faulty(t)
	f.set(once("COMMIT"), nil)
	errs := together(s, 20, func(i int) error {
		_, _, err := s.Claim(t.Context(), idOf(fmt.Sprint(i)), request())
		return err
	})
	for _, err := range errs {
		wantApplied(t, err, umavez.Maybe)
	}
}

// What fails before COMMIT was rolled back, and says so.
func TestFailureBeforeCommitIsNotApplied(t *testing.T) {
	for _, statement := range []string{"BEGIN", "INSERT", "SELECT rowid", "UPDATE"} {
		t.Run(statement, func(t *testing.T) {
			s, f := faulty(t)
			l := claim(t, s, "there", request())
			// After a task, the writer has to read what it wrote before.
			if err := s.batches.Do(t.Context(), newTask("nothing", func(*tx) error { return nil })); err != nil {
				t.Fatal(err)
			}
			f.set(once(statement), nil)
			var err error
			switch statement {
			case "BEGIN", "INSERT":
				_, _, err = s.Claim(t.Context(), idOf("new"), request())
			default:
				err = s.Complete(t.Context(), l, []byte("answer"), keep)
			}
			wantApplied(t, err, umavez.No)
			f.set(nil, nil)
			if rec := get(t, s, "new"); rec.State != umavez.Vacant {
				t.Errorf("the new key is %v", rec.State)
			}
			if rec := get(t, s, "there"); rec.State != umavez.Running {
				t.Errorf("the key that was there is %v", rec.State)
			}
			if err := s.Complete(t.Context(), l, []byte("answer"), keep); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// One bad row fails one caller: the others in its batch are committed.
func TestBadRowFailsOneCaller(t *testing.T) {
	s, f := faulty(t)
	leases := make([]umavez.Lease, 20)
	for i := range leases {
		leases[i] = claim(t, s, fmt.Sprint(i), request())
	}
	f.set(func(dc driver.Conn, sql string, args []driver.NamedValue) error {
		if !strings.HasPrefix(sql, "UPDATE umavez_record SET (phase") {
			return nil
		}
		if answer, _ := args[answerColumn].Value.([]byte); string(answer) != "bad" {
			return nil
		}
		// A constraint that really fails, in the same transaction.
		_, err := dc.(driver.ExecerContext).ExecContext(context.Background(),
			"INSERT INTO umavez_failed_commit VALUES (2, 0, 0)", nil)
		return err
	}, nil)
	errs := together(s, len(leases), func(i int) error {
		answer := []byte("good")
		if i == 7 {
			answer = []byte("bad")
		}
		return s.Complete(t.Context(), leases[i], answer, keep)
	})
	for i, err := range errs {
		rec := get(t, s, fmt.Sprint(i))
		if i == 7 {
			wantApplied(t, err, umavez.No)
			if rec.State != umavez.Running {
				t.Errorf("the key with the bad row is %v", rec.State)
			}
			continue
		}
		if err != nil || rec.State != umavez.Done {
			t.Errorf("key %d: %v, %v", i, err, rec.State)
		}
	}
}

// A row that cannot be read is never taken for a vacant key.
func TestDamagedRowIsNotVacant(t *testing.T) {
	s, _ := fresh(t)
	done(t, s, "k", []byte("answer"))
	done(t, s, "good", []byte("answer"))
	c, err := dial(t.Context(), s.writer.path, s.opt, writing)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	id := idOf("k")
	if err := c.script("UPDATE umavez_record SET steps = x'FF', phase = 1 WHERE id = ?", id[:]); err != nil {
		t.Fatal(err)
	}
	_, acquired, err := s.Claim(t.Context(), id, request())
	if acquired || !errors.Is(err, errDamaged) {
		t.Errorf("claim of a damaged record: acquired %v, error %v", acquired, err)
	}
	wantApplied(t, err, umavez.No)
	if _, err := s.Get(t.Context(), id); !errors.Is(err, errDamaged) {
		t.Errorf("get of a damaged record: %v", err)
	}
	if rec := get(t, s, "good"); rec.State != umavez.Done {
		t.Errorf("its neighbour is %v", rec.State)
	}
}

// A reader that fails is not the claim's failure, and is replaced.
func TestReaderFails(t *testing.T) {
	s, f := faulty(t)
	f.set(once("SELECT phase"), nil)
	errs := together(s, 1, func(int) error { // with the writer at work, a reader looks
		_, acquired, err := s.Claim(t.Context(), idOf("k"), request())
		if err == nil && !acquired {
			err = errors.New("not granted")
		}
		return err
	})
	if errs[0] != nil {
		t.Errorf("a claim whose reader failed: %v", errs[0])
	}
	f.set(once("SELECT rowid"), nil)
	_, err := s.Get(t.Context(), idOf("k"))
	wantApplied(t, err, umavez.No)
	for range 2 * readerPlaces { // on every connection
		if rec := get(t, s, "k"); rec.State != umavez.Running {
			t.Errorf("the key is %v", rec.State)
		}
	}
}

// A batch that has used up its time is rolled back, not committed behind the
// backs of callers that may have gone.
func TestBatchOutOfTimeIsRolledBack(t *testing.T) {
	s, _ := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := newClaim(idOf("k"), request())
	late := newTask("late", func(*tx) error { cancel(); return nil })
	err := s.writer.flush(ctx, []*op{o, late}, make([]error, 2))
	wantApplied(t, err, umavez.No)
	if rec := get(t, s, "k"); rec.State != umavez.Vacant {
		t.Errorf("the key is %v", rec.State)
	}
	claim(t, s, "k", request())
}

// A replay is answered though the writer fails.
func TestReplayThoughTheWriterFails(t *testing.T) {
	s, f := faulty(t)
	done(t, s, "done", []byte("answer"))
	f.set(func(_ driver.Conn, sql string, _ []driver.NamedValue) error {
		if strings.HasPrefix(sql, "BEGIN") {
			return errDisk
		}
		return nil
	}, nil)
	rec, acquired, err := s.Claim(t.Context(), idOf("done"), request())
	if err != nil || acquired || string(rec.Answer) != "answer" {
		t.Errorf("%v, %v, %v", acquired, err, rec.State)
	}
	_, _, err = s.Claim(t.Context(), idOf("new"), request())
	wantApplied(t, err, umavez.No)
	f.set(nil, nil)
}

// The file is moved away, or another one to its place, while it is open: claims
// that whoever opens the new one cannot know of are refused.
func TestReplacedFileIsNotWritten(t *testing.T) {
	s, _ := fresh(t)
	l := claim(t, s, "k", request())
	away := s.writer.path + ".away"
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	rename(s.writer.path, away)
	_, _, err := s.Claim(t.Context(), idOf("new"), request())
	wantApplied(t, err, umavez.No)
	if err := create(s.writer.path); err != nil {
		t.Fatal(err)
	}
	wantApplied(t, s.Complete(t.Context(), l, nil, keep), umavez.No)

	rename(away, s.writer.path)
	if err := s.Complete(t.Context(), l, nil, keep); err != nil {
		t.Errorf("with the file back in its place: %v", err)
	}
}

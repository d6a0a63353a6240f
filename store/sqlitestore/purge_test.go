package sqlitestore

import (
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// rowCount returns how many rows there are, and how many of them have an answer.
func rowCount(t *testing.T, s *Store) (rows, answers int64) {
	t.Helper()
	err := s.readers.do(t.Context(), func(c *conn) error {
		return c.ask("SELECT count(*), count(answer) FROM umavez_record", func(v []driver.Value) error {
			rows, answers = v[0].(int64), v[1].(int64)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, answers
}

func purge(t *testing.T, s *Store, limit, want int) {
	t.Helper()
	n, err := s.Purge(t.Context(), limit)
	if err != nil || n != want {
		t.Fatalf("purge of at most %d: %d, %v; want %d", limit, n, err, want)
	}
}

func TestPurge(t *testing.T) {
	s, c := fresh(t)
	for i := range 10 {
		done(t, s, fmt.Sprint("done ", i), []byte("answer"))
	}
	brief := request()
	brief.Lease = time.Millisecond
	claim(t, s, "lost", brief)
	running := request()
	running.Lease = 10_000 * time.Hour
	claim(t, s, "running", running)
	if err := s.Abandon(t.Context(), claim(t, s, "abandoned", request()), umavez.ReasonPanic, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), claim(t, s, "released", request())); err != nil {
		t.Fatal(err)
	}
	purge(t, s, 100, 0)

	c.advance(keep.Retain) // equals ReleasedKept: ten answers and a released row are due
	purge(t, s, 4, 4)
	purge(t, s, 100, 7)
	purge(t, s, 100, 0) // an answer is forgotten once
	if rows, answers := rowCount(t, s); rows != 13 || answers != 0 {
		t.Errorf("%d rows with %d answers are left, want 13 and none", rows, answers)
	}
	if rec := get(t, s, "done 0"); rec.State != umavez.Expired {
		t.Errorf("within its tombstone the key is %v", rec.State)
	}

	c.advance(keep.Tombstone)
	purge(t, s, 100, 10)
	c.advance(10_000 * time.Hour)
	purge(t, s, 100, 0)
	for _, name := range []string{"lost", "running", "abandoned"} {
		if rec := get(t, s, name); rec.State != umavez.Lost {
			t.Errorf("%s is %v after purging", name, rec.State)
		}
	}
}

// A large purge is cut into transactions, so that claims are not kept waiting.
func TestPurgeInParts(t *testing.T) {
	s, c := fresh(t)
	const n = 2*purgeRows + 10
	err := s.batches.Do(t.Context(), newTask("fill", func(tx *tx) error {
		tx.wrote = true
		for i := range n {
			row := umavez.Row{Phase: umavez.PhaseDone, Until: tx.now, Gone: tx.now}
			if _, err := tx.insert(&group{ops: []*op{{id: idOf(fmt.Sprint(i))}}, found: found{row: row}}); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	c.advance(time.Second)
	before := s.Stats().Commits
	purge(t, s, 10_000, n)
	if commits := s.Stats().Commits - before; commits != 3 {
		t.Errorf("%d rows were purged in %d transactions, want 3", n, commits)
	}
}

// A tombstone of nothing: the row goes with its answer.
func TestPurgeWithoutTombstone(t *testing.T) {
	s, c := fresh(t)
	l := claim(t, s, "k", request())
	if err := s.Complete(t.Context(), l, []byte("answer"), umavez.Retention{Retain: time.Hour}); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	purge(t, s, 10, 1)
	if rows, _ := rowCount(t, s); rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
}

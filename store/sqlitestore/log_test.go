package sqlitestore

import (
	"database/sql/driver"
	"fmt"
	"os"
	"sync"
	"testing"
)

// logSize is the size of the write-ahead log.
func logSize(t *testing.T, s *Store) int64 {
	t.Helper()
	info, err := os.Stat(s.writer.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// fill completes n keys with answers of size bytes, from several callers.
func fill(t *testing.T, s *Store, prefix string, n, size int) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range n / 8 {
				done(t, s, fmt.Sprint(prefix, w, "/", i), make([]byte, size))
			}
		})
	}
	wg.Wait()
}

// While somebody reads an old state the log grows; soon after the reader has
// gone it is small again.
func TestLogShrinksAfterALongReader(t *testing.T) {
	const limit = 2 << 20
	s := open(t, file(t), Options{walLimit: limit})
	fill(t, s, "before", 8, 100)

	long, err := dial(t.Context(), s.writer.path, s.opt, reading)
	if err != nil {
		t.Fatal(err)
	}
	defer long.close()
	if err := long.script("BEGIN"); err != nil {
		t.Fatal(err)
	}
	count := func(c *conn) (n int64) {
		t.Helper()
		err := c.ask("SELECT count(*) FROM umavez_record", func(v []driver.Value) error {
			n = v[0].(int64)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	old := count(long)
	fill(t, s, "during", 800, 10_000)
	grown := logSize(t, s)
	if grown < 2*limit {
		t.Fatalf("the log grew to %d bytes only: the test shows nothing", grown)
	}
	if n := count(long); n != old {
		t.Fatalf("the long reader sees %d rows, after %d: it is not one", n, old)
	}
	if err := long.script("COMMIT"); err != nil {
		t.Fatal(err)
	}
	for before := s.Stats().Commits; s.Stats().Commits < before+lookEvery; {
		done(t, s, fmt.Sprint("after", s.Stats().Commits), nil)
	}
	if size := logSize(t, s); size > limit {
		t.Errorf("the log is %d bytes long after the reader has gone, was %d, want at most %d", size, grown, limit)
	}
	if s.Stats().LogEmptied == 0 {
		t.Error("the log was never emptied")
	}
	if n := count(long); n < old+800 {
		t.Errorf("%d rows are left of %d", n, old+800)
	}
}

// Without a long reader the log stays at about the size where SQLite starts it over.
func TestLogStaysSmall(t *testing.T) {
	s := open(t, file(t), Options{})
	fill(t, s, "k", 1600, 10_000) // 16 MB of answers
	if size := logSize(t, s); size > 8<<20 {
		t.Errorf("the log is %d bytes long", size)
	}
}

// The store's own readers hold nothing back: after reads on every place, the
// log can be emptied.
func TestOwnReadersHoldNothingBack(t *testing.T) {
	s := open(t, file(t), Options{})
	done(t, s, "k", []byte("answer"))
	var wg sync.WaitGroup
	for range 4 * readerPlaces {
		wg.Go(func() {
			get(t, s, "k")
			get(t, s, "no such key")
			if _, _, err := s.Claim(t.Context(), idOf("k"), request()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, err := dial(t.Context(), s.writer.path, s.opt, writing)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	err = c.ask("PRAGMA wal_checkpoint(TRUNCATE)", func(v []driver.Value) error {
		if v[0] != int64(0) {
			t.Errorf("emptying the log was blocked: %v", v)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if size := logSize(t, s); size != 0 {
		t.Errorf("the log is %d bytes long after it was emptied", size)
	}
}

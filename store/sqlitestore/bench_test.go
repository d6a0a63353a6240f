//go:build linux

package sqlitestore

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/umavez/umavez"
)

// The benchmarks compare the store with the driver alone, on the same disk, in
// turns. Each prints the ratio of their speeds: 1 would mean that the store
// costs nothing beside its statements and syncs.

// turn is how many pairs each caller does before store and driver change places:
// few, so that both meet the same disk, on a machine that does other things too.
const turn = 25

var benchAnswer = make([]byte, 160)

// BenchmarkSixtyFourCallers claims and completes keys from 64 callers. The
// driver alone does the same INSERTs and UPDATEs from one, in transactions of
// the size that the store's had. (The store also has its readers look, since it
// cannot know that every key is new.)
func BenchmarkSixtyFourCallers(b *testing.B) {
	benchmark(b, 64, 0)
}

// BenchmarkSixtyFourCallersLargeFile is the same among 200,000 other keys.
func BenchmarkSixtyFourCallersLargeFile(b *testing.B) {
	benchmark(b, 64, 200_000)
}

// BenchmarkOneCaller claims and completes keys one after the other: two commits
// for each.
func BenchmarkOneCaller(b *testing.B) {
	benchmark(b, 1, 0)
}

func benchmark(b *testing.B, callers, others int) {
	onDisk(b)
	s := open(b, file(b), Options{})
	p := newPlain(b)
	for i := 0; i < others; i += 4000 {
		fillWith(b, s, i, 4000)
		p.pairs(b, 4000, 4000)
	}
	var ours, plain []time.Duration // per pair, of each turn
	var next atomic.Uint64
	before := s.Stats()
	b.ResetTimer()
	for left := b.N; left > 0; left -= callers * turn {
		n := min(left, callers*turn)
		began := time.Now()
		claimAndComplete(b, s, &next, callers, n)
		ours = append(ours, time.Since(began)/time.Duration(n))
		b.StopTimer()
		size := 1
		if callers > 1 {
			size = int(math.Round(perCommit(s, before)))
		}
		plain = append(plain, p.pairs(b, n, size)/time.Duration(n))
		b.StartTimer()
	}
	b.ReportMetric(1/median(ours).Seconds(), "pairs/s")
	b.ReportMetric(perCommit(s, before), "calls/commit")
	b.ReportMetric(median(plain).Seconds()/median(ours).Seconds(), "ratio")
}

func perCommit(s *Store, since Stats) float64 {
	st := s.Stats()
	return float64(st.Calls-since.Calls) / float64(max(1, st.Commits-since.Commits))
}

// median, not mean: a disk that somebody else keeps busy for half a second says
// nothing about either side.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return max(1, d[len(d)/2])
}

// claimAndComplete does n pairs from so many callers.
func claimAndComplete(b *testing.B, s *Store, next *atomic.Uint64, callers, n int) {
	var wg sync.WaitGroup
	last := next.Load() + uint64(n)
	for range callers {
		wg.Go(func() {
			for {
				k := next.Add(1)
				if k > last {
					return
				}
				l := claim(b, s, fmt.Sprint(k), request())
				if err := s.Complete(context.Background(), l, benchAnswer, keep); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	next.Store(last)
}

// BenchmarkReplay answers done keys from 64 callers.
func BenchmarkReplay(b *testing.B) {
	s := open(b, file(b), Options{})
	fillWith(b, s, 0, 1000)
	var wg sync.WaitGroup
	var next atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for k := next.Add(1); k <= uint64(b.N); k = next.Add(1) {
				rec, _, err := s.Claim(context.Background(), idOf(fmt.Sprint("other ", k%1000)), request())
				if err != nil || rec.State != umavez.Done {
					b.Errorf("%v, %v", rec.State, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "replays/s")
}

func BenchmarkOpen(b *testing.B) {
	path := file(b)
	open(b, path, Options{})
	for b.Loop() {
		s, err := Open(b.Context(), path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// fillWith makes n done keys, in one transaction.
func fillWith(b *testing.B, s *Store, from, n int) {
	b.Helper()
	err := s.batches.Do(b.Context(), newTask("fill", func(tx *tx) error {
		tx.wrote = true
		for i := range n {
			row := umavez.Row{
				Phase: umavez.PhaseDone, Attempt: umavez.NewAttemptID(), Answer: benchAnswer,
				Until: tx.now.Add(time.Hour), Gone: tx.now.Add(2 * time.Hour),
			}
			g := group{ops: []*op{{id: idOf(fmt.Sprint("other ", from+i))}}, found: found{row: row}}
			if _, err := tx.insert(&g); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		b.Fatal(err)
	}
}

// plain is the driver alone, on a file with the same schema and settings.
type plain struct {
	stmts map[string]driver.Stmt
	dc    driver.Conn
	owner []byte
	n     uint64
}

func newPlain(b *testing.B) *plain {
	b.Helper()
	path := file(b)
	if err := create(path); err != nil {
		b.Fatal(err)
	}
	connector, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		b.Fatal(err)
	}
	dc, err := connector.Connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	p := &plain{dc: dc, stmts: map[string]driver.Stmt{}, owner: make([]byte, 16)}
	b.Cleanup(func() {
		for _, s := range p.stmts {
			_ = s.Close()
		}
		_ = dc.Close()
	})
	for _, set := range settings(writing, Options{}) {
		if _, err := dc.(driver.ExecerContext).ExecContext(b.Context(), "PRAGMA "+set.name+" = "+set.value, nil); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := dc.(driver.ExecerContext).ExecContext(context.Background(), Schema(), nil); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *plain) prepared(b *testing.B, sql string) driver.Stmt {
	s := p.stmts[sql]
	if s == nil {
		var err error
		if s, err = p.dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), sql); err != nil {
			b.Fatal(err)
		}
		p.stmts[sql] = s
	}
	return s
}

func (p *plain) exec(b *testing.B, sql string, args []driver.NamedValue) {
	if _, err := p.prepared(b, sql).(driver.StmtExecContext).ExecContext(context.Background(), args); err != nil {
		b.Fatal(err)
	}
}

// pairs inserts and updates n rows, in transactions of size statements, sorted
// like the store's. Of one statement: an INSERT, then an UPDATE. Of more: as many
// of each as there is room for. It returns the time it took.
func (p *plain) pairs(b *testing.B, n, size int) time.Duration {
	b.Helper()
	began := time.Now()
	half := max(1, size/2)
	for i := 0; i < n; i += half {
		ids := make([]umavez.ID, min(half, n-i))
		for j := range ids {
			ids[j] = idOf(fmt.Sprint(p.n + uint64(j)))
		}
		slices.SortFunc(ids, func(x, y umavez.ID) int { return bytes.Compare(x[:], y[:]) })
		p.exec(b, texts[stBegin], nil)
		for j := range ids {
			p.insert(b, &ids[j])
		}
		if size == 1 {
			p.exec(b, texts[stCommit], nil)
			p.exec(b, texts[stBegin], nil)
		}
		for j := range ids {
			p.update(b, p.n+uint64(j)+1) // rowids count inserts
		}
		p.exec(b, texts[stCommit], nil)
		p.n += uint64(len(ids))
	}
	return time.Since(began)
}

func (p *plain) insert(b *testing.B, id *umavez.ID) {
	row := umavez.Row{Phase: umavez.PhaseRunning, Route: "POST /pagamentos", Until: 1}
	args := make([]driver.NamedValue, columnCount+3)
	encode(args, &row)
	args[columnCount+1].Value, args[columnCount+2].Value = p.owner, id[:]
	p.exec(b, texts[stInsert], ordinals(args))
}

func (p *plain) update(b *testing.B, rowid uint64) {
	row := umavez.Row{Phase: umavez.PhaseDone, Route: "POST /pagamentos", Answer: benchAnswer, Until: 2, Gone: 3}
	args := make([]driver.NamedValue, columnCount+3)
	encode(args, &row)
	args[columnCount].Value, args[columnCount+2].Value = due(&row), int64(rowid)
	p.exec(b, texts[stUpdate], ordinals(args))
}

func ordinals(args []driver.NamedValue) []driver.NamedValue {
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}

// onDisk skips a benchmark of syncs where there is no disk to sync to.
func onDisk(b *testing.B) {
	b.Helper()
	const tmpfs = 0x01021994
	dir := b.TempDir()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		b.Fatal(err)
	}
	if st.Type == tmpfs {
		b.Skipf("%s is in memory, where a sync costs nothing: set TMPDIR to a directory on a disk", dir)
	}
}

package groupcommit

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
)

func TestCloseWaitsForWhatWasTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &disk{takes: time.Second}
		b := New(Config[*testOp]{Flush: d.flush, MaxRows: 1})
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if err := b.Do(t.Context(), opOn(byte(i))); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returned %v before its batches ended", err)
		}
		wantStoreError(t, b.Do(t.Context(), opOn(9)), "claim", umavez.No, ErrClosed)
		for range 2 { // closing again is the same
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Close returned after %v, want the time of three batches", took)
		}
		wg.Wait()
	})
}

func TestNoGoroutineWithoutWork(t *testing.T) {
	d := new(disk)
	before := runtime.NumGoroutine()
	b := New(Config[*testOp]{Flush: d.flush})
	if n := runtime.NumGoroutine(); n != before {
		t.Errorf("New started %d goroutines", n-before)
	}
	// The bubble ends with a panic if a goroutine is left in it.
	bubble(t, func(t *testing.T) {
		b := New(Config[*testOp]{Flush: d.flush})
		for range 10 {
			if err := b.Do(t.Context(), opOn(1)); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestResultsAreTrue lets callers of all kinds come and go at random and holds
// every result against what the disk says.
func TestResultsAreTrue(t *testing.T) {
	for seed := range uint64(50) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var rndMu sync.Mutex
			chance := func(n int) int { rndMu.Lock(); defer rndMu.Unlock(); return rnd.IntN(n) }
			d := &disk{takes: time.Millisecond}
			d.fail = func(_ context.Context, ops []*testOp, errs []error) error {
				if chance(10) == 0 {
					return errDisk // not applied, but they are told Maybe
				}
				for i := range ops {
					switch chance(20) {
					case 0:
						errs[i] = umavez.ErrLeaseLost
					case 1:
						errs[i] = &Alone{Err: umavez.ErrHasSteps}
					}
				}
				return nil
			}
			b := New(Config[*testOp]{
				Flush: d.flush, InFlight: 1 + chance(2), MaxRows: 1 + chance(20),
				MaxQueue: 1 + chance(60), OnePerKey: chance(2) == 0,
			})
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for range 5 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(chance(5000))*time.Microsecond)
						op := opOn(byte(chance(8)))
						err := b.Do(ctx, op)
						cancel()
						checkResult(t, seed, op, err)
					}
				})
			}
			wg.Wait()
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if s := b.Stats(); s.Queued != 0 || s.InFlight != 0 {
				t.Errorf("seed %d: left over: %+v", seed, s)
			}
		})
	}
}

func checkResult(t *testing.T, seed uint64, op *testOp, err error) {
	t.Helper()
	se, failed := errors.AsType[*umavez.StoreError](err)
	switch {
	case failed && se.Applied == umavez.Maybe:
		return // the flush may still be at it: the operation is not to be looked at
	case err == nil && op.applied != 1:
		t.Errorf("seed %d: done, but applied %d times", seed, op.applied)
	case err != nil && op.applied != 0:
		t.Errorf("seed %d: %v, but applied %d times", seed, err, op.applied)
	}
}

func TestDoAllocatesLittle(t *testing.T) {
	b := New(Config[*testOp]{Flush: func(context.Context, []*testOp, []error) error { return nil }})
	op := opOn(1)
	got := testing.AllocsPerRun(200, func() {
		if err := b.Do(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	})
	// What is left is the batch's: a context with a deadline, a timer, a
	// goroutine. Batches of many share it.
	if got > 12 {
		t.Errorf("an operation alone in its batch costs %v allocations, want at most 12", got)
	}
}

func BenchmarkAlone(b *testing.B) {
	g := New(Config[*testOp]{Flush: func(context.Context, []*testOp, []error) error { return nil }})
	op := opOn(1)
	b.ReportAllocs()
	for b.Loop() {
		_ = g.Do(b.Context(), op)
	}
}

func BenchmarkShared(b *testing.B) {
	g := New(Config[*testOp]{Flush: func(context.Context, []*testOp, []error) error { return nil }})
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		op := opOn(1)
		for pb.Next() {
			_ = g.Do(b.Context(), op)
		}
	})
	s := g.Stats()
	b.ReportMetric(float64(s.Rows)/float64(s.Batches), "rows/batch")
}

package groupcommit

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
)

func TestIdleFlushesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := new(disk)
		b := New(Config[*testOp]{Flush: d.flush})
		start := time.Now()
		for range 3 {
			if err := b.Do(t.Context(), opOn(1)); err != nil {
				t.Fatal(err)
			}
		}
		if late := time.Since(start); late != 0 {
			t.Errorf("three operations on an idle batcher waited %v, want 0", late)
		}
		if got := d.sizes(); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("batches of %v, want one operation in each of three", got)
		}
	})
}

func TestWhatWaitsSharesABatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &disk{takes: 10 * time.Millisecond}
		b := New(Config[*testOp]{Flush: d.flush})
		d.fail = func(context.Context, []*testOp, []error) error {
			if b.Idle() {
				t.Error("a batcher of one flight is idle while it flushes")
			}
			return nil
		}
		ops := make([]*testOp, 64)
		for i := range ops {
			ops[i] = opOn(byte(i))
		}
		start := time.Now()
		for i, err := range behindAnother(t, b, ops...) {
			if err != nil || ops[i].applied != 1 {
				t.Fatalf("operation %d: %v, applied %d times", i, err, ops[i].applied)
			}
		}
		if took := time.Since(start); took != 2*d.takes {
			t.Errorf("took %v, want the time of two batches, %v", took, 2*d.takes)
		}
		if got := d.sizes(); !slices.Equal(got, []int{1, 64}) {
			t.Errorf("batches of %v, want 1 and 64", got)
		}
		s := b.Stats()
		if s.Batches != 2 || s.Rows != 65 || s.Largest != 64 || s.Queued != 0 {
			t.Errorf("stats are %+v", s)
		}
	})
}

func TestBatchIsSortedAndKeepsAKeysOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &disk{takes: time.Millisecond}
		b := New(Config[*testOp]{Flush: d.flush})
		var ops []*testOp
		for i := range 60 {
			op := opOn(byte(i * 37 % 20)) // each key three times
			op.size = i                   // tells arrivals apart
			ops = append(ops, op)
		}
		behindAnother(t, b, ops...)
		batch := d.batches[1]
		if len(batch) != len(ops) {
			t.Fatalf("the batch has %d operations, want %d", len(batch), len(ops))
		}
		sorted := slices.IsSortedFunc(batch, func(x, y *testOp) int {
			if c := bytes.Compare(x.key[:], y.key[:]); c != 0 {
				return c
			}
			return x.size - y.size
		})
		if !sorted {
			t.Error("the batch is not sorted by key, and by arrival within a key")
		}
	})
}

func TestBounds(t *testing.T) {
	kib := func(sizes ...int) []*testOp {
		var ops []*testOp
		for i, s := range sizes {
			ops = append(ops, &testOp{name: "complete", key: umavez.ID{byte(i)}, size: s << 10})
		}
		return ops
	}
	for _, c := range []struct {
		name string
		cfg  Config[*testOp]
		ops  []*testOp
		want []int // the first is the operation in front
	}{
		{"rows by default", Config[*testOp]{}, make600(), []int{1, 256, 256, 88}},
		{"rows", Config[*testOp]{MaxRows: 2}, kib(1, 1, 1, 1, 1), []int{1, 2, 2, 1}},
		{"bytes", Config[*testOp]{}, kib(400, 400, 400, 1), []int{1, 2, 2}},
		{"a larger one alone", Config[*testOp]{}, kib(1, 2000, 1, 1), []int{1, 1, 1, 2}},
		{"a larger one alone, first", Config[*testOp]{}, kib(2000, 1, 1), []int{1, 1, 2}},
		{
			"one for each key",
			Config[*testOp]{OnePerKey: true},
			[]*testOp{opOn(1), opOn(2), opOn(1), opOn(1), opOn(3)},
			[]int{1, 3, 1, 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := &disk{takes: time.Millisecond}
				c.cfg.Flush = d.flush
				for i, err := range behindAnother(t, New(c.cfg), c.ops...) {
					if err != nil || c.ops[i].applied != 1 {
						t.Fatalf("operation %d: %v, applied %d times", i, err, c.ops[i].applied)
					}
				}
				if got := d.sizes(); !slices.Equal(got, c.want) {
					t.Errorf("batches of %v, want %v", got, c.want)
				}
			})
		})
	}
}

func make600() []*testOp {
	ops := make([]*testOp, 600)
	for i := range ops {
		ops[i] = &testOp{name: "claim", key: umavez.ID{byte(i), byte(i >> 8)}}
	}
	return ops
}

func TestOneBatchInFlight(t *testing.T) {
	for _, places := range []int{1, 2} {
		bubble(t, func(t *testing.T) {
			d := &disk{takes: time.Millisecond}
			b := New(Config[*testOp]{Flush: d.flush, InFlight: places, MaxRows: 2})
			ops := make600()[:20]
			behindAnother(t, b, ops...)
			if d.most != places {
				t.Errorf("%d batches were in flight at once, want %d", d.most, places)
			}
		})
	}
}

func TestHungBatchStopsOnlyItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		d := new(disk)
		d.fail = func(_ context.Context, ops []*testOp, _ []error) error {
			if ops[0].key == (umavez.ID{7}) {
				<-release
			}
			return nil
		}
		b := New(Config[*testOp]{Flush: d.flush, InFlight: 2})
		if !b.Idle() {
			t.Error("a new batcher is not idle")
		}
		start := time.Now()
		hung := make(chan error)
		go func() { hung <- b.Do(t.Context(), opOn(7)) }()
		synctest.Wait()
		for range 5 {
			if err := b.Do(t.Context(), opOn(1)); err != nil {
				t.Fatal(err)
			}
		}
		if late := time.Since(start); late != 0 {
			t.Errorf("others waited %v for the hung batch", late)
		}
		if !b.Idle() {
			t.Error("with one of two batches in flight, the next is flushed at once")
		}
		// Its own caller does not wait for ever, and is told what is known.
		wantStoreError(t, <-hung, "claim", umavez.Maybe, ErrHung)
		if took, want := time.Since(start), defaultMaxTime+defaultMaxTime/4; took != want {
			t.Errorf("the hung batch was given up on after %v, want %v", took, want)
		}
		if s := b.Stats(); s.GivenUp != 1 || s.InFlight != 1 {
			t.Errorf("stats are %+v, want one batch given up on, and still in flight", s)
		}
		close(release)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A flush that heeds its context ends later than MaxTime by a little, and then
// its own word counts.
func TestBatchThatEndsLateIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cause := errors.New("gave up")
		b := New(Config[*testOp]{Flush: func(ctx context.Context, _ []*testOp, _ []error) error {
			<-ctx.Done()
			<-time.After(10 * time.Millisecond)
			return &umavez.StoreError{Op: "begin", Applied: umavez.No, Err: cause}
		}})
		wantStoreError(t, b.Do(t.Context(), opOn(1)), "claim", umavez.No, cause)
	})
}

package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
)

var errDisk = errors.New("disk")

func TestFailedBatchIsThatForEach(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want umavez.Applied
	}{
		{"nothing said", errDisk, umavez.Maybe},
		{"maybe", &umavez.StoreError{Op: "commit", Err: errDisk}, umavez.Maybe},
		{"no", fmt.Errorf("x: %w", &umavez.StoreError{Op: "begin", Applied: umavez.No, Err: errDisk}), umavez.No},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := &disk{takes: time.Millisecond}
				d.fail = func(_ context.Context, ops []*testOp, errs []error) error {
					if len(ops) == 1 {
						return nil // the one in front
					}
					errs[0] = umavez.ErrLeaseLost // must not be heard
					return c.err
				}
				b := New(Config[*testOp]{Flush: d.flush})
				ops := []*testOp{opOn(1), opOn(2), {name: "complete", key: umavez.ID{3}}}
				for i, err := range behindAnother(t, b, ops...) {
					wantStoreError(t, err, ops[i].name, c.want, errDisk)
				}
			})
		})
	}
}

func TestOneBadRowFailsOneCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &disk{takes: time.Millisecond}
		d.fail = func(_ context.Context, ops []*testOp, errs []error) error {
			for i, op := range ops {
				switch op.key[0] {
				case 2: // an answer
					errs[i] = umavez.ErrLeaseLost
				case 4: // locked while in company
					if len(ops) > 1 {
						errs[i] = &Alone{Err: errDisk}
					}
				case 6: // refused, alone too
					errs[i] = &Alone{Err: errDisk}
				}
			}
			return nil
		}
		b := New(Config[*testOp]{Flush: d.flush})
		ops := []*testOp{opOn(1), opOn(2), opOn(3), opOn(4), opOn(5), opOn(6), opOn(7)}
		want := []error{nil, umavez.ErrLeaseLost, nil, nil, nil, errDisk, nil}
		for i, err := range behindAnother(t, b, ops...) {
			if !errors.Is(err, want[i]) {
				t.Errorf("operation on key %d: %v, want %v", i+1, err, want[i])
			}
			if applied := ops[i].applied; (applied == 1) != (want[i] == nil) {
				t.Errorf("operation on key %d was applied %d times", i+1, applied)
			}
		}
		if got := d.sizes(); !slices.Equal(got, []int{1, 7, 1, 1}) {
			t.Errorf("batches of %v, want 1, 7 and two alone", got)
		}
	})
}

// What was refused goes alone turn about with what waits: many refused
// operations, each waiting for a lock, do not keep the others out.
func TestRefusedOperationsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &disk{takes: time.Millisecond}
		d.fail = func(_ context.Context, ops []*testOp, errs []error) error {
			for i, op := range ops {
				if op.key[0] < 10 && len(ops) > 1 {
					errs[i] = &Alone{Err: errDisk}
				}
			}
			return nil
		}
		b := New(Config[*testOp]{Flush: d.flush, MaxRows: 10})
		var ops []*testOp
		for i := range 20 {
			ops = append(ops, opOn(byte(i)))
		}
		behindAnother(t, b, ops...)
		want := []int{1, 10, 1, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1}
		if got := d.sizes(); !slices.Equal(got, want) {
			t.Errorf("batches of %v, want %v", got, want)
		}
	})
}

func TestCallerLeavesQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &disk{takes: time.Second}
		b := New(Config[*testOp]{Flush: d.flush})
		go func() { _ = b.Do(t.Context(), opOn(1)) }()
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		op := opOn(2)
		wantStoreError(t, b.Do(ctx, op), "claim", umavez.No, context.DeadlineExceeded)
		if took := time.Since(start); took != time.Millisecond {
			t.Errorf("the caller left after %v, want at once", took)
		}
		if s := b.Stats(); s.Queued != 0 {
			t.Errorf("%d operations are queued after their caller left", s.Queued)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if op.applied != 0 || len(d.batches) != 1 {
			t.Error("an operation was applied though its caller was told that it was not")
		}
	})
}

func TestCallerLeavesBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &disk{takes: time.Second}
		b := New(Config[*testOp]{Flush: d.flush})
		cause := errors.New("hung up")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error)
		op := opOn(1)
		go func() { got <- b.Do(ctx, op) }()
		synctest.Wait()
		start := time.Now()
		cancel(cause)
		wantStoreError(t, <-got, "claim", umavez.Maybe, cause)
		if took := time.Since(start); took != 0 {
			t.Errorf("the caller left after %v, want at once", took)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if op.applied != 1 {
			t.Error("the batch did not go on without its caller")
		}
	})
}

func TestEndedContextAppliesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := new(disk)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := New(Config[*testOp]{Flush: d.flush}).Do(ctx, opOn(1))
		wantStoreError(t, err, "claim", umavez.No, context.Canceled)
		if len(d.batches) != 0 {
			t.Error("an operation was flushed whose context had ended before")
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config[*testOp]
	}{
		{"rows", Config[*testOp]{MaxQueue: 3}},
		{"bytes", Config[*testOp]{MaxQueueBytes: 39}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := &disk{takes: time.Second}
				c.cfg.Flush = d.flush
				b := New(c.cfg)
				go func() { _ = b.Do(t.Context(), opOn(0)) }()
				synctest.Wait()
				for i := range 3 {
					go func() { _ = b.Do(t.Context(), &testOp{name: "claim", key: umavez.ID{byte(i)}, size: 10}) }()
				}
				synctest.Wait()
				start := time.Now()
				err := b.Do(t.Context(), &testOp{name: "claim", size: 10})
				wantStoreError(t, err, "claim", umavez.No, ErrFull)
				if took := time.Since(start); took != 0 {
					t.Errorf("a full queue answered after %v, want at once", took)
				}
				if err := b.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if s := b.Stats(); s.Rows != 4 {
					t.Errorf("%d rows were flushed, want the 4 that fitted", s.Rows)
				}
			})
		})
	}
}

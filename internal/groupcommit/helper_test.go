package groupcommit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
)

// testOp is an operation that remembers how often it was applied.
type testOp struct {
	name    string
	key     umavez.ID
	size    int
	applied int
}

func (o *testOp) Name() string   { return o.name }
func (o *testOp) Key() umavez.ID { return o.key }
func (o *testOp) Size() int      { return o.size }

func opOn(key byte) *testOp { return &testOp{name: "claim", key: umavez.ID{key}} }

// disk is a store's disk: it takes a time for each batch and remembers them.
type disk struct {
	mu      sync.Mutex
	batches [][]*testOp
	under   int // batches under way
	most    int // the most that were under way at once

	takes time.Duration
	// fail, if set, may put results into errs or fail the batch.
	fail func(ctx context.Context, ops []*testOp, errs []error) error
}

func (d *disk) flush(ctx context.Context, ops []*testOp, errs []error) error {
	d.mu.Lock()
	d.batches = append(d.batches, append([]*testOp(nil), ops...))
	d.under++
	d.most = max(d.most, d.under)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.under--
	}()
	if d.takes > 0 {
		<-time.After(d.takes)
	}
	if d.fail != nil {
		if err := d.fail(ctx, ops, errs); err != nil {
			return err
		}
	}
	for i, o := range ops {
		if errs[i] == nil {
			o.applied++
		}
	}
	return nil
}

// sizes returns how many operations each batch had.
func (d *disk) sizes() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	var n []int
	for _, b := range d.batches {
		n = append(n, len(b))
	}
	return n
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// behindAnother occupies the batcher with one operation, then starts a Do for
// each of ops, in order, so that they all wait for the next batch. It returns
// their results once all have come.
func behindAnother(t *testing.T, b *Batcher[*testOp], ops ...*testOp) []error {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.Do(t.Context(), &testOp{name: "first", key: umavez.ID{0xFF}}); err != nil {
			t.Errorf("the operation in front: %v", err)
		}
	})
	synctest.Wait()
	results := make([]error, len(ops))
	for i, op := range ops {
		wg.Go(func() { results[i] = b.Do(t.Context(), op) })
		synctest.Wait() // in order of ops
	}
	wg.Wait()
	return results
}

// wantStoreError fails the test unless err is a StoreError of this operation
// with this Applied and cause.
func wantStoreError(t *testing.T, err error, op string, applied umavez.Applied, cause error) {
	t.Helper()
	se, ok := errors.AsType[*umavez.StoreError](err)
	if !ok {
		t.Fatalf("error is %v, want a *StoreError", err)
	}
	if se.Op != op || se.Applied != applied || !errors.Is(err, cause) {
		t.Fatalf("error is %q, want op %s, applied %v, cause %q", err, op, applied, cause)
	}
}

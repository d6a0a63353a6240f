package sqlitestore

import (
	"context"
	"runtime"
	"sync"
)

// yield lets others run, in a loop that waits for a condition.
func yield() { runtime.Gosched() }

// occupy keeps the writer at work until release is called.
func occupy(s *Store) (release func()) {
	gate := make(chan struct{})
	var wg sync.WaitGroup
	before := s.Stats().Batches
	wg.Go(func() {
		_ = s.batches.Do(context.Background(), newTask("hold", func(*tx) error { <-gate; return nil }))
	})
	for s.Stats().Batches == before {
		yield()
	}
	return func() {
		close(gate)
		wg.Wait()
	}
}

// together makes n calls that share one batch: it keeps the writer occupied
// until all of them wait.
func together(s *Store, n int, call func(i int) error) []error {
	release := occupy(s)
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	for s.Stats().Queued < n {
		yield()
	}
	release()
	wg.Wait()
	return errs
}

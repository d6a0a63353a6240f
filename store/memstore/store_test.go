package memstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

func mustClaim(t *testing.T, s *memstore.Store, n uint64) umavez.Lease {
	t.Helper()
	rec, acquired, err := s.Claim(t.Context(), numbered(n), request(n))
	if err != nil || !acquired {
		t.Fatalf("claim of key %d: acquired %v, error %v", n, acquired, err)
	}
	return umavez.Lease{ID: numbered(n), Attempt: request(n).Attempt, Fence: rec.Fence}
}

// wantFull checks that a call was refused for want of room, and that its caller
// is told that nothing was written.
func wantFull(t *testing.T, call string, err error) {
	t.Helper()
	if !errors.Is(err, memstore.ErrFull) || umavez.AppliedOf(err) != umavez.No {
		t.Errorf("%s in a full store: %v, want ErrFull in a StoreError that says no", call, err)
	}
}

// TestFullStoreKeepsWhatItHas: a full store refuses new keys, and serves the
// ones that it has: running ones end, lost ones stay, done ones answer.
func TestFullStoreKeepsWhatItHas(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now, MaxRecords: 3})
	running, lost := mustClaim(t, s, 0), mustClaim(t, s, 1)
	finish(t, s, 2, []byte("aprovado"))
	c.Advance(time.Minute) // the leases are over

	_, _, err := s.Claim(t.Context(), numbered(3), request(3))
	wantFull(t, "claim", err)
	wantFull(t, "release", s.Release(t.Context(), umavez.Lease{ID: numbered(3), Attempt: request(3).Attempt}))
	if s.Len() != 3 {
		t.Errorf("the store holds %d records, want 3", s.Len())
	}

	if err := s.Extend(t.Context(), running, time.Minute); err != nil {
		t.Errorf("extend in a full store: %v", err)
	}
	if err := s.Complete(t.Context(), running, []byte("late"), benchKeep); err != nil {
		t.Errorf("complete in a full store: %v", err)
	}
	for n, want := range []umavez.State{umavez.Done, umavez.Lost, umavez.Done} {
		rec, acquired, err := s.Claim(t.Context(), numbered(uint64(n)), request(9))
		if err != nil || acquired || rec.State != want {
			t.Errorf("claim of key %d in a full store: %v, acquired %v, error %v; want %v", n, rec.State, acquired, err, want)
		}
	}
	if rec, err := s.Get(t.Context(), lost.ID); err != nil || rec.State != umavez.Lost {
		t.Errorf("the lost record is %v, error %v", rec.State, err)
	}
}

// TestFullStorePurgesWhatIsDue: a new key finds room as soon as something is
// over, in whatever shard, without anybody calling Purge.
func TestFullStorePurgesWhatIsDue(t *testing.T) {
	const held = 500
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now, MaxRecords: held})
	for n := range uint64(held) {
		finish(t, s, n, []byte("a"))
	}
	_, _, err := s.Claim(t.Context(), numbered(held), request(held))
	wantFull(t, "claim", err)

	c.Advance(benchKeep.Retain) // answers are over; tombstones still need their room
	_, _, err = s.Claim(t.Context(), numbered(held), request(held))
	wantFull(t, "claim", err)

	c.Advance(benchKeep.Tombstone)
	for n := range uint64(held) {
		mustClaim(t, s, held+n)
	}
	_, _, err = s.Claim(t.Context(), numbered(2*held), request(2*held))
	wantFull(t, "claim", err)
	if s.Len() != held {
		t.Errorf("the store holds %d records, want %d", s.Len(), held)
	}
}

// TestFullStoreUnderLoad: many who claim new keys at once never get the store
// beyond its bound, and together fill it to the last place.
func TestFullStoreUnderLoad(t *testing.T) {
	const room, callers, each = 300, 8, 100
	s := memstore.New(memstore.Options{MaxRecords: room})
	var wg sync.WaitGroup
	var won, refused int
	var mu sync.Mutex
	for caller := range uint64(callers) {
		wg.Go(func() {
			for n := range uint64(each) {
				_, acquired, err := s.Claim(t.Context(), numbered(caller*each+n), request(caller*each+n))
				mu.Lock()
				if acquired {
					won++
				}
				if errors.Is(err, memstore.ErrFull) {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if won != room || refused != callers*each-room || s.Len() != room {
		t.Errorf("won %d, refused %d, records %d; want %d, %d, %d", won, refused, s.Len(), room, callers*each-room, room)
	}
}

// TestReleasedRowsAreOver: what is claimed and released over and over under new
// keys does not fill the store for ever.
func TestReleasedRowsAreOver(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now, MaxRecords: 10})
	for n := range uint64(100) {
		if err := s.Release(t.Context(), mustClaim(t, s, n)); err != nil {
			t.Fatal(err)
		}
		c.Advance(umavez.ReleasedKept / 10)
	}
	if s.Len() > 10 {
		t.Errorf("the store holds %d records, want at most 10", s.Len())
	}
}

// TestDefaultClock: without a clock of its own the store runs by the process's,
// so that synctest's virtual time drives it.
func TestDefaultClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		lease := mustClaim(t, s, 1)
		<-time.After(14 * time.Second)
		if rec, _ := s.Get(t.Context(), lease.ID); rec.State != umavez.Running || rec.LeaseLeft != time.Second {
			t.Errorf("after 14 of 15 s the record is %v with %v left", rec.State, rec.LeaseLeft)
		}
		<-time.After(time.Second)
		if rec, _ := s.Get(t.Context(), lease.ID); rec.State != umavez.Lost || rec.Since != 0 {
			t.Errorf("after 15 of 15 s the record is %v for %v", rec.State, rec.Since)
		}
	})
}

func TestNewRefusesNonsense(t *testing.T) {
	for _, o := range []memstore.Options{{MaxRecords: -1}, {MaxAudit: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New took %+v", o)
				}
			}()
			memstore.New(o)
		}()
	}
}

func TestPurgeEndsWithItsContext(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Options{Now: c.Now})
	for n := range uint64(10) {
		finish(t, s, n, nil)
	}
	c.Advance(benchKeep.Retain + benchKeep.Tombstone)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := s.Purge(ctx, 100); n != 0 || umavez.AppliedOf(err) != umavez.No || !errors.Is(err, context.Canceled) {
		t.Errorf("purge with a context that is over: %d rows, error %v", n, err)
	}
	if n, err := s.Purge(t.Context(), 100); n != 10 || err != nil || s.Len() != 0 {
		t.Errorf("purge: %d rows, error %v, %d left; want 10, none, 0", n, err, s.Len())
	}
}

// TestPurgeAgainstCalls lets purges race with claims, completions and late
// completions on a few keys, whose retention is over at once. Whoever is told
// that a claim was granted must be told that its completion counted.
func TestPurgeAgainstCalls(t *testing.T) {
	s := memstore.New(memstore.Options{})
	var callers, purger sync.WaitGroup
	stop := make(chan struct{})
	purger.Go(func() {
		for {
			if _, err := s.Purge(t.Context(), 10); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for caller := range uint64(4) {
		callers.Go(func() {
			for n := range uint64(2000) {
				id, req := numbered(n%8), request(caller<<32|n)
				_, acquired, err := s.Claim(t.Context(), id, req)
				if err != nil {
					t.Error(err)
				}
				if !acquired {
					continue
				}
				lease := umavez.Lease{ID: id, Attempt: req.Attempt}
				if err := s.Complete(t.Context(), lease, []byte("a"), umavez.Retention{}); err != nil {
					t.Errorf("complete of a granted claim: %v", err)
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	purger.Wait()
	if _, err := s.Purge(t.Context(), 100); err != nil || s.Len() != 0 {
		t.Errorf("after all is over %d records are left, error %v", s.Len(), err)
	}
}

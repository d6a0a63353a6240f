package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// bounded is a claim in a scope that may have so many unsettled records.
func bounded(scope byte, most int) umavez.ClaimRequest {
	req := request()
	req.Namespace, req.Scope, req.MaxUnsettled = "loja", umavez.ScopeID{scope}, most
	return req
}

// wantClaim claims a key and fails the test unless that ends as it should.
func wantClaim(t *testing.T, s *Store, name string, req umavez.ClaimRequest, want error) umavez.Lease {
	t.Helper()
	rec, acquired, err := s.Claim(t.Context(), idOf(name), req)
	if !errors.Is(err, want) || acquired != (want == nil) {
		t.Fatalf("claim of %q: acquired %v, error %v, state %v; want error %v", name, acquired, err, rec.State, want)
	}
	return umavez.Lease{ID: idOf(name), Attempt: req.Attempt, Fence: rec.Fence}
}

func TestMaxUnsettled(t *testing.T) {
	s, c := fresh(t)
	leases := make([]umavez.Lease, 10)
	for i := range leases {
		leases[i] = wantClaim(t, s, fmt.Sprint(i), bounded(1, 10), nil)
	}
	refused := bounded(1, 10)
	rec, _, err := s.Claim(t.Context(), idOf("one more"), refused)
	if !errors.Is(err, umavez.ErrTooManyUnsettled) || rec.State != umavez.Vacant {
		t.Fatalf("the eleventh claim: %v, %v", err, rec.State)
	}
	if _, failure := errors.AsType[*umavez.StoreError](err); failure {
		t.Errorf("that is an answer, not a failure: %v", err)
	}
	// A key that is refused is shown as it is.
	other := claim(t, s, "released", request())
	if err := s.Release(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if rec, _, err := s.Claim(t.Context(), other.ID, bounded(1, 10)); err == nil || rec.Fence != other.Fence {
		t.Errorf("the claim of a released key: %v, fence %v, want the %v that it had", err, rec.Fence, other.Fence)
	}
	// Another scope, one without a bound, and nobody's are none of its business.
	wantClaim(t, s, "other scope", bounded(2, 10), nil)
	wantClaim(t, s, "nobody's", request(), nil)
	// Whoever has its key already is not asked.
	repeated := bounded(1, 10)
	repeated.Attempt = leases[3].Attempt
	wantClaim(t, s, "3", repeated, nil)
	// Lost records count as running ones do.
	c.advance(time.Hour)
	wantClaim(t, s, "one more", refused, umavez.ErrTooManyUnsettled)
	if err := s.Complete(t.Context(), leases[0], []byte("answer"), keep); err != nil {
		t.Fatal(err)
	}
	wantClaim(t, s, "one more", refused, nil)
	wantClaim(t, s, "another", bounded(1, 10), umavez.ErrTooManyUnsettled)
	// A done key is answered.
	if rec, _, err := s.Claim(t.Context(), idOf("0"), bounded(1, 10)); err != nil || string(rec.Answer) != "answer" {
		t.Errorf("a replay in a scope at its bound: %v, %v", err, rec.State)
	}
}

// The scope of nobody is bounded as any other.
func TestMaxUnsettledOfNobody(t *testing.T) {
	s, _ := fresh(t)
	req := request()
	req.MaxUnsettled = 1
	wantClaim(t, s, "a", req, nil)
	req.Attempt = umavez.NewAttemptID()
	wantClaim(t, s, "b", req, umavez.ErrTooManyUnsettled)
}

// A key that nobody has looked at is not refused for the bound: it may be done,
// or the caller's own.
func TestBoundIsForVacantKeysOnly(t *testing.T) {
	s, _ := fresh(t)
	done(t, s, "done", []byte("answer"))
	req := bounded(1, 1)
	l := wantClaim(t, s, "mine", req, nil)
	for range 2 { // as the writer remembers it, and as it reads it
		o := newClaim(l.ID, req)
		if err := s.batches.Do(t.Context(), o); err != nil || !o.acquired {
			t.Errorf("the repeat of a claim at the bound: %v, acquired %v", err, o.acquired)
		}
		s.writer.drop()
	}
	o := newClaim(idOf("done"), bounded(1, 1))
	if err := s.batches.Do(t.Context(), o); err != nil || string(o.rec.Answer) != "answer" {
		t.Errorf("a done key at the bound: %v, %+v", err, o.rec)
	}
	// Resuming what is lost, too, looks before it answers.
	resume := bounded(1, 1)
	resume.Resume, resume.TakeOver = true, l.Fence
	o = newClaim(l.ID, resume)
	o.absent = true // as if a reader had seen no row
	if err := s.batches.Do(t.Context(), o); err != nil || o.rec.State != umavez.Running {
		t.Errorf("resuming a record that runs: %v, %+v", err, o.rec)
	}
}

// Claims under the bound do not count each time: once, then again when the count
// is a second old or the bound is reached.
func TestUnsettledIsCountedSeldom(t *testing.T) {
	s, c := fresh(t)
	counted := func(f func()) uint64 {
		before := s.Stats().Recounted
		f()
		return s.Stats().Recounted - before
	}
	claims := func(from, n int) func() {
		return func() {
			for i := range n {
				wantClaim(t, s, fmt.Sprint(from+i), bounded(1, 100), nil)
			}
		}
	}
	if n := counted(claims(0, 50)); n != 1 {
		t.Errorf("fifty claims counted %d times, want once", n)
	}
	c.advance(recountAfter - time.Microsecond)
	if n := counted(claims(50, 10)); n != 0 {
		t.Errorf("within a second there were %d counts", n)
	}
	c.advance(time.Microsecond)
	if n := counted(claims(60, 10)); n != 1 {
		t.Errorf("after a second there were %d counts, want one", n)
	}
	c.advance(-time.Hour) // a clock that steps back makes no count last
	if n := counted(claims(70, 10)); n != 1 {
		t.Errorf("with the clock set back there were %d counts, want one", n)
	}
	if n := counted(claims(80, 20)); n != 0 {
		t.Errorf("up to the bound there were %d counts", n)
	}
	if n := counted(func() { wantClaim(t, s, "over", bounded(1, 100), umavez.ErrTooManyUnsettled) }); n != 1 {
		t.Errorf("at the bound there were %d counts, want one", n)
	}
	if n := counted(func() { wantClaim(t, s, "unbounded", request(), nil) }); n != 0 {
		t.Errorf("a claim without a bound made %d counts", n)
	}
}

// What was counted in a transaction that was not committed may not be so.
func TestUnsettledForgetsWithTheConnection(t *testing.T) {
	s, f := faulty(t)
	wantClaim(t, s, "a", bounded(1, 3), nil)
	f.set(once("COMMIT"), nil)
	_, _, err := s.Claim(t.Context(), idOf("b"), bounded(1, 3))
	wantApplied(t, err, umavez.Maybe)
	if n := len(s.writer.tx.unsettled.scopes); n != 0 {
		t.Errorf("after a failed commit %d scopes are remembered", n)
	}
	wantClaim(t, s, "c", bounded(1, 3), nil)
	wantClaim(t, s, "d", bounded(1, 3), nil)
	wantClaim(t, s, "e", bounded(1, 3), umavez.ErrTooManyUnsettled)
}

func TestUnsettledIsBoundedMemory(t *testing.T) {
	s, _ := fresh(t)
	err := s.batches.Do(t.Context(), newTask("count", func(tx *tx) error {
		for i := range 2 * countedScopes {
			if _, err := tx.unsettled.count(tx, umavez.ScopeID{byte(i), byte(i >> 8)}, 10); err != nil {
				return err
			}
			if n := len(tx.unsettled.scopes); n > countedScopes {
				return fmt.Errorf("%d scopes are remembered", n)
			}
		}
		return nil
	}))
	if err != nil {
		t.Error(err)
	}
}

// Callers of one process never get beyond the bound, in whatever batches. Two
// processes do by no more than one of them can claim in a second: here, where the
// clock stands still, each by what it was granted since its count.
func TestOvershootOfTwoStores(t *testing.T) {
	const most = 50
	for _, stores := range []int{1, 2} {
		path, c := file(t), newClock()
		open2 := make([]*Store, stores)
		for i := range open2 {
			open2[i] = open(t, path, Options{Now: c.Now})
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		granted := 0
		for w := range 16 {
			wg.Go(func() {
				for i := range 20 {
					_, acquired, err := open2[w%stores].Claim(context.Background(), idOf(fmt.Sprint(w, "/", i)), bounded(1, most))
					if err != nil && !errors.Is(err, umavez.ErrTooManyUnsettled) {
						t.Error(err)
					}
					if acquired {
						mu.Lock()
						granted++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d stores granted %d of a bound of %d", stores, granted, most)
		if granted < most || granted > stores*most || (stores == 1 && granted != most) {
			t.Errorf("%d stores granted %d claims of a bound of %d", stores, granted, most)
		}
		// The second over, both know.
		c.advance(recountAfter)
		for i, s := range open2 {
			wantClaim(t, s, fmt.Sprint("late ", i), bounded(1, most), umavez.ErrTooManyUnsettled)
		}
	}
}

//go:build unix

package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

func TestTwoProcessesRaceForTheSameKeys(t *testing.T) {
	const keys = 300
	path := file(t)
	one, two := start(t, path), start(t, path)
	one.tell(order{Do: "race", N: keys})
	two.tell(order{Do: "race", N: keys})
	won := [][]string{one.read().Won, two.read().Won}
	all := slices.Concat(won...)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != keys || len(all) != keys {
		t.Errorf("%d keys were claimed, %d times in all; want each of %d once", n, len(all), keys)
	}
	if len(won[0]) == 0 || len(won[1]) == 0 {
		t.Logf("one process won all keys: %d and %d", len(won[0]), len(won[1]))
	}
	one.end()
	two.end()
	s := open(t, path, Options{})
	for k := range keys {
		if rec := get(t, s, fmt.Sprint(k)); rec.State != umavez.Done || string(rec.Answer) != fmt.Sprint(k) {
			t.Fatalf("key %d is %v, answer %q", k, rec.State, rec.Answer)
		}
	}
}

// Neither of two processes that commit all the time is starved.
func TestTwoProcessesShareTheWriter(t *testing.T) {
	path := file(t)
	busy := start(t, path)
	busy.tell(order{Do: "load", N: 16})
	busy.read()
	var theirs atomic.Int64
	go func() { // the child would stop when nobody reads what it reports
		for busy.out.Scan() {
			theirs.Add(1)
		}
	}()
	s := open(t, path, Options{})
	// Counted in calls of the other process, and not in time, which says more of
	// the machine: some hundred are usual, and a second of them is some thousand.
	const starved = 20_000
	for i := range 200 {
		before := theirs.Load()
		done(t, s, fmt.Sprint("mine ", i), nil)
		if n := theirs.Load() - before; n > starved {
			t.Errorf("a claim and its completion waited for %d calls of a busy process", n)
		}
	}
	busy.kill()
}

func TestLeaseAndCompletionAcrossProcesses(t *testing.T) {
	path := file(t)
	other := start(t, path)
	c := newClock()
	c.now = time.Now()
	s := open(t, path, Options{Now: c.Now})

	// Claimed there, seen as running here, completed there, replayed here.
	a := umavez.NewAttemptID()
	if r := other.ask(order{Do: "claim", Key: "k", Attempt: a, Lease: time.Minute}); !r.Acquired {
		t.Fatalf("claim in the other process: %+v", r)
	}
	rec, acquired, err := s.Claim(t.Context(), idOf("k"), request())
	if err != nil || acquired || rec.State != umavez.Running || rec.Attempt != a {
		t.Fatalf("claim here: %v, %v, %+v; want running under the other's attempt", acquired, err, rec)
	}
	if r := other.ask(order{Do: "complete", Key: "k", Attempt: a, Answer: []byte("201")}); r.Err != "" {
		t.Fatalf("completion in the other process: %s", r.Err)
	}
	rec, acquired, err = s.Claim(t.Context(), idOf("k"), request())
	if err != nil || acquired || rec.State != umavez.Done || string(rec.Answer) != "201" {
		t.Fatalf("claim here: %v, %v, %+v; want the other's answer", acquired, err, rec)
	}

	// Claimed here; taken over there, once the lease is over by the clock.
	req := request()
	req.Policy, req.Lease = umavez.Rerunnable, time.Microsecond
	l := claim(t, s, "r", req)
	b := umavez.NewAttemptID()
	r := other.ask(order{Do: "claim", Key: "r", Attempt: b, Policy: umavez.Rerunnable, Lease: time.Minute, TakeOver: l.Fence})
	if !r.Acquired || r.Fence <= l.Fence {
		t.Fatalf("take-over in the other process: %+v, after fence %d", r, l.Fence)
	}
	if err := s.Complete(t.Context(), l, []byte("late"), keep); !errors.Is(err, umavez.ErrLeaseLost) {
		t.Errorf("completion here, after the take-over: %v, want ErrLeaseLost", err)
	}
	if r := other.ask(order{Do: "get", Key: "r"}); r.State != umavez.Running || r.Attempt != b {
		t.Errorf("after the late completion the other process sees %+v", r)
	}
	other.end()
}

// Every acknowledged claim and answer survives kill -9 of its process.
func TestKilledProcessLosesNothing(t *testing.T) {
	for round := range 3 {
		path := file(t)
		p := start(t, path)
		p.tell(order{Do: "load", N: 16})
		claimed, completed := map[string]umavez.AttemptID{}, map[string]bool{}
		note := func(r report) {
			if r.Claimed != "" {
				claimed[r.Claimed] = r.Attempt
			} else {
				completed[r.Completed] = true
			}
		}
		for range 500 + 300*round {
			note(p.read())
		}
		_ = p.cmd.Process.Kill()
		for p.out.Scan() { // what it acknowledged before it died counts
			note(p.parse())
		}
		_ = p.cmd.Wait()

		s := open(t, path, Options{})
		for key, attempt := range claimed {
			rec := get(t, s, key)
			switch {
			case rec.Attempt != attempt:
				t.Fatalf("round %d: key %s was claimed by %v, is %v of %v", round, key, attempt, rec.State, rec.Attempt)
			case completed[key] && (rec.State != umavez.Done || string(rec.Answer) != "answer to "+key):
				t.Fatalf("round %d: key %s was completed, is %v, answer %q", round, key, rec.State, rec.Answer)
			}
		}
		t.Logf("round %d: %d claims and %d answers were acknowledged and are there", round, len(claimed), len(completed))
	}
}

// While another process keeps the write lock, calls fail within bounds and say
// that nothing was applied; what only reads is answered; and after it all goes on.
func TestBusyFileIsBounded(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{BusyTimeout: 100 * time.Millisecond})
	done(t, s, "done", []byte("answer"))
	running := claim(t, s, "running", request())
	other := start(t, path)
	other.ask(order{Do: "hold"})

	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			began := time.Now()
			_, acquired, err := s.Claim(t.Context(), idOf(fmt.Sprint("new ", i)), request())
			if acquired {
				t.Error("a claim was granted while another process held the lock")
			}
			wantApplied(t, err, umavez.No)
			if took := time.Since(began); took > unhurried/2 {
				t.Errorf("the claim failed after %v", took)
			}
		})
	}
	wg.Wait()
	wantApplied(t, s.Complete(t.Context(), running, []byte("answer"), keep), umavez.No)
	if rec, _, err := s.Claim(t.Context(), idOf("done"), request()); err != nil || string(rec.Answer) != "answer" {
		t.Errorf("a replay while another process holds the lock: %v, %+v", err, rec)
	}
	if rec := get(t, s, "running"); rec.State != umavez.Running {
		t.Errorf("the running key is %v", rec.State)
	}

	other.ask(order{Do: "let go"})
	if err := s.Complete(t.Context(), running, []byte("answer"), keep); err != nil {
		t.Errorf("completion after the lock was let go: %v", err)
	}
	for i := range 8 {
		claim(t, s, fmt.Sprint("new ", i), request())
	}
	other.end()
}

// A caller that does not want to wait for another process leaves at once.
func TestCallerLeavesBusyFile(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{})
	other := start(t, path)
	other.ask(order{Do: "hold"})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	claimed := make(chan error, 1)
	before := s.Stats().Batches
	go func() {
		_, _, err := s.Claim(ctx, idOf("k"), request())
		claimed <- err
	}()
	for s.Stats().Batches == before {
		yield()
	}
	leave()
	wantApplied(t, <-claimed, umavez.Maybe) // its batch is under way
	other.ask(order{Do: "let go"})
	other.end()
}

// Two processes that make the same new file at the same time make one schema.
func TestProcessesMakeTheFileTogether(t *testing.T) {
	for range 3 {
		path := file(t)
		var wg sync.WaitGroup
		children := make([]*process, 4)
		for i := range children {
			wg.Go(func() { children[i] = start(t, path) })
		}
		wg.Wait()
		for _, p := range children {
			p.end()
		}
	}
}

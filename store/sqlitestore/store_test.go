package sqlitestore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

func TestLifeOfAKey(t *testing.T) {
	s, c := fresh(t)
	req := request()
	req.Request = []byte("body")
	l := claim(t, s, "k", req)
	c.advance(30 * time.Second)
	if err := s.Extend(t.Context(), l, time.Minute); err != nil {
		t.Fatal(err)
	}
	c.advance(45 * time.Second)
	rec := get(t, s, "k")
	if rec.State != umavez.Running || rec.LeaseLeft != 15*time.Second || rec.Age != 75*time.Second ||
		string(rec.Request) != "body" || rec.Route != req.Route || rec.Tries != 1 || rec.Fence == 0 {
		t.Errorf("the running record is %+v", rec)
	}
	c.advance(time.Minute)
	if rec := get(t, s, "k"); rec.State != umavez.Lost || rec.Reason != umavez.ReasonKilled {
		t.Errorf("after the lease the record is %+v", rec)
	}
	if err := s.Complete(t.Context(), l, []byte("answer"), keep); err != nil {
		t.Fatalf("the late completion: %v", err)
	}
	rec, acquired, err := s.Claim(t.Context(), idOf("k"), request())
	if err != nil || acquired || rec.State != umavez.Done || string(rec.Answer) != "answer" || rec.RetainLeft != keep.Retain {
		t.Errorf("the replay: %v, %v, %+v", acquired, err, rec)
	}
	c.advance(keep.Retain)
	if rec, acquired, err := s.Claim(t.Context(), idOf("k"), request()); err != nil || acquired || rec.State != umavez.Expired {
		t.Errorf("a late retry: %v, %v, %+v", acquired, err, rec)
	}
	c.advance(keep.Tombstone)
	if next := claim(t, s, "k", request()); next.Fence <= l.Fence {
		t.Errorf("the fence fell from %d to %d", l.Fence, next.Fence)
	}
}

func TestAnswersAreNoStoreErrors(t *testing.T) {
	s, _ := fresh(t)
	l := claim(t, s, "k", request())
	other := l
	other.Attempt = umavez.NewAttemptID()
	for name, err := range map[string]error{
		"complete": s.Complete(t.Context(), other, nil, keep),
		"release":  s.Release(t.Context(), other),
		"extend":   s.Extend(t.Context(), other, time.Hour),
		"abandon":  s.Abandon(t.Context(), other, umavez.ReasonPanic, nil),
		"step":     s.Checkpoint(t.Context(), other, "a", nil),
	} {
		if _, failure := errors.AsType[*umavez.StoreError](err); failure || !errors.Is(err, umavez.ErrLeaseLost) {
			t.Errorf("%s by another attempt: %v, want ErrLeaseLost, as an answer", name, err)
		}
	}
	if err := s.Checkpoint(t.Context(), l, "a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context(), l, "a", []byte("2")); !errors.Is(err, umavez.ErrStepKept) {
		t.Errorf("another result of the step: %v", err)
	}
	if err := s.Release(t.Context(), l); !errors.Is(err, umavez.ErrHasSteps) {
		t.Errorf("release with a step: %v", err)
	}
}

// Each field of a row comes back as it was written, and nil is not empty.
func TestRowsComeBackWhole(t *testing.T) {
	for _, row := range []umavez.Row{
		{Phase: umavez.PhaseVacant, Attempt: umavez.NewAttemptID(), Fence: 9, Since: 5, Until: 6},
		{
			Phase: umavez.PhaseRunning, Policy: umavez.Atomic, Tries: 1 << 30, Attempt: umavez.NewAttemptID(),
			Fingerprint: umavez.Fingerprint{
				Recipe: 1<<32 - 1, Sum: [32]byte(idOf("sum")), Parts: [umavez.FingerprintParts]uint32{1, 2, 1 << 31},
			},
			Fence: 1<<63 - 1, Route: "POST /\x00 é \xff", Ended: umavez.ReasonPanic,
			Namespace: "lo\x00ja \xff", Scope: umavez.ScopeID(umavez.NewAttemptID()), Label: strings.Repeat("é", umavez.MaxLabel/2),
			Claimed: 1, Since: 2, Until: 3, Gone: -4,
			Steps: []umavez.KeptStep{{Name: "a", Result: []byte("1")}, {Name: "", Result: []byte{}}, {Name: "\x00", Result: make([]byte, 300)}},
			Last:  []byte{}, Request: []byte{0, 1, 2},
			Holder: umavez.NewAttemptID(), HeldUntil: 77,
			Overruled: umavez.NewAttemptID(), Contradicted: true,
		},
		{Phase: umavez.PhaseDone, Settled: true, Attempt: umavez.NewAttemptID(), Answer: []byte{}, Until: 1, Gone: 2},
		{Phase: umavez.PhaseDone, Attempt: umavez.NewAttemptID(), Answer: bytes.Repeat([]byte{0xFE}, 100_000)},
	} {
		s, _ := fresh(t)
		id := idOf("k")
		for _, how := range []string{"inserted", "updated"} {
			task := newTask("test", func(tx *tx) error {
				tx.wrote = true
				if how == "inserted" {
					_, err := tx.insert(&group{ops: []*op{{id: id}}, found: found{row: row}})
					return err
				}
				row.Tries++
				return tx.update(&group{ops: []*op{{id: id}}, found: found{row: row, rowid: 1}}, false)
			})
			if err := s.batches.Do(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			got, there, err := s.writer.c.row(id)
			if err != nil || !there {
				t.Fatalf("%s: there %v, %v", how, there, err)
			}
			if !reflect.DeepEqual(got, row) {
				t.Errorf("%s\n%+v, comes back as\n%+v", how, row, got)
			}
		}
	}
}

func TestDamagedSteps(t *testing.T) {
	whole := encodeSteps([]umavez.KeptStep{{Name: "cobrar", Result: []byte("ok")}, {Name: "b"}})
	steps, err := decodeSteps(whole)
	if err != nil || len(steps) != 2 {
		t.Fatalf("%v, %v", steps, err)
	}
	for _, bad := range [][]byte{whole[:len(whole)-1], whole[:3], {0xFF}, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}} {
		if steps, err := decodeSteps(bad); err == nil {
			t.Errorf("%x was read as %v", bad, steps)
		}
	}
}

func TestLargeAnswer(t *testing.T) {
	s, _ := fresh(t)
	answer := make([]byte, 1<<20)
	_, _ = rand.Read(answer)
	done(t, s, "k", answer)
	if rec := get(t, s, "k"); !bytes.Equal(rec.Answer, answer) {
		t.Errorf("an answer of 1 MiB comes back with %d bytes", len(rec.Answer))
	}
	rec, _, err := s.Claim(t.Context(), idOf("k"), request())
	if err != nil || !bytes.Equal(rec.Answer, answer) {
		t.Errorf("the replay: %v, %d bytes", err, len(rec.Answer))
	}
}

// Three hundred claims that wait together: two transactions, each within the
// bounds, its rows in order of their keys, whatever order they came in.
func TestBatchedClaimsAreSorted(t *testing.T) {
	f := new(faults)
	s := open(t, file(t), Options{wrap: f.wrap})
	var ids [][]byte
	batches := []int{0}
	f.set(func(_ driver.Conn, sql string, args []driver.NamedValue) error {
		switch {
		case strings.HasPrefix(sql, "INSERT INTO umavez_record"):
			ids = append(ids, bytes.Clone(args[columnCount+1].Value.([]byte)))
			batches[len(batches)-1]++
		case sql == "COMMIT":
			batches = append(batches, 0)
		}
		return nil
	}, nil)
	errs := together(s, 300, func(i int) error {
		_, acquired, err := s.Claim(t.Context(), idOf(fmt.Sprint(i)), request())
		if !acquired && err == nil {
			return errors.New("not granted")
		}
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if want := []int{256, 44, 0}; !slices.Equal(batches, want) {
		t.Errorf("transactions of %v claims, want %v", batches, want)
	}
	for from, part := range [][][]byte{ids[:256], ids[256:]} {
		if !slices.IsSortedFunc(part, bytes.Compare) {
			t.Errorf("transaction %d is not sorted by key", from)
		}
	}
}

// A hundred racers for one key, in one batch or in several: one wins.
func TestRacersForOneKey(t *testing.T) {
	s, _ := fresh(t)
	for round := range 5 {
		var won int
		var mu sync.Mutex
		call := func(int) error {
			_, acquired, err := s.Claim(t.Context(), idOf(fmt.Sprint(round)), request())
			mu.Lock()
			defer mu.Unlock()
			if acquired {
				won++
			}
			return err
		}
		if err := errors.Join(together(s, 100, call)...); err != nil {
			t.Fatal(err)
		}
		if won != 1 {
			t.Fatalf("round %d: %d racers won", round, won)
		}
	}
}

// Many callers share commits; one caller has one for each call; and what writes
// nothing costs none.
func TestCallersShareCommits(t *testing.T) {
	s, _ := fresh(t)
	const callers, each = 64, 20
	var wg sync.WaitGroup
	for w := range callers {
		wg.Go(func() {
			for i := range each {
				done(t, s, fmt.Sprint(w, "/", i), []byte("answer"))
			}
		})
	}
	wg.Wait()
	st := s.Stats()
	if want := uint64(callers * each * 2); st.Calls != want {
		t.Errorf("%d calls were counted, want %d", st.Calls, want)
	}
	if st.Commits*4 > st.Calls || st.Largest < 8 {
		t.Errorf("%d calls of %d callers took %d commits, the largest of %d calls: they do not share", st.Calls, callers, st.Commits, st.Largest)
	}
	t.Logf("%d calls in %d commits, at most %d in one", st.Calls, st.Commits, st.Largest)

	for i := range 10 {
		done(t, s, fmt.Sprint("alone ", i), nil)
	}
	if n := s.Stats().Commits - st.Commits; n != 20 {
		t.Errorf("ten claims and completions of one caller took %d commits, want 20", n)
	}
	st = s.Stats()
	l := umavez.Lease{ID: idOf("0/0"), Attempt: umavez.NewAttemptID()}
	for range 5 {
		if err := s.Extend(t.Context(), l, time.Hour); !errors.Is(err, umavez.ErrLeaseLost) {
			t.Fatal(err)
		}
	}
	if n := s.Stats().Commits - st.Commits; n != 0 {
		t.Errorf("five calls that changed nothing took %d commits", n)
	}
}

// While the writer is at work, a done key is answered by a reader; any other key
// is not, since what a reader saw may be past when the claim is answered.
func TestReplaysDoNotWaitForTheWriter(t *testing.T) {
	s, c := fresh(t)
	done(t, s, "done", []byte("answer"))
	claim(t, s, "running", request())
	release := occupy(s)
	defer release()
	// Where the claim has to wait, its caller loses patience once it is queued.
	claimOf := func(name string) (umavez.Record, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for ctx.Err() == nil && s.Stats().Queued == 0 {
				yield()
			}
			cancel()
		})
		rec, _, err := s.Claim(ctx, idOf(name), request())
		cancel()
		return rec, err
	}
	if rec, err := claimOf("done"); err != nil || string(rec.Answer) != "answer" {
		t.Errorf("the replay of a done key: %v, %v", err, rec.State)
	}
	for _, name := range []string{"running", "new"} {
		rec, err := claimOf(name)
		if err == nil {
			t.Errorf("the claim of a %s key was answered without the writer: %v", name, rec.State)
			continue
		}
		wantApplied(t, err, umavez.No)
	}
	c.advance(keep.Retain)
	if rec, err := claimOf("done"); err != nil || rec.State != umavez.Expired {
		t.Errorf("the claim of an expired key: %v, %v", err, rec.State)
	}
	c.advance(keep.Tombstone)
	if rec, err := claimOf("done"); err == nil {
		t.Errorf("the claim of a key past its tombstone was answered without the writer: %v", rec.State)
	}
}

// Beside an idle writer a replay goes through it, and costs no commit.
func TestReplayCommitsNothing(t *testing.T) {
	s, _ := fresh(t)
	done(t, s, "done", []byte("answer"))
	before := s.Stats()
	for range 5 {
		rec, acquired, err := s.Claim(t.Context(), idOf("done"), request())
		if err != nil || acquired || string(rec.Answer) != "answer" {
			t.Fatalf("%v, %v, %+v", acquired, err, rec)
		}
	}
	if n := s.Stats().Commits - before.Commits; n != 0 {
		t.Errorf("five replays took %d commits", n)
	}
}

// The reader saw no row, and somebody else inserts one before the writer comes
// to it: the claim is held against that row all the same.
func TestKeyAppearsAfterTheLook(t *testing.T) {
	s, _ := fresh(t)
	first := claim(t, s, "k", request())
	for _, req := range []umavez.ClaimRequest{request(), {Attempt: first.Attempt, Lease: time.Hour}} {
		o := newClaim(idOf("k"), req) // which is to insert unseen
		if err := s.batches.Do(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o.rec.Attempt != first.Attempt || o.acquired != (o.req.Attempt == first.Attempt) || o.rec.Fence != first.Fence {
			t.Errorf("acquired %v, record %+v; the key is held by %+v", o.acquired, o.rec, first)
		}
	}
}

func TestEndedContext(t *testing.T) {
	s, _ := fresh(t)
	l := claim(t, s, "k", request())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, acquired, err := s.Claim(ctx, idOf("new"), request())
	if acquired {
		t.Error("granted")
	}
	wantApplied(t, err, umavez.No)
	wantApplied(t, s.Complete(ctx, l, nil, keep), umavez.No)
	if _, err := s.Get(ctx, idOf("k")); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v", err)
	}
	if get(t, s, "new").State != umavez.Vacant || get(t, s, "k").State != umavez.Running {
		t.Error("something was applied")
	}
}

// Two stores of one process on one file: what one has acknowledged, the other
// sees in its next read.
func TestReadersAreNeverBehind(t *testing.T) {
	path := file(t)
	a, b := open(t, path, Options{}), open(t, path, Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				key := fmt.Sprint(w, "/", i)
				l := claim(t, a, key, request())
				if rec := get(t, b, key); rec.State != umavez.Running || rec.Attempt != l.Attempt {
					t.Errorf("key %s was claimed in one store and is %v in the other", key, rec.State)
				}
				if err := a.Complete(t.Context(), l, []byte(key), keep); err != nil {
					t.Error(err)
				}
				rec, acquired, err := b.Claim(t.Context(), idOf(key), request())
				if err != nil || acquired || cmp.Compare(string(rec.Answer), key) != 0 {
					t.Errorf("key %s was completed in one store; a claim in the other: %v, %v, %v", key, acquired, err, rec.State)
				}
			}
		})
	}
	wg.Wait()
}

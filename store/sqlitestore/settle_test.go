package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// lost claims and starts a key, and lets its lease run out.
func lost(t *testing.T, s *Store, c *clock, name string) umavez.Lease {
	t.Helper()
	l := claim(t, s, name, request())
	if err := s.Started(l); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	return l
}

func settlement(l umavez.Lease, action umavez.Action) umavez.Settlement {
	st := umavez.Settlement{
		ID: umavez.NewAttemptID(), Action: action, Fence: l.Fence, Keep: keep,
		Who: "ana@caixa", Why: "gateway says so: ticket 7",
	}
	if action == umavez.ActionHappened {
		st.Answer = []byte("settled")
	}
	return st
}

func mustSettle(t *testing.T, s *Store, l umavez.Lease, st umavez.Settlement) {
	t.Helper()
	if err := s.Settle(t.Context(), l.ID, st); err != nil {
		t.Fatalf("settle %q: %v", st.Action, err)
	}
}

func trailOf(t *testing.T, s *Store, id umavez.ID) []umavez.AuditEntry {
	t.Helper()
	trail, err := s.Trail(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return trail
}

// The trail tells what was done in the order in which it was, whatever the clock
// does, and survives the record and the process.
func TestTrailSurvives(t *testing.T) {
	path, c := file(t), newClock()
	s, err := Open(t.Context(), path, Options{Now: c.Now, BusyTimeout: unhurried, batchTime: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	l := lost(t, s, c, "k")
	mustSettle(t, s, l, settlement(l, umavez.ActionPark))
	c.advance(-time.Minute)
	happened := settlement(l, umavez.ActionHappened)
	mustSettle(t, s, l, happened)
	mustSettle(t, s, l, happened) // its reply was lost
	if err := s.Complete(t.Context(), l, []byte("other"), keep); !errors.Is(err, umavez.ErrContradicted) {
		t.Errorf("a late owner with another answer: %v", err)
	}
	if err := s.Complete(t.Context(), l, []byte("other"), keep); !errors.Is(err, umavez.ErrContradicted) {
		t.Errorf("and once more: %v", err)
	}
	if n := s.Stats().Audited; n != 3 {
		t.Errorf("%d entries were counted, want 3", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	c.advance(keep.Retain + keep.Tombstone)
	s = open(t, path, Options{Now: c.Now})
	purge(t, s, 100, 1)
	ago := keep.Retain + keep.Tombstone
	want := []umavez.AuditEntry{
		{
			Action: umavez.ActionPark, Who: happened.Who, Why: happened.Why, Fence: l.Fence,
			Before: umavez.Lost, BeforeReason: umavez.ReasonKilled, After: umavez.Lost, AfterReason: umavez.ReasonParked,
			Ago: ago - time.Minute,
		},
		{
			Action: umavez.ActionHappened, Who: happened.Who, Why: happened.Why, Fence: l.Fence,
			Before: umavez.Lost, BeforeReason: umavez.ReasonParked, After: umavez.Done, Ago: ago,
		},
		{
			Action: umavez.ActionContradicted, Who: "attempt " + l.Attempt.String(), Fence: l.Fence,
			Before: umavez.Done, After: umavez.Done, Ago: ago,
		},
	}
	trail := trailOf(t, s, l.ID)
	if len(trail) == 3 {
		want[2].Why = trail[2].Why // is the root's business
	}
	if !reflect.DeepEqual(trail, want) {
		t.Errorf("the trail is\n%+v, want\n%+v", trail, want)
	}
	if trail := trailOf(t, s, idOf("other")); len(trail) != 0 {
		t.Errorf("another key's trail is %+v", trail)
	}
}

// A change and its entry are one write: where the one is not, the other is not.
func TestChangeAndTrailAreOneWrite(t *testing.T) {
	for _, at := range []string{"SAVEPOINT", "UPDATE", "INSERT INTO umavez_audit", "RELEASE", "COMMIT"} {
		for _, lostReply := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " lost reply ", lostReply), func(t *testing.T) {
				f, c := new(faults), newClock()
				s := open(t, file(t), Options{Now: c.Now, wrap: f.wrap})
				l := lost(t, s, c, "k")
				st := settlement(l, umavez.ActionHappened)
				if lostReply {
					f.set(nil, once(at))
				} else {
					f.set(once(at), nil)
				}
				applied := umavez.No
				if at == "COMMIT" {
					applied = umavez.Maybe
				}
				wantApplied(t, s.Settle(t.Context(), l.ID, st), applied)
				changed, entries := get(t, s, "k").State == umavez.Done, len(trailOf(t, s, l.ID))
				if want := at == "COMMIT" && lostReply; changed != want || (entries == 1) != want {
					t.Errorf("the record is changed: %v, and its trail has %d entries", changed, entries)
				}
				mustSettle(t, s, l, st)
				if get(t, s, "k").State != umavez.Done || len(trailOf(t, s, l.ID)) != 1 {
					t.Errorf("the repeat leaves %v and %+v", get(t, s, "k").State, trailOf(t, s, l.ID))
				}
			})
		}
	}
}

// A settlement whose entry is refused is not applied, and the others in its batch
// are.
func TestRefusedEntryFailsOneCaller(t *testing.T) {
	f, c := new(faults), newClock()
	s := open(t, file(t), Options{Now: c.Now, wrap: f.wrap})
	leases := make([]umavez.Lease, 10)
	for i := range leases {
		leases[i] = lost(t, s, c, fmt.Sprint(i))
	}
	f.set(func(dc driver.Conn, sql string, args []driver.NamedValue) error {
		if !strings.HasPrefix(sql, "INSERT INTO umavez_audit") || args[4].Value != "bad" {
			return nil
		}
		// A constraint that really fails, in the same transaction.
		_, err := dc.(driver.ExecerContext).ExecContext(context.Background(),
			"INSERT INTO umavez_failed_commit VALUES (2, 0, 0)", nil)
		return err
	}, nil)
	errs := together(s, len(leases), func(i int) error {
		st := settlement(leases[i], umavez.ActionHappened)
		if i == 7 {
			st.Why = "bad"
		}
		return s.batches.Do(t.Context(), &op{name: "settle", id: leases[i].ID, ev: st.Event()})
	})
	for i, err := range errs {
		want, entries := umavez.Done, 1
		if i == 7 {
			wantApplied(t, err, umavez.No)
			want, entries = umavez.Lost, 0
		} else if err != nil {
			t.Errorf("settlement %d: %v", i, err)
		}
		if got := get(t, s, fmt.Sprint(i)).State; got != want || len(trailOf(t, s, leases[i].ID)) != entries {
			t.Errorf("key %d is %v, with a trail of %d", i, got, len(trailOf(t, s, leases[i].ID)))
		}
	}
	if n := s.Stats().Audited; n != 9 {
		t.Errorf("%d entries were counted, want 9", n)
	}
}

// An answer that is an error and also a write is written, and a failure to write
// it is no answer.
func TestContradictionIsWritten(t *testing.T) {
	f, c := new(faults), newClock()
	s := open(t, file(t), Options{Now: c.Now, wrap: f.wrap})
	l := lost(t, s, c, "k")
	mustSettle(t, s, l, settlement(l, umavez.ActionCannotHappen))
	f.set(once("COMMIT"), nil)
	err := s.Complete(t.Context(), l, []byte("late"), keep)
	wantApplied(t, err, umavez.Maybe)
	if errors.Is(err, umavez.ErrContradicted) {
		t.Errorf("what was not written is answered: %v", err)
	}
	// In company, in its own group and in its batch.
	errs := together(s, 3, func(i int) error {
		if i == 2 {
			_, _, err := s.Claim(t.Context(), idOf("other"), request())
			return err
		}
		return s.Complete(t.Context(), l, []byte("late"), keep)
	})
	if !errors.Is(errs[0], umavez.ErrContradicted) || !errors.Is(errs[1], umavez.ErrContradicted) || errs[2] != nil {
		t.Errorf("late completions: %v, %v; a claim beside them: %v", errs[0], errs[1], errs[2])
	}
	if trail := trailOf(t, s, l.ID); len(trail) != 2 || trail[1].Action != umavez.ActionContradicted {
		t.Errorf("the trail is %+v", trail)
	}
}

// Entries go after the time for which they are kept, whatever became of their
// records, within the limit; records that run or are lost never do.
func TestPurgeOfTheTrail(t *testing.T) {
	s, c := fresh(t)
	for i := range 10 {
		l := lost(t, s, c, fmt.Sprint(i))
		mustSettle(t, s, l, settlement(l, umavez.ActionPark))
	}
	c.advance(umavez.AuditKept - 11*time.Hour)
	purge(t, s, 100, 0)
	c.advance(5 * time.Hour)
	purge(t, s, 100, 4) // parked ten to six hours after the first claim
	c.advance(5 * time.Hour)
	purge(t, s, 3, 3)
	purge(t, s, 100, 2)
	c.advance(umavez.AuditKept)
	purge(t, s, 100, 1)
	for i := range 10 {
		rec := get(t, s, fmt.Sprint(i))
		if rec.State != umavez.Lost || rec.Reason != umavez.ReasonParked || len(trailOf(t, s, idOf(fmt.Sprint(i)))) != 0 {
			t.Errorf("key %d is %v, %v", i, rec.State, rec.Reason)
		}
	}
}

// Whatever ends a record from outside, nobody asks any more whether its attempt
// had started, and its place in the start log is given up when its owner hears.
func TestSettledRecordHasNoOwner(t *testing.T) {
	for _, action := range []umavez.Action{umavez.ActionHappened, umavez.ActionCannotHappen, umavez.ActionPark} {
		for _, step := range []bool{false, true} {
			s, c := fresh(t)
			l := lost(t, s, c, "k")
			if step {
				if err := s.Checkpoint(t.Context(), l, "cobrar", []byte("1")); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Hold(t.Context(), l.ID, l.Fence, umavez.NewAttemptID(), time.Minute); err != nil {
				t.Fatal(err)
			}
			if n := owned(t, s); n != 1 {
				t.Errorf("a held record has %d owners", n)
			}
			mustSettle(t, s, l, settlement(l, action))
			if n := owned(t, s); n != 0 {
				t.Errorf("%s, step %v: the record has an owner", action, step)
			}
		}
	}
}

func owned(t *testing.T, s *Store) (n int64) {
	t.Helper()
	err := s.writer.c.ask("SELECT count(owner) FROM umavez_record", func(v []driver.Value) error {
		n = v[0].(int64)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Many settle one record from the same listing: one of them does.
func TestManySettleOneRecord(t *testing.T) {
	path, c := file(t), newClock()
	stores := []*Store{open(t, path, Options{Now: c.Now}), open(t, path, Options{Now: c.Now})}
	l := lost(t, stores[0], c, "k")
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			st := settlement(l, umavez.ActionHappened)
			st.Answer = fmt.Appendf(nil, "answer %d", i)
			errs[i] = stores[i%2].Settle(context.Background(), l.ID, st)
		})
	}
	wg.Wait()
	settled := -1
	for i, err := range errs {
		switch {
		case err == nil && settled < 0:
			settled = i
		case !errors.Is(err, umavez.ErrMoved):
			t.Errorf("settlement %d: %v, after %d", i, err, settled)
		}
	}
	if rec := get(t, stores[1], "k"); settled < 0 || string(rec.Answer) != fmt.Sprint("answer ", settled) {
		t.Errorf("settlement %d stands, and the answer is %q", settled, rec.Answer)
	}
	if trail := trailOf(t, stores[0], l.ID); len(trail) != 1 {
		t.Errorf("the trail has %d entries", len(trail))
	}
}

package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// What the writer itself has just written it does not read back, until somebody
// else writes.
func TestRecallSparesTheRead(t *testing.T) {
	f := new(faults)
	path := file(t)
	s, other := open(t, path, Options{wrap: f.wrap}), open(t, path, Options{})
	reads := 0
	f.set(func(_ driver.Conn, sql string, _ []driver.NamedValue) error {
		if strings.HasPrefix(sql, "SELECT rowid") {
			reads++
		}
		return nil
	}, nil)
	extend := func(l umavez.Lease) int {
		t.Helper()
		before := reads
		if err := s.Extend(t.Context(), l, time.Hour); err != nil {
			t.Fatal(err)
		}
		return reads - before
	}
	l := claim(t, s, "k", request())
	for i := range 3 {
		if n := extend(l); n != 0 {
			t.Errorf("heartbeat %d read %d times what the store had written", i, n)
		}
	}
	claim(t, other, "another", request())
	if n := extend(l); n != 1 {
		t.Errorf("after somebody else wrote, a heartbeat read %d times, want once", n)
	}
	if n := extend(l); n != 0 {
		t.Errorf("the next one read %d times", n)
	}
}

// Two stores on one file take turns at random. Whatever one remembers, both
// answer as if there were only Next.
func TestRecallIsNeverStale(t *testing.T) {
	for seed := range uint64(6) {
		path, c := file(t), newClock()
		stores := []*Store{open(t, path, Options{Now: c.Now}), open(t, path, Options{Now: c.Now})}
		rnd := rand.New(rand.NewPCG(seed, 7))
		model, audited := map[string]umavez.Row{}, map[string]int{}
		attempts := []umavez.AttemptID{umavez.NewAttemptID(), umavez.NewAttemptID(), umavez.NewAttemptID()}
		for step := range 400 {
			c.advance(time.Duration(rnd.IntN(20)) * time.Second)
			s, key := stores[rnd.IntN(2)], fmt.Sprint(rnd.IntN(5))
			ev := anyEvent(rnd, attempts, model[key])
			now := umavez.InstantOf(c.Now())
			row, eff := umavez.Next(model[key], now, ev)
			model[key] = row
			if eff.Audit != nil {
				audited[key]++
			}
			err := apply(t, s, key, ev)
			if !errors.Is(err, eff.Err) {
				t.Fatalf("seed %d, step %d: event %d on key %s answered %v, want %v", seed, step, ev.Kind, key, err, eff.Err)
			}
			want := row.Record(now)
			if got := get(t, stores[rnd.IntN(2)], key); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
				t.Fatalf("seed %d, step %d: after event %d key %s is\n%+v, want\n%+v", seed, step, ev.Kind, key, got, want)
			}
		}
		for key, n := range audited {
			if trail, err := stores[0].Trail(t.Context(), idOf(key)); err != nil || len(trail) != n {
				t.Errorf("seed %d: the trail of key %s has %d entries, %v; want %d", seed, key, len(trail), err, n)
			}
		}
	}
}

// anyEvent draws a call, with arguments that often fit the row.
func anyEvent(rnd *rand.Rand, attempts []umavez.AttemptID, row umavez.Row) umavez.Event {
	ev := umavez.Event{
		Kind:    umavez.EventKind(rnd.IntN(int(umavez.EventSettle) + 1)),
		Attempt: attempts[rnd.IntN(len(attempts))],
	}
	switch ev.Kind {
	case umavez.EventClaim:
		ev.Claim = &umavez.ClaimRequest{
			Attempt: ev.Attempt, Policy: umavez.Rerunnable, Lease: time.Minute, TakeOver: row.Fence,
		}
	case umavez.EventCheckpoint:
		if ev.Payload = []byte{byte(rnd.IntN(2))}; rnd.IntN(2) == 0 {
			ev.Step = "step"
		}
	case umavez.EventComplete:
		ev.Payload, ev.Keep = []byte("answer"), umavez.Retention{Retain: time.Minute, Tombstone: time.Minute}
	case umavez.EventAbandon:
		ev.Reason = umavez.ReasonPanic
	case umavez.EventExtend:
		ev.For = time.Minute
	case umavez.EventHold:
		ev.Fence, ev.For = row.Fence, time.Minute
	case umavez.EventSettle:
		ev.Fence, ev.Keep = row.Fence, umavez.Retention{Retain: time.Minute, Tombstone: time.Minute}
		ev.Action = []umavez.Action{
			umavez.ActionHappened, umavez.ActionCannotHappen, umavez.ActionPark, umavez.ActionForget,
		}[rnd.IntN(4)]
		if ev.Action == umavez.ActionHappened {
			ev.Payload = []byte("settled")
		}
	}
	return ev
}

// apply makes the event's call on a store.
func apply(t *testing.T, s *Store, key string, ev umavez.Event) error {
	ctx, l := t.Context(), umavez.Lease{ID: idOf(key), Attempt: ev.Attempt}
	switch ev.Kind {
	case umavez.EventClaim:
		_, _, err := s.Claim(ctx, l.ID, *ev.Claim)
		return err
	case umavez.EventCheckpoint:
		return s.Checkpoint(ctx, l, ev.Step, ev.Payload)
	case umavez.EventComplete:
		return s.Complete(ctx, l, ev.Payload, ev.Keep)
	case umavez.EventRelease:
		return s.Release(ctx, l)
	case umavez.EventAbandon:
		return s.Abandon(ctx, l, ev.Reason, ev.Payload)
	case umavez.EventHold:
		return s.Hold(ctx, l.ID, ev.Fence, ev.Attempt, ev.For)
	case umavez.EventSettle:
		return s.Settle(ctx, l.ID, umavez.Settlement{
			ID: ev.Attempt, Action: ev.Action, Fence: ev.Fence, Answer: ev.Payload, Keep: ev.Keep, Quiet: ev.For,
		})
	default:
		return s.Extend(ctx, l, ev.For)
	}
}

// A claim whose commit failed is not remembered.
func TestRecallForgetsWhatWasNotCommitted(t *testing.T) {
	s, f := faulty(t)
	kept := claim(t, s, "kept", request())
	f.set(once("COMMIT"), nil)
	req := request()
	_, _, err := s.Claim(t.Context(), idOf("k"), req)
	wantApplied(t, err, umavez.Maybe)
	l := umavez.Lease{ID: idOf("k"), Attempt: req.Attempt}
	if err := s.Extend(t.Context(), l, time.Hour); !errors.Is(err, umavez.ErrLeaseLost) {
		t.Errorf("a heartbeat of a claim that was not committed: %v, want ErrLeaseLost", err)
	}
	f.set(once("UPDATE"), nil)
	wantApplied(t, s.Complete(t.Context(), kept, []byte("one"), keep), umavez.No)
	if err := s.Complete(t.Context(), kept, []byte("other"), keep); err != nil {
		t.Errorf("a completion, after another one was rolled back: %v", err)
	}
	claim(t, s, "last", request())
	// Another connection counts from its own beginning, and may come to the
	// same number.
	if s.writer.drop(); len(s.writer.tx.recall.rows) != 0 {
		t.Error("rows are remembered past their connection")
	}
}

// The memory is bounded, and does not hold what is large.
func TestRecallIsBounded(t *testing.T) {
	var r recall
	running := found{rowid: 1, row: umavez.Row{Phase: umavez.PhaseRunning}}
	for i := range 3 * recalled {
		if r.put(idOf(fmt.Sprint(i)), running); len(r.rows) > recalled {
			t.Fatalf("%d rows are remembered", len(r.rows))
		}
	}
	last := idOf(fmt.Sprint(3*recalled - 1))
	if _, ok := r.rows[last]; !ok {
		t.Error("the last row is not remembered")
	}
	for _, change := range []func(*umavez.Row){
		func(row *umavez.Row) { row.Phase = umavez.PhaseDone },
		func(row *umavez.Row) { row.Steps = make([]umavez.KeptStep, 1) },
		func(row *umavez.Row) { row.Last = []byte("last") },
		func(row *umavez.Row) { row.Request = make([]byte, recalledRequest+1) },
		func(row *umavez.Row) { row.Label = strings.Repeat("l", recalledRequest+1) },
	} {
		r.put(last, running)
		other := running
		change(&other.row)
		if r.put(last, other); len(r.rows) != 0 {
			if _, ok := r.rows[last]; ok {
				t.Errorf("remembered: %+v", r.rows[last].row)
			}
		}
	}
}

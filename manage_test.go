package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/store/storetest"
)

// desk is an engine over a store in memory, and what it has told.
type desk struct {
	*umavez.Engine
	mem *memstore.Store

	mu   sync.Mutex
	told []umavez.Observation
}

func newDesk(t *testing.T, front func(*memstore.Store) umavez.Store) *desk {
	t.Helper()
	d := &desk{mem: memstore.New(memstore.Options{})}
	store := umavez.Store(d.mem)
	if front != nil {
		store = front(d.mem)
	}
	d.Engine = newEngine(t, store, umavez.Options{Observe: func(o umavez.Observation) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.told = append(d.told, o)
	}})
	t.Cleanup(func() { closeEngine(t, d.Engine) })
	return d
}

// of returns what was told of a moment.
func (d *desk) of(m umavez.Moment) (all []umavez.Observation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.told {
		if o.Moment == m {
			all = append(all, o)
		}
	}
	return all
}

// lose makes a lost record, and returns it as it is listed.
func (d *desk) lose(t *testing.T, op umavez.Operation) umavez.Listed {
	t.Helper()
	if err := mustClaim(t, d.Engine, op).Abandon(umavez.ReasonReset, []byte("502")); err != nil {
		t.Fatal(err)
	}
	return d.listed(t, op)
}

func (d *desk) listed(t *testing.T, op umavez.Operation) umavez.Listed {
	t.Helper()
	list, err := d.List(t.Context(), umavez.Query{Limit: umavez.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(l umavez.Listed) bool { return l.ID == op.Key.ID() })
	if i < 0 {
		t.Fatalf("the record is not among the %d that are listed", len(list))
	}
	return list[i]
}

// inspect returns a record with its trail.
func (d *desk) inspect(t *testing.T, op umavez.Operation) (umavez.Record, []umavez.AuditEntry) {
	t.Helper()
	rec, trail, err := d.Inspect(t.Context(), op.Key.ID())
	if err != nil {
		t.Fatal(err)
	}
	return rec, trail
}

// settlement is one that applies to what was seen.
func settlement(action umavez.Action, seen umavez.Listed) umavez.Settlement {
	s := umavez.Settlement{Action: action, Fence: seen.Fence, Who: "maria@balcão", Why: "ticket 7"}
	if action == umavez.ActionHappened {
		s.Answer = []byte("201")
	}
	return s
}

// TestSettleRefusesNonsense, and changes nothing by it.
func TestSettleRefusesNonsense(t *testing.T) {
	d := newDesk(t, nil)
	op := opaque("k")
	seen := d.lose(t, op)
	for says, break1 := range map[string]func(*umavez.Settlement){
		"Who has 0 bytes":               func(s *umavez.Settlement) { s.Who = "" },
		"Who has 256 bytes":             func(s *umavez.Settlement) { s.Who = strings.Repeat("x", umavez.MaxWho+1) },
		"Why has 0 bytes":               func(s *umavez.Settlement) { s.Why = "" },
		"Why has 4097 bytes":            func(s *umavez.Settlement) { s.Why = strings.Repeat("x", umavez.MaxWhy+1) },
		"Who and Why are text":          func(s *umavez.Settlement) { s.Who = "a\x00" },
		"Why are text in UTF-8":         func(s *umavez.Settlement) { s.Why = "\xff" },
		"Fence is missing":              func(s *umavez.Settlement) { s.Fence = 0 },
		"Quiet is negative":             func(s *umavez.Settlement) { s.Quiet = -1 },
		"Keep is negative":              func(s *umavez.Settlement) { s.Keep.Tombstone = -1 },
		"Keep.Retain is missing":        func(s *umavez.Settlement) { s.Keep.Tombstone = time.Hour },
		"Answer is missing":             func(s *umavez.Settlement) { s.Answer = nil },
		"goes with \"happened\" only":   func(s *umavez.Settlement) { s.Action = umavez.ActionCannotHappen },
		"Action is unknown: \"\"":       func(s *umavez.Settlement) { s.Action = "" },
		"Action is unknown: \"contrad":  func(s *umavez.Settlement) { s.Action = umavez.ActionContradicted },
		"goes with \"happened\" only, ": func(s *umavez.Settlement) { s.Action = umavez.ActionPark },
	} {
		s := settlement(umavez.ActionHappened, seen)
		break1(&s)
		if err := d.Settle(t.Context(), op.Key.ID(), s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
	}
	if rec, trail := d.inspect(t, op); rec.State != umavez.Lost || len(trail) != 0 {
		t.Errorf("nonsense made %v of it, and the trail %v", rec.State, trail)
	}
	if told := d.of(umavez.MomentSettled); len(told) != 0 {
		t.Errorf("told of nonsense: %v", told)
	}
}

// TestListRefusesNonsense: a page has a size.
func TestListRefusesNonsense(t *testing.T) {
	d := newDesk(t, nil)
	for _, limit := range []int{-1, 0, umavez.MaxPage + 1} {
		if _, err := d.List(t.Context(), umavez.Query{Limit: limit}); err == nil || !strings.Contains(err.Error(), "1 to 1000") {
			t.Errorf("a page of %d: %v", limit, err)
		}
	}
}

// TestSettleOverFaults: a call that gets lost, or whose reply does, is repeated,
// and leaves one entry in the audit trail.
func TestSettleOverFaults(t *testing.T) {
	for _, fault := range []storetest.Fault{storetest.Refused, storetest.NotApplied, storetest.ReplyLost} {
		for action, want := range map[umavez.Action]umavez.State{
			umavez.ActionHappened: umavez.Done, umavez.ActionCannotHappen: umavez.Vacant,
			umavez.ActionPark: umavez.Lost, umavez.ActionForget: umavez.Expired,
		} {
			t.Run(fmt.Sprintf("%s, fault %d", action, fault), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var faulty *storetest.FaultySettling
					d := newDesk(t, func(m *memstore.Store) umavez.Store {
						faulty = storetest.NewFaultySettling(m)
						return faulty
					})
					op := opaque("k")
					seen := d.lose(t, op)
					if action == umavez.ActionForget {
						if err := d.Settle(t.Context(), op.Key.ID(), settlement(umavez.ActionHappened, seen)); err != nil {
							t.Fatal(err)
						}
					}
					faulty.Inject("settle", fault)
					faulty.Inject("settle", fault)
					if err := d.Settle(t.Context(), op.Key.ID(), settlement(action, seen)); err != nil {
						t.Fatal(err)
					}
					rec, trail := d.inspect(t, op)
					var entries []umavez.AuditEntry
					for _, e := range trail {
						if e.Action == action {
							entries = append(entries, e)
						}
					}
					if rec.State != want || len(entries) != 1 {
						t.Errorf("the record is %v, want %v; entries %+v", rec.State, want, trail)
					}
				})
			})
		}
	}
}

// TestTwoOperatorsWithOneListing: the second is refused, with the same verdict as
// with another one, and what the first said stands.
func TestTwoOperatorsWithOneListing(t *testing.T) {
	for _, second := range []umavez.Action{umavez.ActionHappened, umavez.ActionCannotHappen, umavez.ActionPark} {
		for _, op := range []umavez.Operation{opaque("k"), stepped("k")} {
			d := newDesk(t, nil)
			first := umavez.ActionHappened
			a := mustClaim(t, d.Engine, op)
			if op.Policy == umavez.Stepped { // of which more than a vacant key is left
				first = umavez.ActionCannotHappen
				if _, err := umavez.Step(a.Context(), "a", func(context.Context, string) (int, error) { return 1, nil }); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Abandon(umavez.ReasonReset, nil); err != nil {
				t.Fatal(err)
			}
			seen := d.listed(t, op)
			if err := d.Settle(t.Context(), op.Key.ID(), settlement(first, seen)); err != nil {
				t.Fatal(err)
			}
			before, _ := d.inspect(t, op)
			if err := d.Settle(t.Context(), op.Key.ID(), settlement(second, seen)); !errors.Is(err, umavez.ErrMoved) {
				t.Errorf("%v: %s after %s: %v, want ErrMoved", op.Policy, second, first, err)
			}
			after, trail := d.inspect(t, op)
			if after.State != before.State || string(after.Answer) != string(before.Answer) || after.Reason != before.Reason || len(trail) != 1 {
				t.Errorf("%v: %s after %s made %+v of %+v, with the trail %v", op.Policy, second, first, after, before, trail)
			}
		}
	}
}

// TestNotOffered: a store that can do no more than stores must is not settled.
func TestNotOffered(t *testing.T) {
	d := newDesk(t, func(m *memstore.Store) umavez.Store { return storetest.NewFaulty(m) })
	op := opaque("k")
	if err := mustClaim(t, d.Engine, op).Abandon(umavez.ReasonReset, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.List(t.Context(), umavez.Query{Limit: 1}); !errors.Is(err, umavez.ErrNotOffered) {
		t.Errorf("List: %v", err)
	}
	s := umavez.Settlement{Action: umavez.ActionPark, Fence: 1, Who: "x", Why: "y"}
	if err := d.Settle(t.Context(), op.Key.ID(), s); !errors.Is(err, umavez.ErrNotOffered) {
		t.Errorf("Settle: %v", err)
	}
	if rec, trail := d.inspect(t, op); rec.State != umavez.Lost || trail != nil {
		t.Errorf("Inspect: %v, %v; want the record alone", rec.State, trail)
	}
}

// TestSettledIsTold, also that it was refused.
func TestSettledIsTold(t *testing.T) {
	d := newDesk(t, nil)
	op := opaque("k")
	seen := d.lose(t, op)
	if err := d.Settle(t.Context(), op.Key.ID(), settlement(umavez.ActionCannotHappen, seen)); err != nil {
		t.Fatal(err)
	}
	_ = d.Settle(t.Context(), op.Key.ID(), settlement(umavez.ActionCannotHappen, seen))
	told := d.of(umavez.MomentSettled)
	if len(told) != 2 || told[0].ID != op.Key.ID() || told[0].Fence != seen.Fence || told[0].Route != "test" ||
		told[0].Reason != umavez.ReasonReset || told[0].Err != nil || !errors.Is(told[1].Err, umavez.ErrMoved) {
		t.Errorf("told %+v", told)
	}
}

// TestTrailSaysWhoAndWhy: who, when, why, which attempt, and where it stood.
func TestTrailSaysWhoAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		op := opaque("k")
		seen := d.lose(t, op)
		for _, action := range []umavez.Action{umavez.ActionPark, umavez.ActionHappened, umavez.ActionForget} {
			if err := d.Settle(t.Context(), op.Key.ID(), settlement(action, seen)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		base := umavez.AuditEntry{Who: "maria@balcão", Why: "ticket 7", Fence: seen.Fence}
		want := []umavez.AuditEntry{base, base, base}
		want[0].Action, want[0].Before, want[0].BeforeReason, want[0].Ago = umavez.ActionPark, umavez.Lost, umavez.ReasonReset, 3*time.Minute
		want[0].After, want[0].AfterReason = umavez.Lost, umavez.ReasonParked
		want[1].Action, want[1].Before, want[1].BeforeReason, want[1].Ago = umavez.ActionHappened, umavez.Lost, umavez.ReasonParked, 2*time.Minute
		want[1].After = umavez.Done
		want[2].Action, want[2].Before, want[2].After, want[2].Ago = umavez.ActionForget, umavez.Done, umavez.Expired, time.Minute
		rec, trail := d.inspect(t, op)
		if !slices.Equal(trail, want) {
			t.Errorf("the trail\n%+v, want\n%+v", trail, want)
		}
		if rec.State != umavez.Expired || rec.Answer != nil || rec.Label != "" || !rec.Settled {
			t.Errorf("forgotten: %+v", rec)
		}
	})
}

// TestForgottenIsNotRun: what is forgotten is refused, not run again, for as long
// as its tombstone stands.
func TestForgottenIsNotRun(t *testing.T) {
	for policy, stands := range map[umavez.Policy]time.Duration{
		umavez.Opaque:     31 * 24 * time.Hour, // as without: its retention, and its tombstone
		umavez.Rerunnable: umavez.DefaultTombstone,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			op := opaque("k")
			op.Policy = policy
			if err := mustClaim(t, d.Engine, op).Complete([]byte("card 4111")); err != nil {
				t.Fatal(err)
			}
			if err := d.Settle(t.Context(), op.Key.ID(), settlement(umavez.ActionForget, d.listed(t, op))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(stands - time.Second)
			if a, rec, err := d.Claim(t.Context(), op); a != nil || rec.State != umavez.Expired || err != nil {
				t.Errorf("%v: a second before: %v, %v, %v", policy, a, rec.State, err)
			}
			time.Sleep(time.Second)
			a := mustClaim(t, d.Engine, op)
			if err := a.Release(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLateOwnerContradicts: an owner that finishes after others have said that it
// cannot happen gets no answer in, is told of once, and stands in the trail once.
func TestLateOwnerContradicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var faulty *storetest.FaultySettling
		d := newDesk(t, func(m *memstore.Store) umavez.Store {
			faulty = storetest.NewFaultySettling(m)
			return faulty
		})
		op := opaque("k")
		a := mustClaim(t, d.Engine, op)
		time.Sleep(6 * time.Minute) // past MaxRun: nothing extends its lease
		seen := d.listed(t, op)
		s := settlement(umavez.ActionCannotHappen, seen)
		s.Quiet = d.Quiet()
		if err := d.Settle(t.Context(), op.Key.ID(), s); !errors.Is(err, umavez.ErrNotQuiet) {
			t.Fatalf("before it is quiet: %v", err)
		}
		time.Sleep(d.Quiet())
		if err := d.Settle(t.Context(), op.Key.ID(), s); err != nil {
			t.Fatal(err)
		}
		faulty.Inject("complete", storetest.ReplyLost)
		if err := a.Complete([]byte("charged")); !errors.Is(err, umavez.ErrContradicted) || !errors.Is(err, umavez.ErrLeaseLost) {
			t.Errorf("the late owner: %v", err)
		}
		if told := d.of(umavez.MomentContradicted); len(told) != 1 || told[0].Attempt != seen.Attempt {
			t.Errorf("told %+v", told)
		}
		rec, trail := d.inspect(t, op)
		if rec.State != umavez.Vacant || len(trail) != 2 || trail[1].Action != umavez.ActionContradicted ||
			trail[1].Who != "attempt "+seen.Attempt.String() || !strings.Contains(trail[1].Why, "it has completed") {
			t.Errorf("%v, with the trail %+v", rec.State, trail)
		}
	})
}

// TestSettledStepsAreResumed: a stepped operation whose step in doubt cannot
// happen any more goes on after what is kept, and may send that step again.
func TestSettledStepsAreResumed(t *testing.T) {
	for name, c := range map[string]struct {
		option umavez.StepOption
		quiet  time.Duration
		sent   int // in the end, how often the step in doubt
	}{
		"no foreign key":               {umavez.NoForeignKey(), umavez.DefaultQuiet, 2},
		"no foreign key, by proof":     {umavez.NoForeignKey(), 0, 2},
		"key honoured no more":         {umavez.KeyHonouredFor(time.Hour), umavez.DefaultQuiet, 2},
		"honoured no more, yet proven": {umavez.KeyHonouredFor(time.Hour), 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			op := stepped("k")
			first, sent := 0, 0
			run := func(ctx context.Context) (string, error) {
				if _, err := umavez.Step(ctx, "a", func(context.Context, string) (int, error) { first++; return 1, nil }); err != nil {
					return "", err
				}
				_, err := umavez.Step(ctx, "b", func(context.Context, string) (int, error) {
					if sent++; sent == 1 {
						return 0, errLater
					}
					return 2, nil
				}, c.option)
				return "done", err
			}
			_, _ = do(t, d.Engine, op, run)
			time.Sleep(2 * time.Hour)
			_, _ = do(t, d.Engine, op, run)
			seen := d.listed(t, op)
			if seen.Reason != umavez.ReasonStepInDoubt || !seen.Unknown() {
				t.Fatalf("%s: it is %v, for the reason %q", name, seen.State, seen.Reason)
			}
			s := settlement(umavez.ActionCannotHappen, seen)
			s.Quiet = c.quiet
			time.Sleep(c.quiet)
			if err := d.Settle(t.Context(), op.Key.ID(), s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if rec, _ := d.inspect(t, op); rec.Reason != umavez.ReasonSettled || rec.Unknown() {
				t.Errorf("%s: settled, it is %v, for the reason %q", name, rec.State, rec.Reason)
			}
			res, err := do(t, d.Engine, op, run)
			if first != 1 || sent != c.sent || (err == nil) != (c.sent == 2) {
				t.Errorf("%s: %v, %v; a ran %d times, b was sent %d times, want 1 and %d", name, res, err, first, sent, c.sent)
			}
		})
	}
}

// TestSettledAnswerIsGiven: to every attempt, for as long as the engine's answers
// are kept.
func TestSettledAnswerIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		op := opaque("k")
		if err := d.Settle(t.Context(), op.Key.ID(), settlement(umavez.ActionHappened, d.lose(t, op))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24*time.Hour - time.Second)
		if _, rec, err := d.Claim(t.Context(), op); err != nil || rec.State != umavez.Done || string(rec.Answer) != "201" || !rec.Settled {
			t.Errorf("%+v, %v", rec, err)
		}
		time.Sleep(30 * 24 * time.Hour)
		if _, rec, err := d.Claim(t.Context(), op); err != nil || rec.State != umavez.Expired {
			t.Errorf("a second before its tombstone goes: %v, %v", rec.State, err)
		}
	})
}

// TestQuiet: never shorter than an attempt may run, and what it sends last may
// take to arrive.
func TestQuiet(t *testing.T) {
	for run, want := range map[time.Duration]time.Duration{0: umavez.DefaultQuiet, time.Hour: time.Hour + umavez.OnTheWire} {
		if got := newEngine(t, memstore.New(memstore.Options{}), umavez.Options{MaxRun: run}).Quiet(); got != want {
			t.Errorf("MaxRun %v: quiet after %v, want %v", run, got, want)
		}
	}
}

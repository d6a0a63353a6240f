package umavez

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Rows that were settled.

// settled is a done row whose answer a settlement gave, over an attempt.
func settled(row Row, over, by AttemptID) Row {
	row.Settled = true
	return overruled(row, over, by)
}

func overruled(row Row, over, by AttemptID) Row {
	row.Overruled, row.Holder = over, by
	return row
}

func contradicted(row Row) Row {
	row.Contradicted = true
	return row
}

// cleared is a row with a kept step whose attempt cannot happen any more.
func cleared(over, by AttemptID, fence Fence) Row {
	row := ended(stepped(running(AttemptID{}, Stepped, lifeNow)), ReasonSettled)
	row.Fence = fence
	return overruled(row, over, by)
}

func parked(row Row, by AttemptID) Row {
	row.Holder = by
	return ended(row, ReasonParked)
}

func forgotten(row Row, by AttemptID) Row {
	row.Answer, row.Holder = nil, by
	return row
}

// settlements are settlements that apply to some row, all of the same name.
func settlements() []Event {
	var all []Event
	for _, ev := range lifeEvents {
		if ev.Kind == EventSettle {
			ev.Attempt = mine
			all = append(all, ev)
		}
	}
	return all
}

// TestSettlementNamesAFence: with any other fence than the row's, neither a hold
// nor a settlement changes a row, whatever its state. With one that is none, they
// change no row at all.
func TestSettlementNamesAFence(t *testing.T) {
	events := append(settlements(), Event{Kind: EventHold, Attempt: mine, For: time.Second})
	for state, row := range lifeRows {
		if row.cleared() && row.Holder == mine {
			continue // its fence has risen by the settlement: TestClearedRowHasMoved
		}
		for _, fence := range []Fence{row.Fence - 1, row.Fence + 1, 0, -1} {
			for _, ev := range events {
				ev.Fence = fence
				if next, eff := Next(row, lifeNow, ev); !errors.Is(eff.Err, ErrMoved) || !reflect.DeepEqual(next, row) {
					t.Errorf("%s, event %d %q with the fence %d: %+v, want ErrMoved", state, ev.Kind, ev.Action, fence, eff)
				}
			}
		}
	}
}

// TestSettlementsOfTwo: of two who settle the same row from one listing, the
// second is refused, whatever the two say, and the first may repeat it. A row that
// was parked may be settled by who saw it before; what was settled, also
// forgotten.
func TestSettlementsOfTwo(t *testing.T) {
	may := map[[2]Action]bool{
		{ActionPark, ActionHappened}: true, {ActionPark, ActionCannotHappen}: true, {ActionHappened, ActionForget}: true,
	}
	for _, state := range []string{"opaque, ran out", "rerun, ran out", "stepped, abandoned", "step in doubt", "atomic, held"} {
		for _, first := range settlements() {
			one, eff := Next(lifeRows[state], lifeNow.Add(time.Second), first)
			if first.Action == ActionForget {
				continue
			}
			if eff.Err != nil || !eff.Write {
				t.Fatalf("%s: %q: %+v", state, first.Action, eff)
			}
			for _, second := range settlements() {
				second.Attempt = other
				want := ErrMoved
				if may[[2]Action{first.Action, second.Action}] {
					want = nil
				}
				if _, eff := Next(one, lifeNow.Add(time.Second), second); !errors.Is(eff.Err, want) {
					t.Errorf("%s: %q after %q: %v, want %v", state, second.Action, first.Action, eff.Err, want)
				}
			}
			if again, eff := Next(one, lifeNow.Add(time.Hour/2), first); eff.Err != nil || eff.Write || !reflect.DeepEqual(again, one) {
				t.Errorf("%s: the repeat of %q: %+v", state, first.Action, eff)
			}
		}
	}
}

// TestSettledAttemptIsBarred: what cannot happen any more must not be begun by a
// claim of the settled attempt that is still on its way.
func TestSettledAttemptIsBarred(t *testing.T) {
	row, eff := Next(running(mine, Opaque, lifeNow), lifeNow, Event{Kind: EventSettle, Action: ActionCannotHappen, Fence: lifeFence})
	if eff.Err != nil || row.State(lifeNow) != Vacant || row.Until != lifeNow.Add(ReleasedKept) {
		t.Fatalf("settled: %+v, %+v", eff, row)
	}
	for by, want := range map[AttemptID]bool{mine: false, other: true} {
		if _, eff := Next(row, lifeNow, Event{Kind: EventClaim, Attempt: by, Claim: &ClaimRequest{}}); eff.Acquired != want {
			t.Errorf("a claim by %v is acquired %v, want %v", by, eff.Acquired, want)
		}
	}
}

// lostStepped is a lost stepped row with two kept steps and the note that a third
// was about to be sent.
func lostStepped() Row {
	row := held(abandoned(running(other, Stepped, lifeNow)))
	row.Tries, row.Label = 2, "the key"
	row.Steps = []KeptStep{
		{Name: "a", Result: []byte("1")}, {Name: sentMark + "c", Result: []byte("{}")}, {Name: "b", Result: []byte("2")},
	}
	return row
}

// TestClearedRow: what stays of a row with kept steps when its attempt cannot
// happen any more, and what does not.
func TestClearedRow(t *testing.T) {
	later := lifeNow.Add(time.Hour)
	for name, quiet := range map[string]time.Duration{"by proof": 0, "by time": time.Hour} {
		row := lostStepped()
		got, eff := Next(row, later, Event{Kind: EventSettle, Attempt: mine, Action: ActionCannotHappen, Fence: lifeFence, For: quiet})
		want := row
		want.Steps = []KeptStep{{Name: "a", Result: []byte("1")}, {Name: "b", Result: []byte("2")}}
		want.Attempt, want.Overruled, want.Holder = AttemptID{}, other, mine
		want.Ended, want.Last, want.HeldUntil, want.Until = ReasonSettled, nil, 0, later
		want.Fence = max(lifeFence+1, Fence(later))
		if quiet > 0 {
			want.Claimed = later // by proof, the time of the derived keys goes on
		}
		if eff.Err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\ngot  %+v\nwant %+v", name, eff, got, want)
		}
		if len(row.Steps) != 3 {
			t.Errorf("%s: the row before was changed: %+v", name, row)
		}
	}
}

// TestClearedRowIsResumed: the next attempt has all that it needs, and knows that
// what is not kept may have been sent.
func TestClearedRowIsResumed(t *testing.T) {
	row := lostStepped()
	row.Contradicted = true
	row, _ = Next(row, lifeNow, Event{Kind: EventSettle, Attempt: mine, Action: ActionCannotHappen, Fence: lifeFence})
	if row.Contradicted {
		t.Error("another attempt was overruled, and is taken to have contradicted it already")
	}
	row.Contradicted = true
	next, eff := Next(row, lifeNow+5, Event{Kind: EventClaim, Attempt: mine, Claim: &ClaimRequest{Lease: time.Second, TakeOver: row.Fence, Resume: true}})
	if !eff.Acquired {
		t.Fatalf("%+v", eff)
	}
	want := row
	want.Attempt, want.Holder, want.Ended, want.Fence, want.Tries = mine, AttemptID{}, "", row.Fence+1, row.Tries+1
	want.Since, want.Until = lifeNow+5, (lifeNow + 5).Add(time.Second)
	if !reflect.DeepEqual(next, want) {
		t.Errorf("resumed:\ngot  %+v\nwant %+v", next, want)
	}
	book := newStepBook(won{rec: next.Record(lifeNow + 5), acquired: true})
	if !book.retried || book.age != (lifeNow+5).Sub(row.Claimed) {
		t.Errorf("the next attempt takes no step to be sent, or for too long: %+v", book)
	}
}

// TestProvenStaysForItsKeys: a stepped row without a kept step stays when it was
// settled by proof: the proof may be that its derived keys are honoured, and the
// row alone knows since when they are in use. Once time has proven it, it goes.
func TestProvenStaysForItsKeys(t *testing.T) {
	row := running(other, Stepped, lifeNow)
	cannot := Event{Kind: EventSettle, Attempt: mine, Action: ActionCannotHappen, Fence: lifeFence}
	row, _ = Next(row, lifeNow, cannot)
	if rec := row.Record(lifeNow.Add(time.Hour)); rec.State != Lost || rec.Reason != ReasonSettled || rec.Age < time.Hour {
		t.Fatalf("settled by proof: %+v", rec)
	}
	cannot.Fence, cannot.Attempt, cannot.For = row.Fence, AttemptID{3}, time.Hour
	row, eff := Next(row, lifeNow.Add(time.Hour), cannot)
	if eff.Err != nil || row.Phase != PhaseVacant || row.Overruled != other || row.Attempt != other {
		t.Errorf("settled by time: %+v, %+v; want it vacant, with the overruled attempt barred", eff, row)
	}
}

// TestNobodyOwnsAClearedRow: not even an attempt without a name.
func TestNobodyOwnsAClearedRow(t *testing.T) {
	row := lifeRows["cleared, over me"]
	for name, ev := range lifeEvents {
		if ev.Kind > EventExtend || name == "takeover" || name == "resume" || name == "full" {
			continue
		}
		if next, eff := Next(row, lifeNow, ev); eff.Acquired || eff.Write || !reflect.DeepEqual(next, row) {
			t.Errorf("%s of the attempt without a name: %+v", name, eff)
		}
	}
}

// TestOverruledIsRemembered through the key's next lives, for as long as the row
// stays, so that its contradiction is heard whenever it comes; and no longer, so
// that it does not depend on when a store was purged.
func TestOverruledIsRemembered(t *testing.T) {
	says := func(row Row, at Instant) error {
		_, eff := Next(row, at, Event{Kind: EventComplete, Attempt: mine, Payload: []byte("a")})
		return eff.Err
	}
	then := func(row Row, at Instant, ev Event) Row {
		t.Helper()
		ev.Attempt = other
		next, eff := Next(row, at, ev)
		if eff.Err != nil || !eff.Write {
			t.Fatalf("event %d at %d: %+v", ev.Kind, at, eff)
		}
		return next
	}
	claim, keep := Event{Kind: EventClaim, Claim: &ClaimRequest{Lease: time.Hour}}, Retention{Retain: time.Hour, Tombstone: time.Hour}
	cannot := Event{Kind: EventSettle, Action: ActionCannotHappen, Fence: lifeFence}

	row := then(running(mine, Opaque, lifeNow), lifeNow, cannot)
	lives := []Row{row, then(row, lifeNow, claim)}
	lives = append(lives, then(lives[1], lifeNow, Event{Kind: EventRelease}), then(lives[1], lifeNow, Event{Kind: EventComplete, Keep: keep}))
	for i, life := range lives {
		if err := says(life, lifeNow); !errors.Is(err, ErrContradicted) {
			t.Errorf("life %d: %v, want ErrContradicted", i, err)
		}
		gone := max(life.Until, life.Gone)
		if _, keep := life.Purge(gone); keep {
			continue // it runs
		}
		third := claim
		third.Attempt = AttemptID{3}
		next, _ := Next(life, gone, third)
		if err := says(life, gone); errors.Is(err, ErrContradicted) || next.Overruled != (AttemptID{}) {
			t.Errorf("life %d, when it may be purged: %v, and after a claim %v is remembered", i, err, next.Overruled)
		}
		if err := says(life, gone-1); !errors.Is(err, ErrContradicted) {
			t.Errorf("life %d, just before: %v", i, err)
		}
	}
}

// TestForgetNeverShortens: what is forgotten is refused for at least as long as
// it would have been, whatever is asked for.
func TestForgetNeverShortens(t *testing.T) {
	row := finished(other, lifeNow.Add(time.Hour), lifeNow.Add(2*time.Hour))
	row.Label = "the key"
	for tombstone, want := range map[time.Duration]Instant{0: row.Gone, time.Hour: row.Gone, 3 * time.Hour: lifeNow.Add(3 * time.Hour)} {
		next, eff := Next(row, lifeNow, Event{Kind: EventSettle, Attempt: mine, Action: ActionForget, Fence: lifeFence, Keep: Retention{Tombstone: tombstone}})
		if eff.Err != nil || next.State(lifeNow) != Expired || next.Gone != want || next.Answer != nil || next.Label != "" {
			t.Errorf("a tombstone of %v: %+v, %+v; want it to stand until %d", tombstone, eff, next, want)
		}
	}
}

// TestAuditOfAContradiction: what the attempt said, in words.
func TestAuditOfAContradiction(t *testing.T) {
	for state, events := range map[string]map[string]string{
		"happened, over me": {"compl.≠": "another answer", "release": "nothing happened"},
		"cannot, over me":   {"complete": "it has completed, and was settled as one that cannot", "step": `its step "s" has happened`},
	} {
		for name, says := range events {
			ev := lifeEvents[name]
			ev.Attempt = mine
			_, eff := Next(lifeRows[state], lifeNow, ev)
			a := eff.Audit
			if a == nil || a.Action != ActionContradicted || a.Who != "attempt "+mine.String() || a.Fence != lifeFence ||
				a.Before != a.After || !strings.Contains(a.Why, says) || len(a.Why) > MaxWhy || len(a.Who) > MaxWho {
				t.Errorf("%s, %s: %+v, want %q", state, name, a, says)
			}
		}
	}
	long := Event{Kind: EventCheckpoint, Attempt: mine, Step: strings.Repeat("\x01", MaxStepName)}
	if _, eff := Next(lifeRows["cannot, over me"], lifeNow, long); eff.Audit == nil || len(eff.Audit.Why) > MaxWhy {
		t.Errorf("the longest step's name: %+v", eff)
	}
}

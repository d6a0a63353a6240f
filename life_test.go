package umavez

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestLife goes through every transition: each event in each state that a row
// can be in. lifeTable says what must come of it; a state or an event that is
// missing there fails the test, so that nothing is left to whatever happens.

// The instant at which all events come, and the two attempts: the events are
// "mine"; some rows are another's.
const lifeNow Instant = 50_000_000

var (
	mine  = AttemptID{1}
	other = AttemptID{2}
)

// lifeFence is the fence of every row that has been claimed. It is ahead of the
// clock, as after a clock has stepped back.
const lifeFence Fence = Fence(lifeNow) + 1000

// lifeRows are the states.
var lifeRows = map[string]Row{
	"never seen":         {},
	"released by other":  {Attempt: other, Fence: lifeFence, Until: lifeNow + 1},
	"released by me":     {Attempt: mine, Fence: lifeFence, Until: lifeNow + 1},
	"mine":               running(mine, Opaque, lifeNow+1),
	"mine with a step":   stepped(running(mine, Stepped, lifeNow+1)),
	"mine, taken over":   takenOver(running(mine, Stepped, lifeNow+1)),
	"mine, ran out":      running(mine, Opaque, lifeNow),
	"mine, abandoned":    abandoned(running(mine, Opaque, lifeNow)),
	"other's":            running(other, Rerunnable, lifeNow+1),
	"opaque, ran out":    running(other, Opaque, lifeNow),
	"opaque, abandoned":  abandoned(running(other, Opaque, lifeNow)),
	"rerun, ran out":     running(other, Rerunnable, lifeNow),
	"stepped, abandoned": stepped(abandoned(running(other, Stepped, lifeNow))),
	"step in doubt":      ended(stepped(running(other, Stepped, lifeNow)), ReasonStepInDoubt),
	"atomic, held":       held(running(other, Atomic, lifeNow)),
	"done by me":         finished(mine, lifeNow+1, lifeNow+2),
	"done by other":      finished(other, lifeNow+1, lifeNow+2),
	"expired, by me":     finished(mine, lifeNow, lifeNow+1),
	"expired, by other":  finished(other, lifeNow, lifeNow+1),
	"gone, by me":        finished(mine, lifeNow-1, lifeNow),
	"gone, by other":     finished(other, lifeNow-1, lifeNow),

	// After a settlement. Where "me" is an attempt, it is overruled; where the
	// settlement is mine, the event that is named like it repeats it.
	"happened, over me":  settled(finished(mine, lifeNow+1, lifeNow+2), mine, other),
	"happened, by me":    settled(finished(other, lifeNow+1, lifeNow+2), other, mine),
	"expired, over me":   settled(finished(mine, lifeNow, lifeNow+1), mine, other),
	"expired, mine":      settled(finished(other, lifeNow, lifeNow+1), other, mine),
	"gone, over me":      settled(finished(mine, lifeNow-1, lifeNow), mine, mine),
	"cannot, over me":    overruled(Row{Attempt: mine, Fence: lifeFence, Until: lifeNow + 1}, mine, other),
	"cannot, by me":      overruled(Row{Attempt: other, Fence: lifeFence, Until: lifeNow + 1}, other, mine),
	"contradicted by me": contradicted(overruled(Row{Attempt: mine, Fence: lifeFence, Until: lifeNow + 1}, mine, other)),
	"resumed after me":   overruled(stepped(running(other, Stepped, lifeNow+1)), mine, AttemptID{}),
	"released after me":  overruled(Row{Attempt: other, Fence: lifeFence, Until: lifeNow + 1}, mine, AttemptID{}),
	"lost after me":      overruled(running(other, Rerunnable, lifeNow), mine, AttemptID{}),
	"done after me":      overruled(finished(other, lifeNow+1, lifeNow+2), mine, AttemptID{}),
	"cleared, over me":   cleared(mine, other, lifeFence),
	"cleared, by me":     cleared(other, mine, lifeFence+1),
	"cleared, parked":    ended(cleared(mine, mine, lifeFence), ReasonParked),
	"parked, mine":       parked(running(mine, Opaque, lifeNow), other),
	"parked, other's":    parked(stepped(running(other, Stepped, lifeNow)), other),
	"parked by me":       parked(running(other, Rerunnable, lifeNow), mine),
	"forgotten by me":    forgotten(finished(other, lifeNow, lifeNow+1), mine),
	"forgotten, mine":    forgotten(finished(mine, lifeNow, lifeNow+1), other),
}

func running(by AttemptID, p Policy, until Instant) Row {
	return Row{
		Phase: PhaseRunning, Policy: p, Tries: 1, Attempt: by, Fence: lifeFence, Route: "r",
		Claimed: 1, Since: 2, Until: until, Request: []byte("q"),
	}
}

func stepped(row Row) Row {
	row.Steps = []KeptStep{{Name: "s", Result: []byte("1")}}
	return row
}

func abandoned(row Row) Row {
	row.Ended, row.Last = ReasonReset, []byte("502")
	return row
}

func held(row Row) Row {
	row.Holder, row.HeldUntil = other, lifeNow+1
	return row
}

func finished(by AttemptID, until, gone Instant) Row {
	return Row{
		Phase: PhaseDone, Tries: 1, Attempt: by, Fence: lifeFence, Route: "r",
		Claimed: 1, Since: 2, Until: until, Gone: gone, Answer: []byte("a"),
	}
}

func takenOver(row Row) Row {
	row.Tries = 2
	return row
}

func ended(row Row, why Reason) Row {
	row.Ended = why
	return row
}

// lifeEvents are the events, all of them mine. A claim may take over.
var lifeEvents = map[string]Event{
	"claim":    {Kind: EventClaim, Claim: &ClaimRequest{Policy: Atomic, Lease: time.Second}},
	"takeover": {Kind: EventClaim, Claim: &ClaimRequest{Policy: Atomic, Lease: time.Second, TakeOver: lifeFence}},
	"resume":   {Kind: EventClaim, Claim: &ClaimRequest{Policy: Atomic, Lease: time.Second, TakeOver: lifeFence, Resume: true}},
	"full":     {Kind: EventClaim, Claim: &ClaimRequest{Policy: Atomic, Lease: time.Second, TakeOver: lifeFence, MaxUnsettled: 3}, Unsettled: 3},
	"step":     {Kind: EventCheckpoint, Step: "s", Payload: []byte("1")},
	"step≠":    {Kind: EventCheckpoint, Step: "s", Payload: []byte("2")},
	"word":     {Kind: EventCheckpoint, Step: LastWord, Payload: []byte("w")},
	"complete": {Kind: EventComplete, Payload: []byte("a"), Keep: Retention{time.Hour, time.Hour}},
	"compl.≠":  {Kind: EventComplete, Payload: []byte("b"), Keep: Retention{time.Hour, time.Hour}},
	"release":  {Kind: EventRelease},
	"abandon":  {Kind: EventAbandon, Reason: ReasonPanic, Payload: []byte("w")},
	"extend":   {Kind: EventExtend, For: time.Second},
	"hold":     {Kind: EventHold, For: time.Second, Fence: lifeFence},
	"happened": {Kind: EventSettle, Action: ActionHappened, Payload: []byte("a"), Keep: Retention{time.Hour, time.Hour}, Fence: lifeFence},
	"cannot":   {Kind: EventSettle, Action: ActionCannotHappen, Fence: lifeFence},
	"early":    {Kind: EventSettle, Action: ActionCannotHappen, Fence: lifeFence, For: time.Second},
	"park":     {Kind: EventSettle, Action: ActionPark, Fence: lifeFence},
	"forget":   {Kind: EventSettle, Action: ActionForget, Keep: Retention{Tombstone: time.Hour}, Fence: lifeFence},
}

// lifeTable is the life of a key. A cell says what is answered and written:
//
//	running, lost, done, expired, vacant   yes; the row was written and is now that
//	=                             yes; nothing was written
//	-                             a claim that was not granted; nothing was written
//	!lease !steps !kept !moved !held !early !full   that error; nothing was written
//	!says                         ErrContradicted; see holdsAlways
//
// Columns with ≠ bring another result or answer than the one that stands.
const lifeTable = `
                    | claim    takeover resume   full     step     step≠    word     complete compl.≠  release  abandon  extend   hold     happened cannot   early    park     forget
never seen          | running  running  -        !full    !lease   !lease   !lease   !lease   !lease   vacant   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
released by other   | running  running  -        !full    !lease   !lease   !lease   !lease   !lease   vacant   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
released by me      | -        -        -        -        !lease   !lease   !lease   !lease   !lease   =        !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
mine                | running  running  running  running  running  running  running  done     done     vacant   lost     running  !moved   !moved   !moved   !moved   !moved   !moved
mine with a step    | running  running  running  running  =        !kept    running  done     done     !steps   lost     running  !moved   !moved   !moved   !moved   !moved   !moved
mine, taken over    | running  running  running  running  running  running  running  done     done     !steps   lost     running  !moved   !moved   !moved   !moved   !moved   !moved
mine, ran out       | running  running  running  running  lost     lost     lost     done     done     vacant   lost     running  lost     done     vacant   !early   lost     !moved
mine, abandoned     | -        -        -        -        lost     lost     !lease   done     done     !lease   =        !lease   lost     done     vacant   !early   lost     !moved
other's             | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
opaque, ran out     | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   lost     done     vacant   !early   lost     !moved
opaque, abandoned   | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   lost     done     vacant   !early   lost     !moved
rerun, ran out      | -        running  running  running  !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   lost     done     vacant   !early   lost     !moved
stepped, abandoned  | -        running  running  running  !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   lost     done     lost     !early   lost     !moved
step in doubt       | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   lost     done     lost     !early   lost     !moved
atomic, held        | -        running  running  running  !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !held    done     vacant   !early   lost     !moved
done by me          | -        -        -        -        !lease   !lease   !lease   =        !lease   !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
done by other       | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
expired, by me      | -        -        -        -        !lease   !lease   !lease   =        =        !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
expired, by other   | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
gone, by me         | running  running  -        !full    !lease   !lease   !lease   =        =        vacant   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
gone, by other      | running  running  -        !full    !lease   !lease   !lease   !lease   !lease   vacant   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
happened, over me   | -        -        -        -        !lease   !lease   !lease   !lease   !says    !says    !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
happened, by me     | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   =        !moved   !moved   !moved   expired
expired, over me    | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !says    !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
expired, mine       | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   =        !moved   !moved   !moved   =
gone, over me       | running  running  -        !full    !lease   !lease   !lease   !lease   !lease   vacant   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
cannot, over me     | -        -        -        -        !says    !says    !lease   !says    !says    =        !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
cannot, by me       | running  running  -        !full    !lease   !lease   !lease   !lease   !lease   vacant   !lease   !lease   !moved   !moved   =        =        !moved   !moved
contradicted by me  | -        -        -        -        !says    !says    !lease   !says    !says    =        !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
resumed after me    | -        -        -        -        !says    !says    !lease   !says    !says    !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
released after me   | running  running  -        !full    !says    !says    !lease   !says    !says    vacant   !lease   !lease   !moved   !moved   !moved   !moved   !moved   !moved
lost after me       | -        running  running  running  !says    !says    !lease   !says    !says    !lease   !lease   !lease   lost     done     vacant   !early   lost     !moved
done after me       | -        -        -        -        !says    !says    !lease   !says    !says    !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
cleared, over me    | -        running  running  running  !lease   !says    !lease   !says    !says    !lease   !lease   !lease   !moved   done     lost     !early   lost     !moved
cleared, by me      | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   !moved   =        =        !moved   !moved
cleared, parked     | -        -        -        -        !lease   !says    !lease   !says    !says    !lease   !lease   !lease   !moved   done     lost     !early   =        !moved
parked, mine        | -        -        -        -        lost     lost     !lease   done     done     !lease   =        !lease   !moved   done     vacant   !early   !moved   !moved
parked, other's     | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   done     lost     !early   !moved   !moved
parked by me        | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   done     vacant   !early   =        !moved
forgotten by me     | -        -        -        -        !lease   !lease   !lease   !lease   !lease   !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   =
forgotten, mine     | -        -        -        -        !lease   !lease   !lease   =        =        !lease   !lease   !lease   !moved   !moved   !moved   !moved   !moved   expired
`

// cells reads lifeTable: state, event, what comes of it.
func cells(t *testing.T) map[string]map[string]string {
	t.Helper()
	table := map[string]map[string]string{}
	var events []string
	for line := range strings.Lines(strings.TrimSpace(lifeTable)) {
		state, rest, found := strings.Cut(line, "|")
		if !found {
			t.Fatalf("line without a bar: %q", line)
		}
		words := strings.Fields(rest)
		if events == nil {
			events = words
			continue
		}
		if len(words) != len(events) {
			t.Fatalf("%q has %d cells, want %d", state, len(words), len(events))
		}
		row := map[string]string{}
		for i, word := range words {
			row[events[i]] = word
		}
		table[strings.TrimSpace(state)] = row
	}
	return table
}

var lifeErrors = map[error]string{
	ErrHasSteps: "!steps", ErrStepKept: "!kept", ErrMoved: "!moved", ErrHeld: "!held",
	ErrNotQuiet: "!early", ErrTooManyUnsettled: "!full",
}

// cell names what came of an event, in lifeTable's words.
func cell(ev Event, next Row, eff Effect) string {
	for err, name := range lifeErrors {
		if errors.Is(eff.Err, err) {
			return name
		}
	}
	switch {
	case errors.Is(eff.Err, ErrContradicted):
		return "!says"
	case errors.Is(eff.Err, ErrLeaseLost):
		return "!lease"
	case eff.Err != nil:
		return eff.Err.Error()
	case eff.Write && eff.Acquired == (ev.Kind == EventClaim):
		return next.State(lifeNow).String()
	case eff.Acquired || eff.Write:
		return "acquired and written do not fit"
	case ev.Kind == EventClaim:
		return "-"
	}
	return "="
}

func TestLife(t *testing.T) {
	table := cells(t)
	if got, want := slices.Sorted(maps.Keys(table)), slices.Sorted(maps.Keys(lifeRows)); !slices.Equal(got, want) {
		t.Fatalf("the table has the states\n%q, want\n%q", got, want)
	}
	reached := map[State]map[EventKind]bool{}
	for state, row := range lifeRows {
		if got, want := slices.Sorted(maps.Keys(table[state])), slices.Sorted(maps.Keys(lifeEvents)); !slices.Equal(got, want) {
			t.Fatalf("the table has the events\n%q, want\n%q", got, want)
		}
		for name, ev := range lifeEvents {
			ev.Attempt = mine
			if reached[row.State(lifeNow)] == nil {
				reached[row.State(lifeNow)] = map[EventKind]bool{}
			}
			reached[row.State(lifeNow)][ev.Kind] = true
			next, eff := Next(row, lifeNow, ev)
			if got := cell(ev, next, eff); got != table[state][name] {
				t.Errorf("%s, %s: got %s, want %s", state, name, got, table[state][name])
			}
			holdsAlways(t, state+", "+name, row, ev, next, eff)
		}
	}
	for state := Vacant; state <= Expired; state++ {
		for kind := EventClaim; kind <= EventSettle; kind++ {
			if !reached[state][kind] {
				t.Errorf("no row of the table meets event %d in state %v", kind, state)
			}
		}
	}
}

// holdsAlways checks what is true of every transition.
func holdsAlways(t *testing.T, name string, row Row, ev Event, next Row, eff Effect) {
	t.Helper()
	if !eff.Write && !reflect.DeepEqual(next, row) {
		t.Errorf("%s: the row changed without a write", name)
	}
	says := errors.Is(eff.Err, ErrContradicted)
	if eff.Write && eff.Err != nil && !says {
		t.Errorf("%s: the row is written although the answer is %v", name, eff.Err)
	}
	if says {
		want := row
		want.Contradicted = true
		if !reflect.DeepEqual(next, want) || eff.Write == row.Contradicted {
			t.Errorf("%s: a contradiction made %+v of %+v", name, next, row)
		}
	}
	if wants := eff.Write && (says || ev.Kind == EventSettle); wants != (eff.Audit != nil) {
		t.Errorf("%s: its entry in the audit trail is %+v", name, eff.Audit)
	}
	if next.Fence < row.Fence {
		t.Errorf("%s: the fence fell from %d to %d", name, row.Fence, next.Fence)
	}
	if s := row.State(lifeNow); (s == Done || s == Expired) && eff.Write && !says && ev.Action != ActionForget {
		t.Errorf("%s: a finished row was written", name)
	}
	if s := next.State(lifeNow); (row.State(lifeNow) == Done || row.State(lifeNow) == Expired) && s != Done && s != Expired {
		t.Errorf("%s: a finished row became %v", name, s)
	}
	again, repeated := Next(next, lifeNow, ev)
	if !reflect.DeepEqual(again, next) || !errors.Is(repeated.Err, eff.Err) || repeated.Acquired != eff.Acquired || repeated.Audit != nil {
		t.Errorf("%s: the repeat answers %+v after %+v, or changes the row", name, repeated, eff)
	}
	if _, keep := next.Purge(next.Until + 1<<40); next.Phase == PhaseRunning && !keep {
		t.Errorf("%s: an unfinished row may be purged", name)
	}
}

// TestLifeOfUnknownEvents: a kind that Next does not know changes nothing.
func TestLifeOfUnknownEvents(t *testing.T) {
	row := lifeRows["mine"]
	next, eff := Next(row, lifeNow, Event{Kind: EventSettle + 1, Attempt: mine})
	if eff.Err == nil || eff.Write || !reflect.DeepEqual(next, row) {
		t.Errorf("an unknown event: %+v", eff)
	}
}

// TestTakeOverKeepsTheFirstClaim: what the first claim said stays, and what was
// known of the lost attempt goes: its end, its last word, who looked into it.
func TestTakeOverKeepsTheFirstClaim(t *testing.T) {
	lost := held(stepped(abandoned(running(other, Stepped, lifeNow))))
	got, eff := Next(lost, lifeNow, Event{Kind: EventClaim, Attempt: mine, Claim: &ClaimRequest{
		Policy: Opaque, Route: "another", Request: []byte("another"), Lease: time.Second, TakeOver: lifeFence,
	}})
	want := lost
	want.Attempt, want.Fence, want.Tries = mine, lifeFence+1, 2
	want.Ended, want.Last, want.Holder, want.HeldUntil = "", nil, AttemptID{}, 0
	want.Since, want.Until = lifeNow, lifeNow.Add(time.Second)
	if !eff.Acquired || !reflect.DeepEqual(got, want) {
		t.Errorf("takeover: %+v\ngot  %+v\nwant %+v", eff, got, want)
	}
}

// TestLeaseNeverShortens: neither a repeated claim nor a heartbeat brings the
// end of a lease nearer, and both move it away.
func TestLeaseNeverShortens(t *testing.T) {
	far := lifeNow.Add(time.Minute)
	for _, lease := range []time.Duration{0, time.Second, time.Hour} {
		for _, ev := range []Event{
			{Kind: EventClaim, Attempt: mine, Claim: &ClaimRequest{Lease: lease}},
			{Kind: EventExtend, Attempt: mine, For: lease},
		} {
			next, _ := Next(running(mine, Opaque, far), lifeNow, ev)
			if want := max(far, lifeNow.Add(lease)); next.Until != want {
				t.Errorf("event %d for %v moved the end from %d to %d, want %d", ev.Kind, lease, far, next.Until, want)
			}
		}
	}
}

// TestFenceOfAClaim: the clock where it is ahead, and else one more than before.
func TestFenceOfAClaim(t *testing.T) {
	for before, want := range map[Fence]Fence{
		0: Fence(lifeNow), Fence(lifeNow) - 1: Fence(lifeNow), Fence(lifeNow): Fence(lifeNow) + 1, lifeFence: lifeFence + 1,
	} {
		next, _ := Next(Row{Fence: before}, lifeNow, Event{Kind: EventClaim, Attempt: mine, Claim: &ClaimRequest{}})
		if next.Fence != want {
			t.Errorf("after the fence %d came %d, want %d", before, next.Fence, want)
		}
	}
}

// TestTakeOverIsOfTheSameRequest: one other bit in the fingerprint, or no fence
// at all, and the lost record stays where it is.
func TestTakeOverIsOfTheSameRequest(t *testing.T) {
	claim := func(row Row, seen Fence, of Fingerprint) bool {
		_, eff := Next(row, lifeNow, Event{Kind: EventClaim, Attempt: mine, Claim: &ClaimRequest{TakeOver: seen, Fingerprint: of}})
		return eff.Acquired
	}
	lost := running(other, Rerunnable, lifeNow)
	lost.Fingerprint = Fingerprint{Recipe: 1, Sum: [32]byte{31: 1}}
	if !claim(lost, lifeFence, lost.Fingerprint) {
		t.Error("the same request was refused")
	}
	if claim(lost, lifeFence, Fingerprint{Recipe: 1}) || claim(lost, lifeFence, Fingerprint{Recipe: 2, Sum: lost.Fingerprint.Sum}) {
		t.Error("another request took over")
	}
	lost.Fence = 0 // no store writes this; a zero TakeOver must mean none all the same
	if claim(lost, 0, lost.Fingerprint) {
		t.Error("a claim that wants to take nothing over took over")
	}
}

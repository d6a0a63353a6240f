package umavez

import (
	"fmt"
	"slices"
)

// This file is the world that life_search_test.go searches: one key, a few
// attempts at it, the system in which the operation has its effect, somebody
// who settles what is lost, and the messages between them. Every message may be
// delayed for as long as the search likes, store calls arrive once or twice,
// replies get lost, attempts die at any point, and a lease may end at any time.

// maxAttempts bounds the attempts of a search.
const maxAttempts = 3

// stage is how far an attempt has come.
type stage uint8

const (
	atIdle      stage = iota
	atClaiming        // the claim is sent
	atWon             // the store said yes; the operation may start any moment
	atWaiting         // the effect's request is sent
	atAnswered        // the effect has happened, and the attempt knows
	atFinishing       // the completion is sent; in an atomic operation, the commit
	atLeaving         // the release is sent; the operation was never started
	atReleased        // the store said yes to the release
	atGiving          // the abandon is sent
	atEnded           // nothing more comes of this attempt, but for a late completion
	atGone            // over: answered, turned away, or dead. Nobody tells the difference
)

var stageNames = [...]string{
	"idle", "claiming", "won", "waiting", "answered", "finishing", "leaving", "released", "giving up", "ended", "gone",
}

func (s stage) String() string { return stageNames[s] }

// What an attempt may have on the wire beside its claim. Each is a bit.
const (
	wireEffect = 1 << iota
	wireStep
	wireComplete
	wireRelease
	wireAbandon
	wireExtend
)

// tinyRow is what the store keeps, as far as a search looks at it: small and
// comparable. Instants are reduced to whether the lease has run out, which is
// a step of its own that may come at any time. Holds exclude nobody: they run out
// at once. Who was overruled makes no difference here: to be contradicted is to
// have lost the lease.
type tinyRow struct {
	phase            Phase
	attempt          uint8 // 1 + its index; 0: none
	fence            uint8 // above the first one
	ended            uint8 // index of endings
	expired          bool
	settled, stepped bool
	again            bool // it was taken over
	old              bool // its first claim is longer ago than the target honours keys
	answer           uint8
	holder           uint8 // the settlement that it comes of, while that may be repeated
}

// endings are the reasons between which a search tells a difference.
var endings = [...]Reason{"", ReasonError, ReasonParked, ReasonSettled}

// world is one state of everything.
type world struct {
	row      tinyRow
	stage    [maxAttempts]stage
	claims   [maxAttempts]uint8 // copies of the claim on the wire
	over     [maxAttempts]uint8 // the fence that it would take over
	granted  [maxAttempts]uint8 // the fence that it was granted
	wire     [maxAttempts]uint8
	happened uint8 // the attempts whose effect has happened, a bit each
	forgot   uint8 // of those, whose derived key the target honours no more
	doubts   uint8 // the attempts that may not send what an earlier one may have sent
	refused  uint8 // the attempts whose effect the target will not let happen
	effects  uint8 // how often it has happened, up to 2
	top      uint8 // the highest fence that the target has seen
	settlers [maxSettlers]settler
	saved    uint8 // the answer that somebody was given as saved; 0: nobody yet
	barred   uint8 // the attempts that were told that their release bars them, a bit each
	flaw     flawKind
}

// maxSettlers bounds those who look into lost records, each with verdicts of
// their own.
const maxSettlers = 2

// settler looks into a lost record, a bounded number of times.
type settler struct {
	looking bool
	verdict verdict // the one on the wire
	fence   uint8
	looks   uint8
}

// verdict is what a settler says of a lost attempt.
type verdict uint8

const (
	noVerdict verdict = iota
	saysHappened
	saysCannot // by proof
	saysQuiet  // the same, since nothing of it can be on its way any more
	saysPark
)

// settlement is the name of a settler's settlement: none is repeated for another look.
func (s settler) settlement(i int) uint8 { return 0x80 | s.looks<<1 | uint8(i) }

// flawKind is a broken promise.
type flawKind uint8

const (
	noFlaw flawKind = iota
	twoEffects
	twoAnswers
	lostAnswer
	orphan
	parkedRun
)

var flawNames = [...]string{
	"none", "the effect happened twice", "two answers were given as saved", "a saved answer was lost",
	"the key runs under an attempt that was released, and that nobody runs",
	"an attempt went on with what was set aside",
}

// settledAnswer is what the first settler gives as the answer, and one more the
// second: others than any attempt's, so that none is taken for another.
const settledAnswer = maxAttempts + 1

// searchNow is the instant of all events: the clock stands still, and leases end
// by a step of the search.
const searchNow Instant = 1000

func attemptID(i int) AttemptID { return AttemptID{byte(i + 1)} }

// in makes the Row that Next works on.
func (p tinyRow) in(policy Policy) Row {
	row := Row{
		Phase: p.phase, Policy: policy, Settled: p.settled, Ended: endings[p.ended], Tries: 1, Claimed: searchNow,
		Attempt: AttemptID{p.attempt}, Holder: AttemptID{p.holder},
	}
	if p.fence > 0 {
		row.Fence = Fence(searchNow) + Fence(p.fence) - 1
	}
	if p.again {
		row.Tries = 2
	}
	if p.old {
		row.Claimed = 0
	}
	if !p.expired {
		row.Until = searchNow + 1
	}
	if p.stepped {
		row.Steps = []KeptStep{{Name: "s"}}
	}
	if p.phase == PhaseDone {
		row.Answer, row.Gone = []byte{p.answer}, row.Until
	}
	return row
}

// tinyOf is the way back. It keeps all that Next looks at.
func tinyOf(row Row) tinyRow {
	p := tinyRow{
		phase: row.Phase, attempt: row.Attempt[0], settled: row.Settled,
		ended:   uint8(slices.Index(endings[:], row.Ended)),
		holder:  row.Holder[0],
		stepped: len(row.Steps) > 0, expired: row.Phase == PhaseRunning && searchNow >= row.Until,
	}
	if row.Fence > 0 {
		p.fence = uint8(row.Fence - Fence(searchNow) + 1)
	}
	switch row.Phase {
	case PhaseDone:
		p.answer = row.Answer[0]
	case PhaseRunning:
		p.again, p.old = row.Tries > 1, row.Claimed < searchNow
	}
	return p
}

func (w *world) state() State { return w.row.in(Opaque).State(searchNow) }

// tell notes that somebody was given an answer as the saved one.
func (w *world) tell(answer uint8) {
	if w.saved == 0 {
		w.saved = answer
	}
	if w.saved != answer {
		w.flaw = twoAnswers
	}
}

// plain takes away what makes no difference any more, so that worlds which can
// only go on alike are one.
func (w world) plain(fenced bool) world {
	for a := range w.stage {
		bit := uint8(1) << a
		if w.claims[a] == 0 {
			w.over[a] = 0
		}
		if !fenced {
			w.granted[a] = 0
		}
		if w.stage[a] > atWon {
			w.doubts &^= bit
		}
		switch { // nothing more can come of it
		case w.stage[a] == atEnded && w.happened&bit == 0 && w.wire[a]&wireEffect == 0,
			w.stage[a] == atReleased && w.claims[a] == 0:
			w.stage[a] = atGone
		}
		if w.stage[a] == atGone {
			w.barred &^= bit
			if w.wire[a]&wireEffect == 0 {
				w.refused &^= bit
			}
		}
	}
	w.row.holder = w.heldBy()
	for i := range w.settlers {
		if s := &w.settlers[i]; !s.looking && s.verdict == noVerdict {
			s.fence = 0
		}
	}
	w.rankFences()
	return w
}

// heldBy is the settlement that the row comes of, if it may still be repeated.
func (w *world) heldBy() uint8 {
	for i, s := range w.settlers {
		if s.verdict != noVerdict && s.settlement(i) == w.row.holder {
			return w.row.holder
		}
	}
	return 0
}

// rankFences replaces fences by their ranks: it only matters which are equal,
// and which one is greater.
func (w *world) rankFences() {
	var array [2 + maxSettlers + 2*maxAttempts]*uint8
	all := append(array[:0], &w.row.fence, &w.top)
	for i := range w.settlers {
		all = append(all, &w.settlers[i].fence)
	}
	for a := range w.over {
		all = append(all, &w.over[a], &w.granted[a])
	}
	var present [32]bool // far more than there are, each a rank or one more
	for _, fence := range all {
		present[*fence] = true
	}
	var rank [32]uint8
	next := uint8(1)
	for fence := 1; fence < len(present); fence++ {
		if present[fence] {
			rank[fence] = next
			next++
		}
	}
	for _, fence := range all {
		*fence = rank[*fence]
	}
}

// String tells what there is of a world, for traces.
func (w world) String() string {
	by := ""
	if w.row.phase != PhaseVacant && w.row.attempt > 0 {
		by = fmt.Sprintf(" under attempt %d", w.row.attempt-1)
	}
	return fmt.Sprintf("the key is %v%s; attempts: %v; effects: %d", w.state(), by, w.stage, w.effects)
}

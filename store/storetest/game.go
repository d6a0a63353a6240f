package storetest

import (
	"fmt"
	mathrand "math/rand/v2"

	"github.com/umavez/umavez"
)

// moveKind is what one move of a sequence does.
type moveKind uint8

const (
	moveClaim moveKind = iota
	moveClaimBriefly
	moveTakeOver
	moveTakeOverOld
	moveCheckpoint
	moveNote
	moveComplete
	moveCompleteBriefly
	moveRelease
	moveAbandon
	moveExtend
	moveClaimBounded
	moveResume
	moveHold
	moveHoldBriefly
	moveHappened
	moveHappenedBriefly
	moveCannotHappen
	movePark
	moveForget
	moveSettleOld
	moveSettleAgain
	movePass
	movePurge
	moveKinds
)

var moveNames = [moveKinds]string{
	"claim", "claim for a moment", "take over", "take over by an old fence", "checkpoint", "last word",
	"complete", "complete for a moment", "release", "abandon", "extend", "claim under a bound", "resume",
	"hold", "hold for a moment", "settle as happened", "settle as happened for a moment",
	"settle as what cannot happen", "park", "forget", "settle by an old fence", "repeat the last settlement",
	"let time pass", "purge",
}

// move is one move, as plain numbers, so that a sequence can be run again on
// other keys, and with some of its moves left out.
type move struct {
	kind                  moveKind
	key, attempt, variant uint8
}

// String tells the move in a line.
func (m move) String() string {
	return fmt.Sprintf("key %d, attempt %d: %s (variant %d)", m.key, m.attempt, moveNames[m.kind], m.variant)
}

// How large sequences are: few keys and attempts, so that they meet often.
const (
	sequenceKeys     = 2
	sequenceAttempts = 3
	sequenceMoves    = 60
)

// draw makes a sequence. Time passes seldom, since that may mean waiting.
func draw(random *mathrand.Rand) []move {
	weights := [moveKinds]int{
		moveClaim: 6, moveClaimBriefly: 1, moveTakeOver: 6, moveTakeOverOld: 1, moveCheckpoint: 5, moveNote: 2,
		moveComplete: 3, moveCompleteBriefly: 2, moveRelease: 5, moveAbandon: 6, moveExtend: 2, movePass: 1, movePurge: 1,
		moveClaimBounded: 2, moveResume: 2, moveHold: 2, moveHoldBriefly: 1, moveHappened: 2, moveHappenedBriefly: 1,
		moveCannotHappen: 3, movePark: 2, moveForget: 1, moveSettleOld: 1, moveSettleAgain: 2,
	}
	var bag []moveKind
	for kind, weight := range weights {
		for range weight {
			bag = append(bag, moveKind(kind))
		}
	}
	moves := make([]move, sequenceMoves)
	for i := range moves {
		moves[i] = move{
			kind: bag[random.IntN(len(bag))], key: uint8(random.IntN(sequenceKeys)),
			attempt: uint8(random.IntN(sequenceAttempts)), variant: uint8(random.IntN(8)),
		}
	}
	return moves
}

// game is one run of a sequence: its keys and attempts, and the model's clock.
type game struct {
	*fixture
	now      umavez.Instant
	twins    [sequenceKeys]*twin
	attempts [sequenceKeys][sequenceAttempts]umavez.AttemptID
	// holders are those who look into lost records; last is each key's last
	// settlement, to be repeated.
	holders [2]umavez.AttemptID
	last    [sequenceKeys]umavez.Event
	scope   umavez.ScopeID // all its keys are of one scope
	settles bool           // the store is a Settler
}

// run plays a sequence on fresh keys, and says what went wrong at which move.
func (f *fixture) run(moves []move) (at int, problem string) {
	g := &game{fixture: f, now: modelStart, scope: umavez.ScopeID(umavez.NewAttemptID())}
	_, g.settles = f.store.(umavez.Settler)
	for h := range g.holders {
		g.holders[h] = umavez.NewAttemptID()
	}
	for k := range g.twins {
		g.twins[k] = f.twin(&g.now)
		for a := range g.attempts[k] {
			g.attempts[k][a] = umavez.NewAttemptID()
		}
	}
	for i, m := range moves {
		if problem := g.move(m); problem != "" {
			return i, problem
		}
	}
	return len(moves), ""
}

// move makes one move and looks at what it may have changed.
func (g *game) move(m move) string {
	w := g.twins[m.key]
	switch m.kind {
	case movePass:
		return g.moment()
	case movePurge:
		if p, ok := g.store.(umavez.Purger); ok {
			if _, err := p.Purge(g.Context(), 1000); err != nil {
				return fmt.Sprintf("purge: %v", err)
			}
		}
		return g.lookAtAll()
	}
	ev := g.event(m)
	if ev.Kind >= umavez.EventHold && !g.settles || ev.Kind == umavez.EventSettle && ev.Action == "" {
		return "" // there is nobody to do it, or nothing to repeat
	}
	if problem := w.play(g.Context(), g.store, ev); problem != "" {
		return problem
	}
	switch m.kind {
	case moveSettleAgain:
		if ev.Keep.Retain == g.short() { // it may have been refused the first time
			return g.moment()
		}
	case moveClaimBriefly, moveCompleteBriefly, moveHoldBriefly, moveHappenedBriefly:
		// What was made to end soon ends now: between, nobody can say what the
		// clock has done to it yet.
		return g.moment()
	}
	return w.look(g.Context(), g.store)
}

// moment lets a short time pass, for the store and the model.
func (g *game) moment() string {
	g.pass(g.short())
	g.now = g.now.Add(g.short())
	return g.lookAtAll()
}

func (g *game) lookAtAll() string {
	for k, w := range g.twins {
		if problem := w.look(g.Context(), g.store); problem != "" {
			return fmt.Sprintf("key %d: %s", k, problem)
		}
	}
	return ""
}

// event is the event of a move, for the record as it is.
func (g *game) event(m move) umavez.Event {
	w := g.twins[m.key]
	ev := umavez.Event{Attempt: g.attempts[m.key][m.attempt], For: long, Keep: kept()}
	payloads := [][]byte{[]byte("a"), []byte("b"), {}, nil}
	ev.Payload = payloads[m.variant%4]
	switch m.kind {
	case moveClaim, moveClaimBriefly, moveTakeOver, moveTakeOverOld, moveClaimBounded, moveResume:
		ev.Kind, ev.Claim = umavez.EventClaim, g.claimRequest(m, ev.Attempt, w.row.Fence)
		ev.Unsettled = g.unsettled()
	case moveCheckpoint:
		ev.Kind, ev.Step = umavez.EventCheckpoint, []string{"one", "two"}[m.variant/4]
	case moveNote:
		ev.Kind, ev.Step = umavez.EventCheckpoint, umavez.LastWord
	case moveComplete:
		ev.Kind = umavez.EventComplete
	case moveCompleteBriefly:
		ev.Kind, ev.Keep.Retain = umavez.EventComplete, g.short()
		if m.variant/4 == 0 {
			ev.Keep.Tombstone = 0
		}
	case moveRelease:
		ev.Kind = umavez.EventRelease
	case moveAbandon:
		ev.Kind, ev.Reason = umavez.EventAbandon, []umavez.Reason{umavez.ReasonPanic, umavez.ReasonStatus}[m.variant/4]
	case moveExtend:
		ev.Kind = umavez.EventExtend
	case moveHold, moveHoldBriefly:
		ev = umavez.Event{Kind: umavez.EventHold, Attempt: g.holders[m.variant%2], Fence: w.row.Fence, For: long}
		if m.kind == moveHoldBriefly {
			ev.For = g.short()
		}
	case moveSettleAgain:
		ev = g.last[m.key]
		ev.Kind = umavez.EventSettle
	case moveHappened, moveHappenedBriefly, moveCannotHappen, movePark, moveForget, moveSettleOld:
		ev = g.settlement(m)
		g.last[m.key] = ev
	}
	return ev
}

// unsettled is how many of the game's keys are running or lost.
func (g *game) unsettled() (n int) {
	for _, w := range g.twins {
		if s := w.row.State(g.now); s == umavez.Running || s == umavez.Lost {
			n++
		}
	}
	return n
}

// settlement is a new settlement of a move's key as it is.
func (g *game) settlement(m move) umavez.Event {
	actions := map[moveKind]umavez.Action{
		moveHappened: umavez.ActionHappened, moveHappenedBriefly: umavez.ActionHappened,
		moveCannotHappen: umavez.ActionCannotHappen, movePark: umavez.ActionPark, moveForget: umavez.ActionForget,
		moveSettleOld: []umavez.Action{umavez.ActionHappened, umavez.ActionCannotHappen, umavez.ActionPark, umavez.ActionForget}[m.variant%4],
	}
	s := settlement(actions[m.kind], g.twins[m.key].row.Fence)
	s.Why = fmt.Sprintf("because of variant %d", m.variant)
	switch m.kind {
	case moveSettleOld:
		s.Fence--
	case moveHappened:
		s.Answer = []byte{'a' + m.variant%2}
	case moveHappenedBriefly:
		s.Keep.Retain = g.short()
		if m.variant/4 == 0 {
			s.Keep.Tombstone = 0
		}
	case moveCannotHappen:
		if m.variant == 7 { // its loss is never as old as that
			s.Quiet = long
		}
	}
	return s.Event()
}

func (g *game) claimRequest(m move, by umavez.AttemptID, seen umavez.Fence) *umavez.ClaimRequest {
	req := &umavez.ClaimRequest{
		Attempt: by, Policy: umavez.Policy(m.variant % 4), Lease: long, Namespace: "game", Scope: g.scope,
		Label: fmt.Sprintf("label %d", m.variant),
		Route: fmt.Sprintf("route %d", m.variant), Request: []byte{m.variant},
		// One claim in eight is of another request.
		Fingerprint: umavez.Fingerprint{Recipe: 1 + uint32(m.variant/7)},
	}
	switch m.kind {
	case moveClaimBriefly:
		req.Lease = g.short()
	case moveTakeOver:
		req.TakeOver = seen
	case moveTakeOverOld:
		req.TakeOver = seen - 1
	case moveClaimBounded:
		req.MaxUnsettled = 1 + int(m.variant%2)
	case moveResume:
		req.TakeOver, req.Resume = seen, true
	}
	return req
}

package storetest

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"strings"

	"github.com/umavez/umavez"
)

// modelRules compare the store with umavez.Next over random sequences.
var modelRules = []rule{{
	name: "model/random sequences",
	why: "whatever happens to a few keys under a few attempts, the store's answers and records are those of umavez.Next; " +
		"the other rules are the cases that somebody thought of",
	check: modelSequences,
}}

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
	movePass
	movePurge
	moveKinds
)

var moveNames = [moveKinds]string{
	"claim", "claim for a moment", "take over", "take over by an old fence", "checkpoint", "last word",
	"complete", "complete for a moment", "release", "abandon", "extend", "let time pass", "purge",
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
		moveComplete: 3, moveCompleteBriefly: 2, moveRelease: 5, moveAbandon: 4, moveExtend: 2, movePass: 1, movePurge: 1,
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
}

// run plays a sequence on fresh keys, and says what went wrong at which move.
func (f *fixture) run(moves []move) (at int, problem string) {
	g := &game{fixture: f, now: modelStart}
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
	if problem := w.play(g.Context(), g.store, g.event(m)); problem != "" {
		return problem
	}
	if m.kind == moveClaimBriefly || m.kind == moveCompleteBriefly {
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
	case moveClaim, moveClaimBriefly, moveTakeOver, moveTakeOverOld:
		ev.Kind, ev.Claim = umavez.EventClaim, g.claimRequest(m, ev.Attempt, w.row.Fence)
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
	}
	return ev
}

func (g *game) claimRequest(m move, by umavez.AttemptID, seen umavez.Fence) *umavez.ClaimRequest {
	req := &umavez.ClaimRequest{
		Attempt: by, Policy: umavez.Policy(m.variant % 4), Lease: long,
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
	}
	return req
}

func modelSequences(f *fixture) {
	seed := f.cfg.Seed
	if seed == 0 {
		var b [8]byte
		rand.Read(b[:])
		seed = binary.LittleEndian.Uint64(b[:])
	}
	sequences := f.cfg.Sequences
	if sequences == 0 {
		sequences = 40
	}
	for n := range sequences {
		moves := draw(mathrand.New(mathrand.NewPCG(seed, uint64(n))))
		at, problem := f.run(moves)
		if problem == "" {
			continue
		}
		short, shortProblem := f.shrink(moves[:min(at+1, len(moves))], problem)
		var told strings.Builder
		for i, m := range short {
			fmt.Fprintf(&told, "\n%4d. %v", i+1, m)
		}
		f.Fatalf("Config.Seed %d, sequence %d, move %d: %s\nthe shortest sequence found (%d moves) ends with: %s%s",
			seed, n, at+1, problem, len(short), shortProblem, told.String())
	}
}

// shrinkRuns bounds how often a failing sequence is run again to make it shorter.
const shrinkRuns = 400

// shrink leaves out moves, in ever smaller pieces, as long as what is left fails.
func (f *fixture) shrink(moves []move, problem string) (shortest []move, why string) {
	shortest, why = moves, problem
	runs := 0
	for piece := len(shortest) / 2; piece > 0 && runs < shrinkRuns; {
		shorter := false
		for from := 0; from+piece <= len(shortest) && runs < shrinkRuns; {
			left := append(append([]move(nil), shortest[:from]...), shortest[from+piece:]...)
			runs++
			if at, p := f.run(left); p != "" {
				shortest, why, shorter = left[:at+1], p, true
				continue
			}
			from += piece
		}
		if !shorter {
			piece /= 2
		}
	}
	return shortest, why
}

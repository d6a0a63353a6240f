package umavez

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// setting is a world's laws: how the operation was declared, what its target
// does, how lost records are settled, and what is wrong, if anything.
type setting struct {
	policy   Policy
	attempts int
	copies   uint8 // of each claim
	// next replaces Next, in settings that are to fail.
	next func(Row, Instant, Event) (Row, Effect)
	// dedupes: the target lets the effect of a derived key happen once. keyed
	// by attempt: each attempt derives a key of its own, which is wrong.
	dedupes, keyedByAttempt bool
	// forgets: the target forgets the derived keys that it has honoured. Forgets
	// late: when that was for longer than the operation counts on.
	forgets, forgetsLate bool
	// fenced: the target refuses what comes with an older fence than it has seen.
	fenced bool
	// naive: what the settler does not find did not happen, it says.
	naive bool
	// lateBeats: heartbeats take their time on the wire, as other calls do.
	lateBeats bool
	// looks is how often a settler may look. Parks: it may set the record aside.
	looks              uint8
	parks, twoSettlers bool
	// many: the effect may happen more than once.
	many bool
	// everBarred: a release is taken to bar its attempt for ever.
	everBarred bool

	moves map[move]moved // what Next has said already
}

// found is what a search has come to.
type found struct {
	worlds int
	steps  map[string]bool // every kind of step that was taken
	flaw   flawKind
	trace  []string // the steps that lead to the flaw; the shortest there are
}

// node is a world that was reached, from where, and by which step.
type node struct {
	world world
	from  int32
	step  step
}

// step is one thing that happens, to one attempt or to none.
type step struct {
	what string
	who  int
}

func (s step) String() string {
	if s.who < 0 {
		return s.what
	}
	return fmt.Sprintf("attempt %d: %s", s.who, s.what)
}

// search goes through all worlds that can come of nothing, nearest first, until
// a promise is broken or there is nothing new.
func search(s setting) found {
	s.moves = map[move]moved{}
	nodes, steps := []node{{from: -1}}, map[string]bool{}
	seen := map[world]struct{}{{}: {}}
	for i := int32(0); int(i) < len(nodes); i++ {
		for _, next := range s.successors(nodes[i].world) {
			if _, known := seen[next.world]; known {
				continue
			}
			seen[next.world] = struct{}{}
			steps[next.step.what] = true
			next.from = i
			nodes = append(nodes, next)
			if next.world.flaw != noFlaw {
				return found{len(seen), steps, next.world.flaw, trace(nodes)}
			}
		}
	}
	return found{worlds: len(seen), steps: steps}
}

// trace lists the steps to the last node.
func trace(nodes []node) (steps []string) {
	for i := int32(len(nodes) - 1); nodes[i].from >= 0; i = nodes[i].from {
		steps = append([]string{fmt.Sprintf("%v → %v", nodes[i].step, nodes[i].world)}, steps...)
	}
	return steps
}

// TestLifeKeepsItsPromises searches, for each policy, everything that can come
// of a few attempts, and of somebody who settles what is lost.
func TestLifeKeepsItsPromises(t *testing.T) {
	for name, s := range map[string]setting{
		"opaque":                  {policy: Opaque, attempts: 2, copies: 2, looks: 1},
		"opaque, settled twice":   {policy: Opaque, attempts: 2, copies: 1, looks: 2},
		"opaque, late heartbeats": {policy: Opaque, attempts: 2, copies: 1, looks: 1, lateBeats: true},
		"opaque, three attempts":  {policy: Opaque, attempts: 3, copies: 1},
		"rerunnable":              {policy: Rerunnable, attempts: 2, copies: 2, looks: 1, many: true},
		"stepped":                 {policy: Stepped, attempts: 2, copies: 1, looks: 1, dedupes: true},
		"stepped, repeats":        {policy: Stepped, attempts: 2, copies: 2, dedupes: true},
		"stepped, and resumed":    {policy: Stepped, attempts: 2, copies: 1, looks: 1, parks: true, dedupes: true, forgetsLate: true},
		"stepped, three attempts": {policy: Stepped, attempts: 3, copies: 1, dedupes: true, forgetsLate: true},
		"stepped, two settlers":   {policy: Stepped, attempts: 2, copies: 1, looks: 1, twoSettlers: true, dedupes: true},
		"opaque, set aside":       {policy: Opaque, attempts: 2, copies: 1, looks: 2, parks: true},
		"opaque, two settlers":    {policy: Opaque, attempts: 2, copies: 1, looks: 1, parks: true, twoSettlers: true},
		"atomic":                  {policy: Atomic, attempts: 2, copies: 2, looks: 2, lateBeats: true},
		"atomic, three attempts":  {policy: Atomic, attempts: 3, copies: 1, looks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got := search(s)
			t.Logf("%d worlds in %v", got.worlds, time.Since(began).Round(time.Millisecond))
			if got.flaw != noFlaw {
				t.Errorf("%s, in %d steps:\n%s", flawNames[got.flaw], len(got.trace), strings.Join(got.trace, "\n"))
			}
			for _, what := range []string{
				"its claim arrives late", "its heartbeat arrives", "its abandon arrives, the reply is lost",
				"its completion arrives, the reply is lost", "dies", "the lease runs out", "the released row is purged",
			} {
				if s.policy == Atomic && strings.Contains(what, "abandon") {
					continue // what ends badly is rolled back
				}
				if !got.steps[what] {
					t.Errorf("the search never came to a step %q", what)
				}
			}
			for what, wanted := range map[string]bool{
				"the settlement arrives, the reply is lost": s.looks > 0,
				"the settlement, over kept steps, arrives":  s.policy == Stepped && s.looks > 0,
				"a settler sets it aside":                   s.parks,
				"the target forgets its keys":               s.forgetsLate,
				"finds its step in doubt and abandons":      s.forgetsLate,
				"a settler finds that it happened":          s.looks > 0 && s.policy != Atomic,
			} {
				if got.steps[what] != wanted {
					t.Errorf("the search came to a step %q: %v", what, !wanted)
				}
			}
		})
	}
}

// Lives that are wrong in one way.

// stolenFrom lets the next attempt take over whatever the policy.
func stolenFrom(row Row, now Instant, ev Event) (Row, Effect) {
	if ev.Kind == EventClaim && row.State(now) == Lost && row.Attempt != ev.Attempt {
		row.Policy = Rerunnable
	}
	return Next(row, now, ev)
}

// stolenUnfenced also lets the one complete who was stolen from.
func stolenUnfenced(row Row, now Instant, ev Event) (Row, Effect) {
	if ev.Kind == EventComplete {
		return overwrites(row, now, ev)
	}
	return stolenFrom(row, now, ev)
}

// barless forgets whom a release bars.
func barless(row Row, now Instant, ev Event) (Row, Effect) {
	next, eff := Next(row, now, ev)
	if ev.Kind == EventRelease && eff.Write {
		next.Attempt = AttemptID{}
	}
	return next, eff
}

// overwrites lets whoever completes last have the record.
func overwrites(row Row, now Instant, ev Event) (Row, Effect) {
	if ev.Kind == EventComplete && row.Phase != PhaseVacant {
		row.Phase, row.Attempt = PhaseRunning, ev.Attempt
	}
	return Next(row, now, ev)
}

// unfencedSettling settles whatever is there.
func unfencedSettling(row Row, now Instant, ev Event) (Row, Effect) {
	if ev.Kind == EventSettle {
		ev.Fence = row.Fence
	}
	return Next(row, now, ev)
}

// anybodysRepeat takes a settlement that says what stands for a repeat.
func anybodysRepeat(row Row, now Instant, ev Event) (Row, Effect) {
	if ev.Kind == EventSettle && ev.Action == ActionHappened && row.Settled && row.Fence == ev.Fence {
		return row, Effect{}
	}
	return Next(row, now, ev)
}

// stepless clears a row with all that it holds.
func stepless(row Row, now Instant, ev Event) (Row, Effect) {
	next, eff := Next(row, now, ev)
	if eff.Write && ev.Action == ActionCannotHappen {
		next = row.vacated(now, row.Attempt)
	}
	return next, eff
}

// ageless takes a proof for the end of all doubt.
func ageless(row Row, now Instant, ev Event) (Row, Effect) {
	next, eff := Next(row, now, ev)
	if eff.Write && ev.Action == ActionCannotHappen && next.cleared() {
		next.Claimed = now
	}
	return next, eff
}

// parkless lets the next attempt go on with what was set aside.
func parkless(row Row, now Instant, ev Event) (Row, Effect) {
	if ev.Kind == EventClaim && row.Ended == ReasonParked {
		row.Ended = ReasonError
	}
	return Next(row, now, ev)
}

// forgetful releases a stepped row that was taken over.
func forgetful(row Row, now Instant, ev Event) (Row, Effect) {
	if ev.Kind == EventRelease {
		row.Tries = 1
	}
	return Next(row, now, ev)
}

// TestSearchFindsBrokenPromises: each of these is a way in which such systems
// are built, and the search finds what is wrong with it. It also shows that the
// promises above hold because of the rules, and not because the search looks
// away.
func TestSearchFindsBrokenPromises(t *testing.T) {
	for _, c := range []struct {
		name string
		setting
		want flawKind
		// without are steps that the shortest trace does without: the flaw does
		// not need them.
		without string
	}{
		{"a lost opaque record is stolen and rerun", setting{policy: Opaque, next: stolenFrom}, twoEffects, ""},
		{"it is stolen, and completions are not fenced", setting{policy: Opaque, next: stolenUnfenced, many: true}, lostAnswer, ""},
		{"it is stolen, and the target refuses older fences", setting{policy: Opaque, next: stolenFrom, fenced: true}, twoEffects, ""},
		{"a rerunnable policy for an operation that must happen once", setting{policy: Rerunnable}, twoEffects, ""},
		{"a rerunnable operation whose last answer stands", setting{policy: Rerunnable, next: overwrites, many: true}, lostAnswer, ""},
		{"what the settler does not find did not happen", setting{policy: Opaque, naive: true, looks: 1}, twoEffects, "dies"},
		{"the same, and the target refuses older fences", setting{policy: Opaque, naive: true, looks: 1, fenced: true}, twoEffects, "dies"},
		{"each attempt derives a key of its own", setting{policy: Stepped, dedupes: true, keyedByAttempt: true}, twoEffects, ""},
		{"the target forgets the keys that it honoured", setting{policy: Stepped, dedupes: true, forgets: true}, twoEffects, ""},
		{"a stepped policy without a target that dedupes", setting{policy: Stepped}, twoEffects, ""},
		{"a release bars nobody", setting{policy: Opaque, next: barless}, orphan, "dies"},
		// A limit that the contract names: a record has room for one bar. With
		// room for all of them this would not be found.
		{"a bar is taken to outlast the next release", setting{policy: Opaque, everBarred: true}, orphan, "dies"},
		{"a settlement of whatever is there", setting{policy: Opaque, next: unfencedSettling, attempts: 3, looks: 1}, twoEffects, ""},
		{"somebody else's settlement for a repeat", setting{policy: Opaque, next: anybodysRepeat, looks: 1, twoSettlers: true}, lostAnswer, ""},
		{"a settlement that forgets kept steps", setting{policy: Stepped, next: stepless, looks: 1, dedupes: true, forgetsLate: true}, twoEffects, ""},
		{"a proof that begins the time of derived keys anew", setting{policy: Stepped, next: ageless, looks: 1, dedupes: true, forgetsLate: true}, twoEffects, ""},
		{"a record that is set aside in name only", setting{policy: Stepped, next: parkless, looks: 1, parks: true, dedupes: true}, parkedRun, "dies"},
		{"a stepped takeover that is released", setting{policy: Stepped, next: forgetful, attempts: 3, dedupes: true, forgetsLate: true}, twoEffects, "dies"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.attempts, c.copies = max(c.attempts, 2), 2; c.attempts > 2 {
				c.copies = 1
			}
			got := search(c.setting)
			t.Logf("%d worlds; in %d steps:\n%s", got.worlds, len(got.trace), strings.Join(got.trace, "\n"))
			if got.flaw != c.want {
				t.Errorf("the search found: %s; want: %s", flawNames[got.flaw], flawNames[c.want])
			}
			if c.without != "" && strings.Contains(strings.Join(got.trace, "\n"), c.without) {
				t.Errorf("the shortest trace needs a step %q", c.without)
			}
		})
	}
}

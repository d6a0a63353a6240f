package killtest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/sqlitestore"
)

// audit asks for the fate of every key, and holds the ledger, the journal and
// what the clients received against each other.
func (tr *trial) audit() {
	tr.t.Helper()
	caught, err := readJournal(tr.journal)
	if err != nil {
		tr.t.Fatal(err)
	}
	if caught.secret, err = readSecret(tr.t.Context(), tr.store); err != nil {
		tr.t.Fatal(err)
	}
	var sum summary
	unstarted := 0
	for n := range tr.next.Load() {
		key := keyOf(n)
		at := caught.caught(key)
		fate := tr.finally(key)
		sum.add(fate, at)
		if fate == unknown && !started(at) {
			unstarted++
		}
		tr.auditEffects(key, at, fate)
		// A later attempt of the same key may have been caught elsewhere.
		if diedAt := caught.diedAt[caught.recordID(key)]; diedAt == umavez.MomentClaimed.String() && tellsStarted && fate != done && !started(at) {
			tr.t.Errorf("%s: its process died just before the start, and it is not vacant again; caught at %v", key, at)
		}
		tr.auditAnswers(key)
	}
	for _, p := range tr.client.problems {
		tr.t.Error(p)
	}
	tr.t.Logf("%d kills, %d keys: %v; %d answers 503", tr.kills, tr.next.Load(), &sum, tr.client.unavailable.Load())
	switch {
	case unstarted == 0:
	case tellsStarted:
		tr.t.Logf("%d keys are unknown whose process died between the note of their start and the start", unstarted)
	default:
		tr.t.Logf("%d keys are unknown that were claimed and not started: this store does not tell the two apart", unstarted)
	}
}

// finally asks for a key until nobody holds it any more, which takes a lease at
// the longest.
func (tr *trial) finally(key string) outcome {
	// No other process comes: an attempt that fails is made again at once.
	over := make(chan struct{})
	close(over)
	// Twice a lease: its end, and time for a busy machine.
	for deadline := time.Now().Add(2*lease + 5*time.Second); ; {
		fate := tr.client.settle(over, key)
		if fate != pending {
			return fate
		}
		if time.Now().After(deadline) {
			tr.t.Errorf("%s: still in progress, long after its lease", key)
			return pending
		}
	}
}

// tellsStarted: the store can tell, after a death, which attempts had started.
// Where it cannot, every claim of a dead process counts as started.
var _, tellsStarted = any((*sqlitestore.Store)(nil)).(umavez.StartMarker)

// started reports whether a death caught an attempt between its start and the
// store's acknowledgement of its end.
func started(at []string) bool {
	return slices.ContainsFunc(at, func(moment string) bool { return doubtful[moment] })
}

func (tr *trial) auditEffects(key string, at []string, fate outcome) {
	effects := len(tr.upstream.ledger(key))
	if effects > 1 {
		tr.t.Errorf("%s: %d effects; its attempts were caught at %v", key, effects, at)
	}
	switch {
	case fate == done && effects != 1:
		tr.t.Errorf("%s: done with %d effects", key, effects)
	case fate == unknown && !tr.client.cut[key]:
		tr.t.Errorf("%s: unknown, though no death broke an attempt off", key)
	case fate == unknown && tellsStarted && !started(at) && !slices.Contains(at, umavez.MomentClaimed.String()):
		// A key that was claimed and not started is vacant again, and the next
		// attempt has run. (One that was last seen as claimed may have been
		// noted as started just before the death.)
		tr.t.Errorf("%s: unknown, though its attempts were caught at %v", key, at)
	case fate == unknown && len(tr.client.received[key]) > 0:
		tr.t.Errorf("%s: unknown, though a client received its answer", key)
	}
}

// auditAnswers: all answers to a key are the same, they are that of its one
// effect, and the last one, from a process that did not run it, is a replay.
func (tr *trial) auditAnswers(key string) {
	received := tr.client.received[key]
	if len(received) == 0 {
		return
	}
	for _, a := range received[1:] {
		if !a.same(received[0]) {
			tr.t.Errorf("%s: two answers:\n%+v\n%+v", key, received[0], a)
		}
	}
	ledger := tr.upstream.ledger(key)
	if len(ledger) != 1 || received[0].Body != ledger[0] || !strings.Contains(received[0].Header, "X-Effect: "+key+"\r\n") {
		tr.t.Errorf("%s: the answer is not that of its effect: %+v", key, received[0])
	}
	if len(received) > 1 && !received[len(received)-1].Replayed {
		tr.t.Errorf("%s: answered %d times, and the last answer is not marked as a replay", key, len(received))
	}
}

// summary counts, for people.
type summary struct {
	fates  [3]int
	caught map[string]int
}

func (s *summary) add(fate outcome, at []string) {
	s.fates[fate]++
	if s.caught == nil {
		s.caught = map[string]int{}
	}
	for _, moment := range at {
		s.caught[moment]++
	}
}

// String names the fates, and where the deaths caught attempts.
func (s *summary) String() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(s.fates[done]) + " done")
	b.WriteString(", " + strconv.Itoa(s.fates[unknown]) + " unknown" + "; caught at a death:")
	for _, moment := range slices.Sorted(maps.Keys(s.caught)) {
		b.WriteString(" " + strconv.Itoa(s.caught[moment]) + " " + moment)
	}
	return b.String()
}

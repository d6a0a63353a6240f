package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// Config says how to get at the store under test.
type Config struct {
	// Open opens a store on data of its own: empty, and seen by no other store
	// that Open returns. It is called several times. What must be closed or
	// deleted afterwards, it leaves to t.Cleanup.
	Open func(t *testing.T) Opened
	// Seed begins the random sequences. Zero: a seed drawn for this run. The
	// seed is printed when a sequence fails.
	Seed uint64
	// Sequences is how many random sequences are run. Default 40.
	Sequences int
}

// Opened is a store under test, and what else can be done with it.
type Opened struct {
	Store umavez.Store
	// Peer opens another client of the same data, as a second process would
	// have. Nil: the data lives in one process.
	Peer func(t *testing.T) umavez.Store
	// Reopen ends Store, as the end of a process would, and opens another one
	// on the same data. Nil: the store forgets when it ends.
	Reopen func(t *testing.T) umavez.Store
	// Advance moves the store's clock by d. Nil: the clock cannot be moved, and
	// the suite waits for it.
	Advance func(d time.Duration)
}

// tester is what a rule needs of a test. *testing.T has it. The suite's own test
// puts a recorder in its place, to see rules fail.
type tester interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Context() context.Context
}

// rule is a sentence of the contract.
type rule struct {
	// name is what a failing test is called: the call, and what of it.
	name string
	// why is printed when the rule breaks: the sentence, and what comes of a
	// store that does not keep it.
	why string
	// alone: the rule needs a store that nobody else uses, since it counts what
	// is in it, or ends it.
	alone bool
	check func(f *fixture)
}

// Run holds a store to the contract. It returns when all rules have run.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	first := cfg.Open(t)
	t.Run("contract", func(t *testing.T) {
		for _, r := range rules() {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				opened := first
				// Where the clock can be moved, each rule has a store of its
				// own: else one rule's hour would end another rule's lease.
				if r.alone || first.Advance != nil {
					opened = cfg.Open(t)
				}
				r.run(t, &fixture{tester: t, real: t, cfg: cfg, opened: opened, store: opened.Store})
			})
		}
	})
}

// run checks the rule, and explains it when it fails.
func (r rule) run(t tester, f *fixture) {
	defer func() {
		if t.Failed() {
			t.Logf("the rule %s: %s", r.name, r.why)
		}
	}()
	r.check(f)
}

// rules returns the whole table.
func rules() []rule {
	return slices.Concat(
		claimRules, takeoverRules, fenceRules,
		checkpointRules, completeRules, releaseRules, abandonRules, extendRules,
		retentionRules, recordRules, cancelRules,
		raceRules, keyRules, faultRules(), restartRules, modelRules,
		purgeRules, settingsRules,
		holdRules, settleRules, contradictRules, trailRules, settleRaceRules,
		unsettledRules, listRules, rewriteRules,
	)
}

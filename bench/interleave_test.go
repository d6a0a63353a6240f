//go:build unix

package bench

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// What is measured is CPU time of this process, user and system: on a machine
// that is shared, wall time measures the neighbours. Caches and clock rates are
// shared all the same, so the sides take turns every few milliseconds, and what
// is compared is the one side's time with the other's of the same moment.

const (
	// rounds is how many turns each side has. The median of so many moves by a
	// few percent from run to run.
	rounds = 30
	// perRound is how many keys each side is sent in a turn: a dozen cycles of
	// the collector, so that one more or less does not matter.
	perRound = 6000
	// warmUp is how many keys go first, unmeasured, through what is new in a turn.
	warmUp = 200
)

// pace is what one request costs a side in one round. The harness makes garbage,
// too, and the collector costs more the more it must walk through: so what is
// taken off is the harness in the company of stores that are as full.
type pace struct {
	empty  time.Duration // the bare harness, while the stores are empty
	first  time.Duration
	full   time.Duration // the bare harness, while the stores are full
	replay time.Duration
}

// interleave lets the sides take turns, and returns the pace of each, by round.
// Only one processor runs Go code meanwhile: the collector's idle workers on
// others would count as work of whoever is being measured.
func interleave(tb testing.TB, sides []*side) (byRound [][]pace) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, s := range sides {
		s.check(tb)
	}
	for round := range rounds {
		keys := newKeys(perRound + warmUp)
		keys, warm := keys[:perRound], keys[perRound:]
		// Every store is there from the beginning, so that the collector, which
		// walks through all of them, costs each section the same.
		for _, s := range sides {
			s.renew()
			s.send(tb, s.bare, warm)
			s.send(tb, s.once, warm)
			s.send(tb, s.once, warm)
		}
		paces := make([]pace, len(sides))
		for _, section := range []func(s *side, p *pace){
			func(s *side, p *pace) { p.empty = cost(tb, s, s.bare, keys) },
			func(s *side, p *pace) { p.first = cost(tb, s, s.once, keys) },
			func(s *side, p *pace) { p.full = cost(tb, s, s.bare, keys) },
			func(s *side, p *pace) { p.replay = cost(tb, s, s.once, keys) },
		} {
			// Each is first in some rounds: whoever comes later finds the
			// processor as the one before has left it.
			for turn := range sides {
				i := (round + turn) % len(sides)
				section(sides[i], &paces[i])
			}
		}
		byRound = append(byRound, paces)
	}
	return byRound
}

// cost is the CPU time that a request takes, of as many as there are keys. The
// collector begins afresh, so that nobody pays for another's garbage.
func cost(tb testing.TB, s *side, through func(string) int, keys []string) time.Duration {
	runtime.GC()
	start := cpuTime(tb)
	s.send(tb, through, keys)
	return (cpuTime(tb) - start) / time.Duration(len(keys))
}

// cpuTime is the CPU time that this process has used, all threads together.
func cpuTime(tb testing.TB) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// median is the middle of a figure over all rounds.
func median(byRound [][]pace, figure func(paces []pace) float64) float64 {
	values := make([]float64, len(byRound))
	for i, paces := range byRound {
		values[i] = figure(paces)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

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

// interleave lets the sides take turns, and returns the paces of each, by round.
// Only one processor runs Go code meanwhile: the collector's idle workers on
// others would count as work of whoever is being measured.
func interleave(tb testing.TB, sides []*side) (paces [][]pace) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	paces = make([][]pace, len(sides))
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
		now := make([]pace, len(sides))
		// Each is first in some rounds: whoever comes later finds the processor
		// as the one before has left it.
		for _, section := range []func(i int){
			func(i int) { now[i].empty = cost(tb, sides[i], sides[i].bare, keys) },
			func(i int) { now[i].first = cost(tb, sides[i], sides[i].once, keys) },
			func(i int) { now[i].full = cost(tb, sides[i], sides[i].bare, keys) },
			func(i int) { now[i].replay = cost(tb, sides[i], sides[i].once, keys) },
		} {
			for turn := range sides {
				section((round + turn) % len(sides))
			}
		}
		for i := range sides {
			paces[i] = append(paces[i], now[i])
		}
	}
	return paces
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

// median is the middle of n values.
func median(n int, value func(i int) float64) float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = value(i)
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

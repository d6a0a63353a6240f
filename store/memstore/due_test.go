package memstore

import (
	"math/rand/v2"
	"testing"

	"github.com/umavez/umavez"
)

// TestDueHeap moves rows in, out and about at random. After every move the
// heap must hold exactly the rows that are due some day, each where it thinks
// it is, and the one that is due first on top.
func TestDueHeap(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 0))
	var heap dueHeap
	rows := make([]*resident, 40)
	for i := range rows {
		rows[i] = &resident{at: notDue, phase: umavez.PhaseRunning}
	}
	for move := range 20_000 {
		r := rows[random.IntN(len(rows))]
		r.phase = umavez.Phase(random.IntN(3))
		r.until = umavez.Instant(random.IntN(1000))
		r.gone = r.until + umavez.Instant(random.IntN(2)*random.IntN(1000))
		r.answer = [][]byte{nil, {1}}[random.IntN(2)]
		heap.place(r)

		first, due := umavez.Instant(1<<62), 0
		for _, r := range rows {
			at, ok := r.dueAt()
			if ok != (r.at != notDue) || ok && heap[r.at] != r {
				t.Fatalf("seed %d, move %d: a row of phase %d is at place %d", seed, move, r.phase, r.at)
			}
			if ok {
				due++
				first = min(first, at)
			}
		}
		if len(heap) != due {
			t.Fatalf("seed %d, move %d: the heap holds %d rows, want %d", seed, move, len(heap), due)
		}
		if due > 0 && (heap.top(first) == nil || heap.top(first-1) != nil) {
			t.Fatalf("seed %d, move %d: the top is not due at %d", seed, move, first)
		}
	}
}

// TestDueAgreesWithPurge: dueAt is the first instant at which Row.Purge does
// something, so that a row that is due never comes back unchanged (a purge would
// count it for ever) and none that is not due is touched.
func TestDueAgreesWithPurge(t *testing.T) {
	for _, row := range []umavez.Row{
		{Phase: umavez.PhaseVacant, Until: 10},
		{Phase: umavez.PhaseRunning, Until: 10},
		{Phase: umavez.PhaseDone, Until: 10, Gone: 10, Answer: []byte("a")},
		{Phase: umavez.PhaseDone, Until: 10, Gone: 20, Answer: []byte("a")},
		{Phase: umavez.PhaseDone, Until: 10, Gone: 20},
		{Phase: umavez.PhaseDone, Until: 10, Gone: 5, Answer: []byte{}},
	} {
		r := &resident{}
		r.set(row)
		at, due := r.dueAt()
		for now := umavez.Instant(0); now < 30; now++ {
			next, keep := row.Purge(now)
			acts := !keep || (next.Answer == nil) != (row.Answer == nil)
			if acts != (due && now >= at) {
				t.Errorf("row %+v at %d: purge acts %v, due at %d (%v)", row, now, acts, at, due)
			}
		}
	}
}

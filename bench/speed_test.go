//go:build unix

package bench

import "testing"

// added is what a side's middleware adds to its bare harness, in ns.
var added = []struct {
	op string
	by func(pace) float64
}{
	// The stores fill up meanwhile.
	{"first", func(p pace) float64 { return float64(p.first - (p.empty+p.full)/2) }},
	{"replay", func(p pace) float64 { return float64(p.replay - p.full) }},
}

// BenchmarkSpeed compares the CPU time that umavez and fiber's middleware add to
// a request, each to its own bare harness. All its lines are parts of one
// measurement of both sides, in turns; with -count there is one for each count.
// The names are such that benchstat puts the sides beside each other:
// benchstat -col /side.
//
// The ratios are medians of the ratios of each round; the README says what they
// are to be.
func BenchmarkSpeed(b *testing.B) {
	m := &measured{tb: b, sides: []*side{umavezSide(b), fiberSide(b)}}
	for i, s := range m.sides {
		m.report(b, "op=bare/side="+s.name, "cpu-ns/op", func(paces []pace) float64 { return float64(paces[i].full) })
		for _, a := range added {
			m.report(b, "op="+a.op+"/side="+s.name, "cpu-ns/op", func(paces []pace) float64 { return a.by(paces[i]) })
		}
	}
	for _, a := range added {
		m.report(b, "op="+a.op+"/ratio", "umavez/fiber", func(paces []pace) float64 { return a.by(paces[0]) / a.by(paces[1]) })
	}
}

// measured holds a measurement for each count that was asked for.
type measured struct {
	tb    testing.TB
	sides []*side
	runs  [][][]pace // of each count, of each round, of each side
}

// report prints one figure of each measurement as a benchmark of its own: the
// median over its rounds.
func (m *measured) report(b *testing.B, name, unit string, figure func(paces []pace) float64) {
	count := 0
	b.Run(name, func(b *testing.B) {
		if b.N == 1 { // as testing begins each count
			count++
		}
		for len(m.runs) < count {
			m.runs = append(m.runs, interleave(m.tb, m.sides))
		}
		b.ReportMetric(0, "ns/op") // which would be the time of printing it
		b.ReportMetric(median(m.runs[count-1], figure), unit)
	})
}

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
// a request, each to its own bare harness. One run of it measures both sides
// once, in turns; each line that it prints is a part of that. Its names are such
// that benchstat puts the sides beside each other: benchstat -col /side.
//
// The ratios are medians of the ratios of each round; the README says what they
// are to be.
func BenchmarkSpeed(b *testing.B) {
	sides := []*side{umavezSide(b), fiberSide(b)}
	for _, s := range sides {
		s.check(b)
	}
	paces := interleave(b, sides)
	for i, s := range sides {
		report(b, "op=bare/side="+s.name, "cpu-ns/op", median(rounds, func(r int) float64 { return float64(paces[i][r].full) }))
		for _, a := range added {
			report(b, "op="+a.op+"/side="+s.name, "cpu-ns/op", median(rounds, func(r int) float64 { return a.by(paces[i][r]) }))
		}
	}
	for _, a := range added {
		report(b, "op="+a.op+"/ratio", "umavez/fiber", median(rounds, func(r int) float64 {
			return a.by(paces[0][r]) / a.by(paces[1][r])
		}))
	}
}

// report prints one figure as a benchmark of its own.
func report(b *testing.B, name, unit string, value float64) {
	b.Run(name, func(b *testing.B) {
		b.ReportMetric(0, "ns/op") // which would be the time of printing it
		b.ReportMetric(value, unit)
	})
}

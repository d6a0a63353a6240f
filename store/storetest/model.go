package storetest

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
)

// modelRules compare the store with umavez.Next over random sequences.
var modelRules = []rule{{
	name: "model/random sequences",
	why: "whatever happens to a few keys under a few attempts, the store's answers and records are those of umavez.Next; " +
		"the other rules are the cases that somebody thought of",
	check: modelSequences,
}}

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

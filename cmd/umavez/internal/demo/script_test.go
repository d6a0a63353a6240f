package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/umavez/umavez/examples/pagamentos/gateway"
)

var lastLine = regexp.MustCompile(`^unprotected: (\d+) payments, (\d+) charges; protected: (\d+) payments, (\d+) charges; settled by hand: (\d+)$`)

// TestScript plays ten seeds: protected, each payment is charged once; unprotected,
// more; and some had to be settled by hand.
func TestScript(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Script(t.Context(), program, seed, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			found := lastLine.FindStringSubmatch(lines[len(lines)-1])
			if found == nil {
				t.Fatalf("the last line is %q", lines[len(lines)-1])
			}
			var n [6]int
			for i := 1; i < len(n); i++ {
				n[i], _ = strconv.Atoi(found[i]) // digits
			}
			if payments := 15; n[1] != payments || n[3] != payments || n[4] != payments || n[2] <= payments || n[5] < 3 {
				t.Errorf("%s\n%s", found[0], out.String())
			}
		})
	}
}

// TestSeedDecides: a seed gives the same script again, with every trouble in it,
// and another seed another one.
func TestSeedDecides(t *testing.T) {
	one, again, other := fmt.Sprint(rounds(1)), fmt.Sprint(rounds(1)), fmt.Sprint(rounds(2))
	if one != again || one == other {
		t.Errorf("seed 1: %s\nagain: %s\nseed 2: %s", one, again, other)
	}
	for _, want := range []trouble{plain, clickTwice, dropAnswer, errorAfter, killAfter, killBefore, killLate, killNoCharge} {
		if !strings.Contains(one, want.name) {
			t.Errorf("seed 1 has no %q", want.name)
		}
	}
}

// TestJudge: what is not as promised is found.
func TestJudge(t *testing.T) {
	p := []payment{{key: "a", centavos: 1}, {key: "b", centavos: 2}}
	r := round{payments: p}
	charge := func(id string, centavos int64) gateway.Charge { return gateway.Charge{ID: id, Centavos: centavos} }
	answers := [][]reply{{{ID: "x"}, {ID: "x"}}, {{ID: "y"}}}
	good := []gateway.Charge{charge("x", 1), charge("y", 2)}
	for name, c := range map[string]struct {
		d    played
		want int
	}{
		"as promised":         {played{side: Protected, answers: answers, charges: good}, 0},
		"charged twice":       {played{side: Protected, answers: answers, charges: append(good[:2:2], charge("z", 2))}, 2},
		"not charged":         {played{side: Protected, answers: answers, charges: good[:1]}, 2},
		"another answer":      {played{side: Protected, answers: [][]reply{{{ID: "x"}, {ID: "w"}}, {{ID: "y"}}}, charges: good}, 1},
		"nobody's charge":     {played{side: Protected, answers: answers, charges: append(good[:2:2], charge("z", 3))}, 1},
		"nothing is promised": {played{side: Unprotected, answers: answers, charges: append(good[:2:2], charge("z", 2))}, 0},
	} {
		if r.judge(&c.d); len(c.d.broken) != c.want {
			t.Errorf("%s: %q, want %d findings", name, c.d.broken, c.want)
		}
		var sum total
		if sum.add(r, []played{c.d}); sum.broken != (c.want > 0) {
			t.Errorf("%s: the sum is broken: %v", name, sum.broken)
		}
	}
}

// TestScriptFails: a program that cannot be started, and one that is told to stop,
// leave nothing behind.
func TestScriptFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := Script(t.Context(), Program{Path: "/nowhere"}, 1, &out); err == nil {
		t.Error("a program that is not there was started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Script(ctx, program, 1, &out); err == nil {
		t.Error("it went on after it was told to stop")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

package umavez_test

import (
	"slices"
	"strings"
	"testing"
)

// Inside a bubble of testing/synctest a sleep moves the bubble's clock and takes
// no time; outside it is a guess about how fast a machine is, and fails on a
// slower one. A linter sees the call and not the bubble around it, hence this
// file.

// realSleeps returns the lines on which a test file sleeps, unless it makes a
// bubble, or calls a function of its folder that makes one (bubbles names them),
// or has no tests of its own and so sleeps for those of a folder with bubbles.
func realSleeps(f goFile, bubbles []string) []int {
	inBubble := slices.Contains(f.imports, "testing/synctest") ||
		slices.ContainsFunc(f.calls, func(called string) bool { return slices.Contains(bubbles, called) })
	hasTests := slices.ContainsFunc(f.funcs, func(fn goFunc) bool { return strings.HasPrefix(fn.name, "Test") })
	if !f.isTest() || inBubble || !hasTests && len(bubbles) > 0 {
		return nil
	}
	return f.sleeps
}

func TestNoTestSleepsInRealTime(t *testing.T) {
	files, _ := loadTree(t)
	bubbles := map[string][]string{}
	for _, f := range files {
		for _, fn := range f.funcs {
			if fn.bubble {
				bubbles[f.dir] = append(bubbles[f.dir], fn.name)
			}
		}
	}
	for _, f := range files {
		for _, line := range realSleeps(f, bubbles[f.dir]) {
			t.Errorf("%s:%d: sleeps in real time: wait for the condition itself, or run the test in testing/synctest", f.path(), line)
		}
	}
}

// TestRealSleepsAreFound: a sleep counts in a test without a bubble, and nowhere else.
func TestRealSleepsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, file, source string
		want               []int
	}{
		{"in a goroutine of a test", "a_test.go", "package a\nfunc TestA() {\n go func() { time.Sleep(1) }() }", []int{3}},
		{"as a value", "a_test.go", "package a\nvar pause = time.Sleep\nfunc TestA() {}", []int{2}},
		{"beside a stranger's bubble", "a_test.go", "package a\nfunc TestA() { time.Sleep(1); other() }", []int{2}},
		{"in a bubble", "a_test.go", "package a\nimport \"testing/synctest\"\nfunc TestA() { synctest.Test(t, func() { time.Sleep(1) }) }", nil},
		{"in a bubble made by a helper", "a_test.go", "package a\nfunc TestA() { inBubble(func() { time.Sleep(1) }) }", nil},
		{"for the tests of a folder with bubbles", "a_test.go", "package a\nfunc helper() { time.Sleep(1) }", nil},
		{"outside tests", "a.go", "package a\nfunc f() { time.Sleep(1) }", nil},
		{"another Sleep", "a_test.go", "package a\nfunc TestA() { other.Sleep(1); time.After(1) }", nil},
	} {
		f, err := parseSource(c.file, []byte(c.source))
		if err != nil {
			t.Fatal(err)
		}
		if got := realSleeps(f, []string{"inBubble"}); !slices.Equal(got, c.want) {
			t.Errorf("%s: found sleeps on lines %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHelperWithoutBubbles: where nothing runs in virtual time, a helper's sleep is real.
func TestHelperWithoutBubbles(t *testing.T) {
	f, err := parseSource("a_test.go", []byte("package a\nfunc helper() { time.Sleep(1) }"))
	if err != nil {
		t.Fatal(err)
	}
	if got := realSleeps(f, nil); !slices.Equal(got, []int{2}) {
		t.Errorf("found sleeps on lines %v, want 2", got)
	}
}

// TestBubblesAreSeen: a helper that makes a bubble is known by that.
func TestBubblesAreSeen(t *testing.T) {
	f, err := parseSource("a_test.go", []byte("package a\nfunc inBubble() { synctest.Test(nil, nil) }\nfunc other() { synctest.Wait() }"))
	if err != nil {
		t.Fatal(err)
	}
	if !f.funcs[0].bubble || f.funcs[1].bubble {
		t.Errorf("bubbles: %+v, want inBubble alone", f.funcs)
	}
}

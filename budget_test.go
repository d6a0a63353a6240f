package umavez_test

import (
	"fmt"
	"strings"
	"testing"
)

// How long a file and a function may be. CONTRIBUTING.md asks for much less (95
// of 100 functions within 45 lines, files within 400); these are the lines
// beyond which nobody needs to argue.
const (
	maxFileLines = 600
	maxFuncLines = 80
)

// overBudget says, a line a finding, what in a file is too long and what to do.
func overBudget(f goFile) []string {
	var found []string
	if f.lines > maxFileLines {
		found = append(found, fmt.Sprintf("%s: %d lines, at most %d: a file holds one idea; move the second one to a file named for it",
			f.path(), f.lines, maxFileLines))
	}
	for _, fn := range f.funcs {
		if fn.size > maxFuncLines {
			found = append(found, fmt.Sprintf("%s:%d: %s has %d lines, at most %d: give its parts names of their own",
				f.path(), fn.first, fn.name, fn.size, maxFuncLines))
		}
	}
	return found
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	files, _ := loadTree(t)
	for _, f := range files {
		for _, finding := range overBudget(f) {
			t.Error(finding)
		}
	}
}

// TestBudgetCatches: the line that is just allowed passes, the next one does not.
func TestBudgetCatches(t *testing.T) {
	within := goFile{
		dir: "proxy", name: "a.go", lines: maxFileLines,
		funcs: []goFunc{{name: "fits", first: 10, size: maxFuncLines}},
	}
	if got := overBudget(within); len(got) != 0 {
		t.Errorf("within budget, but reported: %v", got)
	}
	beyond := goFile{
		dir: "proxy", name: "a.go", lines: maxFileLines + 1,
		funcs: []goFunc{{name: "tooLong", first: 10, size: maxFuncLines + 1}},
	}
	got := strings.Join(overBudget(beyond), "\n")
	for _, want := range []string{"proxy/a.go: 601 lines", "proxy/a.go:10: tooLong has 81 lines"} {
		if !strings.Contains(got, want) {
			t.Errorf("over budget: got %q, want it to say %q", got, want)
		}
	}
}

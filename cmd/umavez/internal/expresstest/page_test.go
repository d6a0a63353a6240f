package expresstest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"
)

// commandsTimeout has room for building everything on a busy machine.
const commandsTimeout = 5 * time.Minute

// TestPage_Commands runs the commands of docs/express.md from a copy of the tree.
func TestPage_Commands(t *testing.T) {
	needsNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), commandsTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(root, "script", "express.sh"))
	// What it has started ends by its own hand, not by ours.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 30 * time.Second
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("script/express.sh: %v; it printed:\n%s", err, said)
	}
	for _, want := range []string{
		`(?m)^aprovado: pag_\S+ \(1 tentativa\)\n(?s:.*)^aprovado: pag_\S+ \(1 tentativa, resposta repetida\)$`,
		`(?m)^from a clone to the first protected payment: [\d.]+ s$`,
		`(?m)^charges with one key: 1$`,
		`(?m)^and past umavez: 2$`,
	} {
		if !regexp.MustCompile(want).Match(said) {
			t.Errorf("script/express.sh did not print %s; it printed:\n%s", want, said)
		}
	}
	t.Logf("%s", said)
}

// TestPage_Rows: each row of docs/express.md has a test, and each test a row.
func TestPage_Rows(t *testing.T) {
	needsNode(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "express.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := firsts(regexp.MustCompile(`(?m)^\| (E\d+) \|`), page)
	if len(rows) < 10 {
		t.Fatalf("found only the rows %v: this test looks for the wrong thing", rows)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, firsts(regexp.MustCompile(`(?m)^func Test(E\d+)_`), text)...)
	}
	slices.Sort(rows)
	slices.Sort(tests)
	if tests = slices.Compact(tests); !slices.Equal(rows, tests) {
		t.Errorf("the page has the rows %v, the tests are for %v", rows, tests)
	}
}

func firsts(pattern *regexp.Regexp, text []byte) []string {
	var found []string
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}

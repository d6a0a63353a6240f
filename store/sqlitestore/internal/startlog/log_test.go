//go:build linux

package startlog

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/umavez/umavez"
)

// TestMain is also the child of TestKilledProcess: it starts one attempt, names
// another, and waits to be killed.
func TestMain(m *testing.M) {
	if database := os.Getenv("STARTLOG_CHILD"); database != "" {
		l, err := Open(database)
		if err == nil {
			err = l.Started(umavez.AttemptID{1})
		}
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString("ready\n")
		select {}
	}
	os.Exit(m.Run())
}

func sweepAll(t *testing.T, database string) (dead []*Dead) {
	t.Helper()
	if err := Sweep(database, func(d *Dead) error { dead = append(dead, d); return nil }); err != nil {
		t.Fatal(err)
	}
	return dead
}

func logs(t *testing.T, database string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(database))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestKilledProcess: a living owner, also a stopped one, is left alone; a dead
// one's log tells started from not started, once.
func TestKilledProcess(t *testing.T) {
	database := filepath.Join(t.TempDir(), "odd *[name]?.db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "STARTLOG_CHILD="+database)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("child says %q, %v", line, err)
	}
	if dead := sweepAll(t, database); len(dead) != 0 {
		t.Fatalf("a living owner was taken for dead: %v", dead)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	dead := sweepAll(t, database)
	if len(dead) != 1 {
		t.Fatalf("%d dead owners, want 1", len(dead))
	}
	if dead[0].NeverStarted(umavez.AttemptID{1}) || !dead[0].NeverStarted(umavez.AttemptID{2}) {
		t.Error("the log does not tell started from not started")
	}
	if again := sweepAll(t, database); len(again) != 0 || len(logs(t, database)) != 0 {
		t.Errorf("after the sweep: %v, files %v", again, logs(t, database))
	}
}

// TestSlotsAreUsedAgain: the log is as long as what ran at once, and an attempt
// that ended does not hide one that did not start.
func TestSlotsAreUsedAgain(t *testing.T) {
	database := filepath.Join(t.TempDir(), "x.db")
	l, err := Open(database)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		a := umavez.AttemptID{byte(i), byte(i >> 8), 1}
		if err := l.Started(a); err != nil {
			t.Fatal(err)
		}
		l.Ended(a)
	}
	last := umavez.AttemptID{0xff}
	if err := l.Started(last); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(slotsAt + slotSize); info.Size() != want {
		t.Errorf("the log has %d bytes, want %d", info.Size(), want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Started(last); err == nil {
		t.Error("an attempt starts after Close")
	}
	dead := sweepAll(t, database)
	if len(dead) != 1 || dead[0].NeverStarted(last) || !dead[0].NeverStarted(umavez.AttemptID{7, 0, 1}) {
		t.Errorf("swept %+v", dead)
	}
}

// TestLogThatKnowsNothing: of another boot, or without a whole header.
func TestLogThatKnowsNothing(t *testing.T) {
	for name, content := range map[string]string{
		"empty":        "",
		"half":         magic,
		"another boot": magic + strings.Repeat("0", slotsAt-len(magic)) + strings.Repeat("\x01", slotSize),
	} {
		t.Run(name, func(t *testing.T) {
			database := filepath.Join(t.TempDir(), "x.db")
			path := database + infix + strings.Repeat("ab", 16)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			dead := sweepAll(t, database)
			if len(dead) != 1 || dead[0].NeverStarted(umavez.AttemptID{2}) {
				t.Errorf("concluded from a log that knows nothing: %+v", dead)
			}
		})
	}
}

// TestSweepKeepsWhatFailed: a log whose visit fails stays for the next sweep.
func TestSweepKeepsWhatFailed(t *testing.T) {
	database := filepath.Join(t.TempDir(), "x.db")
	l, err := Open(database)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(database, func(*Dead) error { return os.ErrInvalid }); err == nil {
		t.Error("a failed visit is not told")
	}
	if dead := sweepAll(t, database); len(dead) != 1 {
		t.Errorf("%d logs after a failed visit, want 1", len(dead))
	}
}

// TestCopyKnowsNothing: a copy of the folder may hold the log of before a start
// beside the database of after it. It must not make a started operation one
// that never ran.
func TestCopyKnowsNothing(t *testing.T) {
	original, elsewhere := filepath.Join(t.TempDir(), "x.db"), filepath.Join(t.TempDir(), "x.db")
	for _, database := range []string{original, elsewhere} {
		if err := os.WriteFile(database, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(original)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.Replace(l.path, original, elsewhere, 1), before, 0o600); err != nil {
		t.Fatal(err)
	}
	a := umavez.AttemptID{1}
	if err := l.Started(a); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dead := sweepAll(t, elsewhere)
	if len(dead) != 1 || dead[0].NeverStarted(a) || dead[0].NeverStarted(umavez.AttemptID{2}) {
		t.Errorf("the copy: %+v, want one that knows nothing", dead)
	}
	dead = sweepAll(t, original)
	if len(dead) != 1 || dead[0].NeverStarted(a) || !dead[0].NeverStarted(umavez.AttemptID{2}) {
		t.Errorf("the original: %+v, want one that knows", dead)
	}
}

// TestSweepOfWhatIsBeingOpened: a process that opens its log finds it locked by
// a sweeper, and removes it to take another name. That is no failure of the sweep.
func TestSweepOfWhatIsBeingOpened(t *testing.T) {
	database := filepath.Join(t.TempDir(), "x.db")
	l, err := Open(database)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(database, func(*Dead) error { return os.Remove(l.path) }); err != nil {
		t.Errorf("Sweep: %v", err)
	}
}

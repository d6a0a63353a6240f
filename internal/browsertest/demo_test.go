package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// patience bounds a whole story. Only a hang ever waits for it.
const patience = 4 * time.Minute

// umavez is the command, built once for all tests.
var umavez = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "umavez")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("..", "..", "cmd", "umavez")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w:\n%s", err, out)
	}
	return path, nil
})

// scratch is a folder for all tests of this run.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "browsertest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	status := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// demo is a `umavez demo` that runs.
type demo struct {
	// address is where its page is, as host and port.
	address string
	// dir is where its folder is, and so what its processes' command lines name.
	dir string
}

var demoLine = regexp.MustCompile(`^umavez: demo on http://(127\.0\.0\.1:\d+) `)

// startDemo runs `umavez demo`. At the end of the test Ctrl-C ends it, and it must
// leave nothing behind.
func startDemo(ctx context.Context, t *testing.T, program string) *demo {
	t.Helper()
	d := &demo{dir: t.TempDir()}
	command := exec.CommandContext(ctx, program, "demo", "--listen", "127.0.0.1:0")
	command.Env = append(os.Environ(), "TMPDIR="+d.dir)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, out) // until the program ends
		if err := command.Wait(); err != nil || errs.Len() > 0 {
			t.Errorf("after Ctrl-C, umavez demo ended with %v, saying %q", err, errs.String())
		}
		if left, err := os.ReadDir(d.dir); err != nil || len(left) > 0 {
			t.Errorf("umavez demo left %v, %v", left, err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	found := demoLine.FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("umavez demo said %q, and then %v: not where its page is", line, err)
	}
	d.address = found[1]
	return d
}

// process is the ID of the process that has a role in the demo, or 0 where
// processes cannot be listed.
func (d *demo) process(t *testing.T, role string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Log("this system has no /proc: which process was killed is not looked at")
		return 0
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(d.dir)) || !bytes.Contains(text, []byte(`"role":"`+role+`"`)) {
			continue // others come and go
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	t.Fatalf("no process of the demo is the %s one", role)
	return 0
}

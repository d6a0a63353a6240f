package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mostSleeps is how often the script sleeps while it waits for a program.
const mostSleeps = 600

// TestDemoWithoutItsPort: where a port is taken, the script ends at once, with
// the program's own words and what to do, and leaves nothing behind.
func TestDemoWithoutItsPort(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, "script", "demo.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil && os.Getenv("CI") == "" {
		t.Skip("script/demo.sh is not here: this module was built outside its repository")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ctx, cancel := context.WithTimeout(t.Context(), readmeTimeout)
	defer cancel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"DEMO_LISTEN", "DEMO_UPSTREAM"} { // of both programs
		dir := t.TempDir()
		// The script waits by sleep. This one counts.
		counting := "#!/bin/sh\necho >>" + dir + "/sleeps\nexec " + sleep + ` "$@"` + "\n"
		if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte(counting), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, "bash", script, "--once")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir, "DEMO_LISTEN=127.0.0.1:0", "DEMO_ADMIN=127.0.0.1:0", "DEMO_UPSTREAM=127.0.0.1:0",
			variable+"="+taken.Addr().String())
		said, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: %v, want exit status 1:\n%s", variable, err, said)
		}
		for _, want := range []string{"address already in use", "DEMO_LISTEN, DEMO_ADMIN and DEMO_UPSTREAM name others"} {
			if !strings.Contains(string(said), want) {
				t.Errorf("%s: it does not say %q:\n%s", variable, want, said)
			}
		}
		if sleeps, err := os.ReadFile(filepath.Join(dir, "sleeps")); err == nil && len(sleeps) >= mostSleeps {
			t.Errorf("%s: it waited to the end, for what was gone", variable)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "tmp.*")); err != nil || len(left) > 0 {
			t.Errorf("%s: it left %v, %v", variable, left, err)
		}
	}
}

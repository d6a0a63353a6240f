package umavez_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is what script/setup.sh finds: programs that exist, as what they do.
// Each notes its call in the log.
type machine map[string]string

const note = "echo \"${0##*/} $*\" >>\"$LOG\"\n"

// compiles is a compiler whose C library has its headers, and bare one without.
const compiles, bare = "exit 0", "exit 1"

// everything is what is installed for the tests where there is nothing.
const everything = "curl ca-certificates gcc libc6-dev strace nodejs npm chromium"

func freshMachine() machine {
	return machine{"go": "", "apt-get": note, "id": "echo 0", "env": "shift; \"$@\""}
}

// testMachine has all that the tests need.
func testMachine() machine {
	m := freshMachine().with("gcc", compiles)
	for _, name := range []string{"curl", "strace", "node", "npm", "chromium"} {
		m = m.with(name, "")
	}
	return m
}

func (m machine) with(name, does string) machine { m[name] = does; return m }

func (m machine) without(name string) machine { delete(m, name); return m }

// setUp runs script/setup.sh where there is nothing but m.
func (m machine) setUp(t *testing.T, want string) (calls []string, said string, err error) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here, and the scripts need it")
	}
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	for name, does := range m {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!"+bash+"\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), bash, "script/setup.sh", want)
	cmd.Env = []string{"PATH=" + dir, "LOG=" + log}
	out, err := cmd.CombinedOutput()
	if text, noted := os.ReadFile(log); noted == nil {
		calls = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	return calls, string(out), err
}

func TestSetupInstallsWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine machine
		want    string
		install string // how the last call of apt-get ends; "": none is made
	}{
		{"all there", testMachine(), "test", ""},
		{"a demo needs no compiler", freshMachine().with("curl", ""), "demo", ""},
		{"nothing there", freshMachine(), "test", everything},
		{"nothing there, for a demo", freshMachine(), "demo", "curl ca-certificates"},
		{"a compiler without headers", testMachine().with("gcc", bare), "test", "gcc libc6-dev"},
		{"no Node", testMachine().without("node").without("npm"), "test", "nodejs npm"},
		{"no browser", testMachine().without("chromium"), "test", "chromium"},
	} {
		calls, said, err := c.machine.setUp(t, c.want)
		switch {
		case err != nil:
			t.Errorf("%s: %v: %s", c.name, err, said)
		case c.install == "" && len(calls) != 0:
			t.Errorf("%s: called %q, want nothing", c.name, calls)
		case c.install != "" && (len(calls) != 2 || !strings.HasPrefix(calls[0], "apt-get update") ||
			!strings.HasPrefix(calls[1], "apt-get install -y ") || !strings.HasSuffix(calls[1], " "+c.install)):
			t.Errorf("%s: called %q, want an update and the installation of %s", c.name, calls, c.install)
		}
	}
}

// TestSetupAsksForRightsItLacks: sudo, and only where it is needed.
func TestSetupAsksForRightsItLacks(t *testing.T) {
	calls, said, err := freshMachine().with("id", "echo 1000").with("sudo", note).setUp(t, "demo")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, call := range calls {
		if !strings.HasPrefix(call, "sudo ") || !strings.Contains(call, "apt-get ") {
			t.Errorf("called %q, want everything through sudo", call)
		}
	}
	if len(calls) != 2 {
		t.Errorf("called %q", calls)
	}
}

// TestSetupSaysWhatItCannotInstall: Go, and whatever there is no apt-get for.
func TestSetupSaysWhatItCannotInstall(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine machine
		says    string
	}{
		{"no Go", freshMachine().without("go"), "umavez needs Go"},
		{"no apt-get", freshMachine().without("apt-get"), "by hand: " + everything},
		{"no network", freshMachine().with("apt-get", "echo no route to host >&2; exit 100"), "no route to host"},
	} {
		if _, said, err := c.machine.setUp(t, "test"); err == nil || !strings.Contains(said, c.says) {
			t.Errorf("%s: ended with %v, saying %q; want an error that says %q", c.name, err, said, c.says)
		}
	}
}

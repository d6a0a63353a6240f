package expresstest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
	"github.com/umavez/umavez/cmd/umavez/internal/cli"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// root is the folder of the repository, seen from this package.
const root = "../../../.."

// asProgram in the environment makes this test binary behave as umavez.
const asProgram = "EXPRESSTEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, serve.Hooks{}))
	}
	os.Exit(m.Run())
}

// installed installs what the example requires, once for all tests.
var installed = sync.OnceValue(func() error {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: script/setup.sh test installs it on Debian", err)
		}
	}
	command := exec.Command(filepath.Join(root, "script", "npm.sh"))
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("script/npm.sh: %w:\n%s", err, said.String())
	}
	return nil
})

// needsNode lets a test run only where the example can. Where a change is judged,
// a machine without Node is no excuse.
func needsNode(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, "examples", "express")); errors.Is(err, os.ErrNotExist) && os.Getenv("CI") == "" {
		t.Skip("examples/express is not here: this module was built outside its repository")
	}
	err := installed()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "" && errors.Is(err, exec.ErrNotFound) {
		t.Skipf("the Express example cannot run here: %v", err)
	}
	t.Fatalf("the Express example cannot run here: %v", err)
}

// startNode runs a script of the example in a process of its own, which ends
// with the test.
func startNode(t *testing.T, env []string, args ...string) *child.Process {
	t.Helper()
	args[0] = filepath.Join(root, "examples", "express", args[0])
	return startChild(t, child.Command{Path: "node", Args: args, Env: append(env, "PORT=0")})
}

// startUmavez runs `umavez serve`, in a process of its own, which ends with the
// test.
func startUmavez(t *testing.T, args ...string) *child.Process {
	t.Helper()
	return startChild(t, umavezCommand(args...))
}

func umavezCommand(args ...string) child.Command {
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", ""}, args...)
	return child.Command{Path: os.Args[0], Args: args, Env: []string{asProgram + "=1"}}
}

func startChild(t *testing.T, c child.Command) *child.Process {
	t.Helper()
	p, err := child.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s %v wrote:\n%s", c.Path, c.Args, p.Stderr())
		}
	})
	return p
}

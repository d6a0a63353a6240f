package cli

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/child"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// asProgram in the environment makes this test binary behave as the program
// itself, so that its tests run real processes without building one.
const asProgram = "TEST_AS_PROGRAM=1"

func TestMain(m *testing.M) {
	name, value, _ := strings.Cut(asProgram, "=")
	if os.Getenv(name) == value {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr, holdHooks()))
	}
	os.Exit(m.Run())
}

// holdAt in the environment names an address that answers when an operation that
// has ended may go on to save its answer.
const holdAt = "TEST_HOLD_AT"

// holdHooks hold every operation just before its answer is saved, if a test
// wants that: then its process can be stopped there.
func holdHooks() serve.Hooks {
	address := os.Getenv(holdAt)
	if address == "" {
		return serve.Hooks{}
	}
	return serve.Hooks{Observe: func(o umavez.Observation) {
		if o.Moment != umavez.MomentCompleting {
			return
		}
		if res, err := http.Get(address); err == nil {
			res.Body.Close()
		}
	}}
}

// run runs the program's main function in this process.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Main(args, &out, &errs, serve.Hooks{})
	return status, out.String(), errs.String()
}

// start runs the program in a process of its own, which ends with the test. It
// listens on free ports.
func start(t *testing.T, args ...string) *child.Process {
	t.Helper()
	return startEnv(t, nil, args...)
}

func startEnv(t *testing.T, env []string, args ...string) *child.Process {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	p, err := child.Start(child.Command{Path: os.Args[0], Args: args, Env: append(env, asProgram)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("umavez %s wrote:\n%s", strings.Join(args, " "), p.Stderr())
		}
	})
	return p
}

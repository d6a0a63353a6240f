package killtest

import (
	"os"
	"testing"

	"github.com/umavez/umavez/cmd/umavez/internal/cli"
)

// asProgram in the environment makes this test binary behave as umavez, with
// hooks that write a journal and kill the process.
const asProgram = "KILLTEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		hooks, err := newDeath(os.Getenv)
		if err != nil {
			panic(err)
		}
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, hooks.hooks()))
	}
	os.Exit(m.Run())
}

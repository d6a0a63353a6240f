package demo

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// asPart in the environment makes this test binary behave as one of the demo's
// processes.
const asPart = "TEST_AS_PART"

func TestMain(m *testing.M) {
	if os.Getenv(asPart) != "" {
		if err := RunPart(context.Background(), os.Args[1], os.Stdin, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var program = Program{Path: os.Args[0], Env: []string{asPart + "=1"}}

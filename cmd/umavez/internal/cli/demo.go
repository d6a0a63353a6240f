package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/umavez/umavez/cmd/umavez/internal/demo"
)

// demoCommand is `umavez demo`.
type demoCommand struct {
	Listen string  `default:"${demolisten}" env:"-" placeholder:"HOST:PORT" help:"Where the page is (${default}); port 0 takes a free one."`
	Script bool    `env:"-" help:"Play a story from end to end, print both ledgers and end."`
	Seed   *uint64 `env:"-" placeholder:"N" help:"What the story's order is drawn from; without it, another one each time."`
}

// Run plays the script, or shows the page until it is told to end.
func (c *demoCommand) Run(ctx context.Context, s *surroundings) error {
	if c.Seed != nil && !c.Script {
		return usagef("--seed: goes with --script")
	}
	// A signal ends what was started, and removes what was written.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	program, err := thisProgram()
	if err != nil {
		return err
	}
	if !c.Script {
		return demo.Serve(ctx, program, c.Listen, s.stdout)
	}
	seed := uint64(rand.Uint32())
	if c.Seed != nil {
		seed = *c.Seed
	}
	return demo.Script(ctx, program, seed, s.stdout)
}

// thisProgram is how the demo starts its parts.
func thisProgram() (demo.Program, error) {
	path, err := os.Executable()
	if err != nil {
		return demo.Program{}, fmt.Errorf("umavez: demo: %w", err)
	}
	return demo.Program{Path: path, Args: []string{"demo-part"}}, nil
}

// demoPartCommand is a process of the demo. People do not start it.
type demoPartCommand struct {
	Spec string `arg:"" help:"What the process does."`
}

// Run ends when standard input does.
func (c *demoPartCommand) Run(ctx context.Context, s *surroundings) error {
	return demo.RunPart(ctx, c.Spec, os.Stdin, s.stderr)
}

// Package cli is the command line: its grammar, and the exit status that
// scripts depend on. What a command does is in a package of its own.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/alecthomas/kong"

	"github.com/umavez/umavez/cmd/umavez/internal/demo"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// Exit statuses, a contract with scripts.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// grammar is the command line. Each command is in a file of its own.
type grammar struct {
	Serve     serveCommand     `cmd:"" help:"Protect an API: a reverse proxy in front of it that runs each keyed request once."`
	Keys      keysCommand      `cmd:"" help:"Look into keys, and settle what is unknown."`
	Namespace namespaceCommand `cmd:"" help:"What the processes of a namespace agree on."`
	Demo      demoCommand      `cmd:"" help:"Show on this machine what becomes of payments, with umavez and without."`
	DemoPart  demoPartCommand  `cmd:"" hidden:"" help:"A process of the demo."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

// surroundings are what a command may use of the process.
type surroundings struct {
	stdout, stderr io.Writer
	hooks          serve.Hooks
}

// Main runs the command that args name and returns the exit status. hooks are
// for the tests that run this program in a process of its own.
func Main(args []string, stdout, stderr io.Writer, hooks serve.Hooks) int {
	var g grammar
	exit, exited := exitDone, false
	parser := kong.Must(
		&g,
		kong.Name("umavez"),
		kong.Description("One key, one effect: an operation that must not happen twice becomes safe to repeat."),
		kong.Writers(stdout, stderr),
		kong.DefaultEnvars(variablePrefix),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		// --help asks to exit from inside the parser, which then goes on.
		kong.Exit(func(code int) { exit, exited = code, true }),
		defaults(),
		kong.TypeMapper(reflect.TypeFor[serve.Duration](), kong.MapperFunc(decodeDuration)),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
	)
	command, err := parser.Parse(args)
	if exited {
		return exit
	}
	if err != nil {
		fmt.Fprintf(stderr, "umavez: %v\n", err)
		return exitUsage
	}
	for _, name := range strayVariables(parser.Model.Node, os.Environ()) {
		fmt.Fprintf(stderr, "umavez: the variable %s sets nothing\n", name)
	}
	err = command.Run(&surroundings{stdout: stdout, stderr: stderr, hooks: hooks})
	return status(err, stderr)
}

// status says what went wrong, once, and how the process ends for it.
func status(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(stderr, err)
	if _, usage := errors.AsType[*serve.UsageError](err); usage {
		return exitUsage
	}
	if fault, ok := errors.AsType[*keys.Fault](err); ok && fault.Code == keys.CodeUsage {
		return exitUsage
	}
	return exitFailed
}

// defaults are the values that help texts name.
func defaults() kong.Vars {
	return kong.Vars{
		"namespace":  serve.DefaultNamespace,
		"listen":     serve.DefaultListen,
		"admin":      serve.DefaultAdmin,
		"store":      serve.DefaultStore,
		"demolisten": demo.DefaultListen,
		"lease":      short(serve.DefaultLease),
		"retain":     short(serve.DefaultRetain),
		"tombstone":  short(serve.DefaultTombstone),
		"wait":       short(serve.DefaultWait),
		"maxrun":     short(serve.DefaultMaxRun),
		"drain":      short(serve.DefaultDrain),
		"risks":      serve.RiskNames(),
		"logformat":  serve.DefaultLogFormat,
		"loglevel":   serve.DefaultLogLevel,
	}
}

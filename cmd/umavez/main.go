// Command umavez makes an HTTP API safe to retry: one key, one effect.
package main

import (
	"os"

	"github.com/umavez/umavez/cmd/umavez/internal/cli"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, serve.Hooks{}))
}

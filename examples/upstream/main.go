// Command upstream is a small payment API that knows nothing of idempotency:
// whoever sends POST /pagamentos twice is charged twice. It stands behind
// "umavez serve" in the demo and in tests.
//
// Usage:
//
//	upstream [--listen 127.0.0.1:8082] [--ledger ledger.jsonl] [--delay 0s]
//
// A charge is a line in the ledger, on disk before the answer goes out, so that
// counting lines counts effects, whatever was killed meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It writes one line to stderr once it listens.
func run(ctx context.Context, args []string, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:8082", "address to listen on; port 0 takes a free one")
	ledgerFile := flags.String("ledger", "ledger.jsonl", "file that gets a line for each charge")
	delay := flags.Duration("delay", 0, "time between a charge and its answer")
	if err := flags.Parse(args); err != nil {
		return err
	}

	book, err := openLedger(*ledgerFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "upstream: listening on http://%s\n", listener.Addr())

	server := &http.Server{
		Handler:           newHandler(book, func() { time.Sleep(*delay) }),
		ReadHeaderTimeout: 5 * time.Second,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	// Charges that are under way are answered before the ledger closes. ctx has
	// ended, so the time for that is counted from here.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), *delay+5*time.Second)
	defer cancel()
	return server.Shutdown(last)
}

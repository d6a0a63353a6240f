// Command loja is a small shop that protects its own payments with umavezhttp:
// the same API as examples/upstream, and each key is charged once.
//
// Usage:
//
//	loja [--listen 127.0.0.1:8083]
//
// Its users are ana (password "segredo-da-ana") and bia ("segredo-da-bia"). It
// keeps keys and charges in memory, so both are gone when it ends; a shop would
// use a store that writes to disk.
package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "loja:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It writes one line to stderr once it listens.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("loja", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:8083", "address to listen on; port 0 takes a free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	pay := new(till).pay

	engine, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		return err
	}
	once, err := umavezhttp.New(engine, umavezhttp.Options{Namespace: "loja", Principal: umavezhttp.BasicUser})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /pagamentos", authenticated(once.Opaque(http.HandlerFunc(pay))))
	if err := once.Open(ctx); err != nil { // what the namespace's processes agree on
		return err
	}

	fmt.Fprintf(stderr, "loja: listening on http://%s\n", listener.Addr())
	return serve(ctx, engine, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener)
}

// serve ends things in their order: first what clients wait for, then the
// engine, which waits for answers that are not saved yet.
func serve(ctx context.Context, engine *umavez.Engine, server *http.Server, listener net.Listener) error {
	var housekeeping sync.WaitGroup
	defer housekeeping.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	housekeeping.Go(func() { _ = engine.Run(ctx) }) // ends with ctx, and with its error

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(last), engine.Close(last))
}

// passwords is what a shop would keep in a database, and hashed.
var passwords = map[string]string{"ana": "segredo-da-ana", "bia": "segredo-da-bia"}

// authenticated stands outside the protection: umavezhttp.BasicUser takes the
// user's name from a request whose password was verified.
func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		password, known := passwords[user]
		if !known || subtle.ConstantTimeCompare([]byte(given), []byte(password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="loja"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// till counts what was charged.
type till struct {
	mu      sync.Mutex
	charges int
}

// pay charges. It knows nothing of keys: that it runs once for each is not its
// business.
func (t *till) pay(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	t.charges++
	id := t.charges
	t.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "{\"id\": \"pag_%d\", \"status\": \"aprovado\"}\n", id)
}

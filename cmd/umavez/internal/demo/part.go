package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/examples/pagamentos/api"
	"github.com/umavez/umavez/examples/pagamentos/gateway"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/store/sqlitestore"
)

// Part is one process of the demo, as its parent asks for it.
type Part struct {
	// Role is gateway, unprotected or protected.
	Role string `json:"role"`
	// Dir is the folder of this demo.
	Dir string `json:"dir"`
	// Gateway is the address of the gateway's account. The APIs' own.
	Gateway string `json:"gateway,omitempty"`
	// WithoutKeys: the gateway honours no keys.
	WithoutKeys bool `json:"withoutKeys,omitempty"`
	// Times are those of the protected API.
	Times times `json:"times"`
}

// times are how long what takes its time takes.
type times struct {
	// Lease is the engine's. A machine that stalls for longer loses it, and nothing
	// is charged twice by that.
	Lease time.Duration `json:"lease"`
	// CompleteAfter and AskAfter are those of api.Options.
	CompleteAfter time.Duration `json:"completeAfter"`
	AskAfter      time.Duration `json:"askAfter"`
}

// The roles.
const (
	roleGateway     = "gateway"
	roleUnprotected = "unprotected"
	roleProtected   = "protected"
)

// Files of a demo's folder.
const (
	fileRing  = "keyring"
	fileToken = "token"
	fileStore = "umavez.db"
)

// ledgerFile is the ledger of a side's account at the gateway.
func ledgerFile(dir string, s Side) string { return filepath.Join(dir, string(s)+".jsonl") }

// RunPart is a process of the demo. It ends when stdin does, since its parent
// holds the other end: also when the parent is killed.
func RunPart(ctx context.Context, spec string, stdin io.Reader, stderr io.Writer) error {
	var p Part
	if err := json.Unmarshal([]byte(spec), &p); err != nil {
		return fmt.Errorf("umavez: demo-part: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // an error is an end, too
		end()
	}()
	switch p.Role {
	case roleGateway:
		return p.runGateway(ctx, stderr)
	case roleUnprotected:
		return listenAndServe(ctx, api.Unprotected(api.NewGateway(p.Gateway), logger(stderr)), stderr)
	case roleProtected:
		return p.runProtected(ctx, stderr)
	}
	return fmt.Errorf("umavez: demo-part: no such role: %q", p.Role)
}

// runGateway has an account for each side, with a ledger of its own.
func (p *Part) runGateway(ctx context.Context, stderr io.Writer) (err error) {
	mux := http.NewServeMux()
	for _, s := range Sides {
		book, openErr := gateway.OpenLedger(ledgerFile(p.Dir, s))
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, book.Close()) }()
		account := gateway.New(book, gateway.Options{HonourKeys: !p.WithoutKeys, Life: ctx})
		mux.Handle("/"+string(s)+"/", http.StripPrefix("/"+string(s), account))
	}
	return listenAndServe(ctx, mux, stderr)
}

// runProtected is the API on SQLite, and what operators use, at /keys.
func (p *Part) runProtected(ctx context.Context, stderr io.Writer) (err error) {
	ring, err := keyring.Load(ctx, keyring.Source{File: filepath.Join(p.Dir, fileRing)})
	if err != nil {
		return err
	}
	token, err := keys.ReadToken(filepath.Join(p.Dir, fileToken))
	if err != nil {
		return err
	}
	store, err := sqlitestore.Open(ctx, filepath.Join(p.Dir, fileStore), sqlitestore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }() //nolint:contextcheck // what is open is closed also when ctx has ended
	engine, err := umavez.New(store, umavez.Options{Lease: p.Times.Lease, Sealer: ring})
	if err != nil {
		return err
	}
	pay, err := api.Protected(engine, api.Options{
		Gateway: api.NewGateway(p.Gateway), WithoutKeys: p.WithoutKeys,
		CompleteAfter: p.Times.CompleteAfter, AskAfter: p.Times.AskAfter, Log: logger(stderr),
	})
	if err != nil {
		return err
	}
	desk := &keys.Local{Engine: engine, Store: store, Now: wallClock}
	mux := http.NewServeMux()
	mux.Handle("/", pay)
	mux.Handle("/keys", keys.NewHandler(desk, token, logger(stderr)))
	mux.Handle("/keys/", keys.NewHandler(desk, token, logger(stderr)))

	var housekeeping sync.WaitGroup
	defer housekeeping.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	housekeeping.Go(func() { _ = engine.Run(ctx) }) // ends with ctx, and with its error
	err = listenAndServe(ctx, mux, stderr)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return errors.Join(err, engine.Close(last))
}

// wallClock dates the entries of the audit trail.
func wallClock() time.Time { return time.Now() } //nolint:forbidigo // the process's clock is handed down here

func logger(stderr io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(stderr, nil)) }

// endTimeout is how long a process that is told to end waits for what it began.
const endTimeout = 2 * time.Second

// listenAndServe serves on a free port until ctx ends, and prints the ready line.
func listenAndServe(ctx context.Context, h http.Handler, stderr io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: endTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Fprintf(stderr, "umavez: listening on http://%s\n", l.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_ = server.Shutdown(last) // what is not done by then is cut
	return server.Close()
}

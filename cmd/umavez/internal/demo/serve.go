package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// DefaultListen is where the page is.
const DefaultListen = "127.0.0.1:8080"

// Serve shows the page until ctx ends. It prints where it is once it is there.
func Serve(ctx context.Context, p Program, listen string, out io.Writer) (err error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("umavez: demo: --listen %s: %w", listen, err)
	}
	b := NewBoard(ctx, p)
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.Start(false); err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: NewHandler(b), ReadHeaderTimeout: endTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Fprintf(out, "umavez: demo on http://%s (Ctrl-C ends it)\n", l.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	return server.Close() // pages that watch would keep a shutdown waiting
}

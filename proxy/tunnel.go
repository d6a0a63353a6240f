package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// tunneller forwards CONNECT (rule P9), which net/http's client cannot: what
// follows a 2xx is no body but a connection. Whether to open one, and whereto,
// is the upstream's decision. HTTP/1.1 only, in and out.
type tunneller struct {
	transport *transport
	log       *slog.Logger
}

// ServeHTTP sends the CONNECT on and, if the upstream agrees, becomes a pipe.
func (t *tunneller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || t.transport.target.h2c {
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	up, res, err := t.ask(r)
	if err != nil {
		t.log.Warn("CONNECT got no answer", "target", r.Host, "error", err)
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close() // after up, or it would read on
	defer up.Close()
	removeHopByHop(res.Header)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		for name, values := range res.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body) // what is missing of a refusal changes nothing
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.log.Error("CONNECT: the client's connection cannot be taken over", "error", err)
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer client.Close()
	res.Body = http.NoBody // so that Write writes the header and nothing that is not there
	if err := res.Write(buffered); err != nil || buffered.Flush() != nil {
		return
	}
	pipe(&tunnelEnd{Reader: buffered, Conn: client}, up)
}

// ask sends the CONNECT on a connection of its own.
func (t *tunneller) ask(r *http.Request) (io.ReadWriteCloser, *http.Response, error) {
	limits := t.transport.limits
	ctx, cancel := context.WithTimeout(r.Context(), limits.Dial+limits.TLSHandshake+max(limits.AnswerHeader, 0))
	defer cancel()
	conn, err := t.transport.base.DialContext(ctx, "tcp", t.transport.target.address)
	if err != nil {
		return nil, nil, err
	}
	// Whatever follows ends with the time, or with the client.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if t.transport.target.scheme == "https" {
		conn = tls.Client(conn, t.tlsConfig())
	}
	out := r.Clone(ctx)
	removeHopByHop(out.Header)
	// net/http writes the target of a CONNECT from Host when there is no path.
	if err := out.Write(conn); err != nil {
		conn.Close()
		return nil, nil, err
	}
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, out)
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	end := &tunnelEnd{Reader: reader, Conn: conn}
	return newTunnelBody(end, limits.StreamIdle, func() {}), res, nil
}

// tlsConfig is that of the transport, for HTTP/1.1.
func (t *tunneller) tlsConfig() *tls.Config {
	config := t.transport.base.TLSClientConfig.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	config.NextProtos = nil
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(t.transport.target.address)
	}
	return config
}

// tunnelEnd is a connection of which some bytes were read ahead.
type tunnelEnd struct {
	io.Reader
	net.Conn
}

// Read reads what was read ahead, then the connection.
func (e *tunnelEnd) Read(p []byte) (int, error) { return e.Reader.Read(p) }

// CloseWrite closes one direction.
func (e *tunnelEnd) CloseWrite() error {
	if half, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// pipe copies both ways until both have ended, or one has failed.
func pipe(a, b io.ReadWriteCloser) {
	var wg sync.WaitGroup
	oneWay := func(to, from io.ReadWriteCloser) {
		_, err := io.Copy(to, from)
		half, ok := to.(interface{ CloseWrite() error })
		if err != nil || !ok || half.CloseWrite() != nil {
			a.Close()
			b.Close()
		}
	}
	wg.Go(func() { oneWay(a, b) })
	wg.Go(func() { oneWay(b, a) })
	wg.Wait()
}

package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

// newWire is a connection that counts, and its other end.
func newWire(t *testing.T) (*wireConn, net.Conn) {
	here, there := net.Pipe()
	t.Cleanup(func() {
		here.Close()
		there.Close()
	})
	return &wireConn{Conn: here, now: time.Now}, there
}

// TestP3_LateWriter: over HTTP/2 a request's writer may begin when the request
// was given up already. Once it was said that nothing was written, nothing is.
func TestP3_LateWriter(t *testing.T) {
	wire, other := newWire(t)
	s := newSend(&conn{wire: wire, many: true})
	trace := httptrace.ContextClientTrace(s.watch(context.Background()))
	if s.written(errors.New("the time ran out")) {
		t.Fatal("nothing has begun, and it counts as written")
	}
	trace.WroteHeaderField(":method", []string{"POST"})
	if n, err := wire.Write([]byte("the request")); n > 0 || err == nil {
		t.Errorf("%d bytes were written after it was said that none were", n)
	}
	if rest, err := io.ReadAll(other); err != nil || len(rest) > 0 {
		t.Errorf("the upstream got %q, %v", rest, err)
	}
}

// TestP3_EarlyWriter: a writer that began first makes the request one that may
// have been seen.
func TestP3_EarlyWriter(t *testing.T) {
	wire, _ := newWire(t)
	s := newSend(&conn{wire: wire, many: true})
	trace := httptrace.ContextClientTrace(s.watch(context.Background()))
	trace.WroteHeaderField(":method", []string{"POST"})
	if !s.written(errors.New("reset")) {
		t.Error("its header was being written, and it counts as not written")
	}
	// The next request on the connection does not count with this one.
	if newSend(s.conn).written(errors.New("reset")) {
		t.Error("another request's bytes count")
	}
}

// TestP2_Farewell: over HTTP/1.1, bytes that go out without a request are a TLS
// farewell; a request of which no byte went out was not sent.
func TestP2_Farewell(t *testing.T) {
	for _, c := range []struct {
		entered bool
		bytes   int64
		want    bool
	}{{false, 24, false}, {true, 0, false}, {true, 1, true}, {false, 0, false}} {
		wire, _ := newWire(t)
		wire.written.Store(100)
		s := newSend(&conn{wire: wire})
		if c.entered {
			httptrace.ContextClientTrace(s.watch(context.Background())).WroteRequest(httptrace.WroteRequestInfo{})
		}
		wire.written.Add(c.bytes)
		if got := s.written(errors.New("broken pipe")); got != c.want {
			t.Errorf("entered %v, %d bytes: written is %v", c.entered, c.bytes, got)
		}
	}
}

// TestP1_OverTLS: the same over TLS, in both versions of HTTP: what is answered,
// what is dropped, and what is not reached.
func TestP1_OverTLS(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		ca := newAuthority(t, "upstreams")
		cert := ca.sign(t, pkix.Name{}, newKey(t))
		roots := x509.NewCertPool()
		roots.AddCert(ca.cert)
		book := newLedger()
		up := newUpstream(t, "https", func(w http.ResponseWriter, r *http.Request) {
			drain(r.Body)
			book.act(r)
			if (r.ProtoMajor == 2) != h2 {
				t.Errorf("the upstream is spoken to in %s", r.Proto)
			}
			if r.Header.Get("Drop") != "" {
				cutConnection(r)
			}
			paid(w, r)
		}, func(s *http.Server) {
			s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
			s.Protocols.SetHTTP1(!h2)
			s.Protocols.SetHTTP2(h2)
		})
		trusting := func(o *Options) { o.UpstreamTLS = &tls.Config{RootCAs: roots, ServerName: "sidecar"} }
		for _, body := range []string{"", "corpo"} {
			s := newSidecar(t, up.url, trusting)
			s.keepWarm()
			before := up.accepted()
			for _, key := range []string{"k1", "k1", "k2"} {
				if got := s.pay(key+body, body); got.status != http.StatusCreated {
					t.Errorf("HTTP/2 %v: got %v", h2, got)
				}
			}
			if got := s.pay("k3"+body, body, "Drop", "yes"); got.code() != wire.CodeOutcomeUnknown {
				t.Errorf("HTTP/2 %v: dropped, got %v", h2, got)
			}
			if n := up.accepted() - before; n != 1 {
				t.Errorf("HTTP/2 %v: %d connections", h2, n)
			}
			for _, key := range []string{"k1", "k2", "k3"} {
				book.want(t, key+body, 1)
			}
		}
		s := newSidecar(t, up.url) // trusts the system's authorities only
		if got := s.pay("k4", "x"); got.code() != wire.CodeUpstreamUnreachable || bytes.Contains([]byte(got.body), []byte("x509")) {
			t.Errorf("HTTP/2 %v: an upstream that nobody vouches for got %v", h2, got)
		}
		book.want(t, "k4", 0)
	}
}

package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// TestP10_SlowClients: a client that stops in its header or its body is sent
// away, and leaves no key behind.
func TestP10_SlowClients(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		drain(r.Body)
		book.act(r)
		paid(w, r)
	})
	s := newSidecar(t, up.url, func(o *Options) {
		o.Limits.ReadHeader, o.Limits.ReadBody, o.Limits.ClientIdle = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	})
	for _, c := range []struct{ what, sent, want string }{
		{"nothing", "", ""},
		{"half a header", "POST /pay HTTP/1.1\r\nHost: a\r\nIdempo", ""},
		{"half a body", "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k1\r\nContent-Length: 9\r\n\r\ncor", "HTTP/1.1 400 "},
		{"half a body that passes", "POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\ncor", "HTTP/1.1 502 "},
		{"nothing more", "GET /other HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 201 "},
	} {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(conn, c.sent)
		got, err := io.ReadAll(conn)
		if isTimeout(err) || !strings.HasPrefix(string(got), c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.what, got, err, c.want)
		}
	}
	if rec := s.record("k1"); rec.State != umavez.Vacant {
		t.Errorf("half a body left a key that is %v", rec.State)
	}
}

// TestP10_SlowUpload: the limit is on pauses: what is large and moves on is not
// cut off, and no deadline of the body ends the wait for the answer.
func TestP10_SlowUpload(t *testing.T) {
	for _, path := range []string{"/pay", "/other"} {
		var up seen
		u := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
			up.echo(discardWriter{}, r)
			select {
			case <-time.After(300 * time.Millisecond):
			case <-r.Context().Done():
				t.Errorf("%s: the request was given up", path)
			}
			paid(w, r)
		})
		s := newSidecar(t, u.url, func(o *Options) { o.Limits.ReadBody = 150 * time.Millisecond })
		body, talk := io.Pipe()
		go func() {
			for range 6 {
				<-time.After(50 * time.Millisecond)
				io.WriteString(talk, "part ")
			}
			talk.Close()
		}()
		r := s.request("POST", path, "", keyName, "k1")
		r.Body, r.ContentLength = body, 30
		if got, err := s.do(r); err != nil || got.status != http.StatusCreated {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
		if _, got := up.request(); got != strings.Repeat("part ", 6) {
			t.Errorf("%s: the upstream got %q", path, got)
		}
	}
}

// discardWriter takes an answer that nobody wants.
type discardWriter struct{}

func (discardWriter) Header() http.Header         { return http.Header{} }
func (discardWriter) WriteHeader(int)             {}
func (discardWriter) Write(p []byte) (int, error) { return len(p), nil }

// TestP10_Sizes: headers and bodies over the limit.
func TestP10_Sizes(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url, func(o *Options) { o.Limits.MaxHeader = 1000; o.HTTP.MaxRequestBody = 100 })
	if got := s.pay("k1", "x", "X-Long", strings.Repeat("x", 8000)); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header got %v", got)
	}
	if got := s.pay("k1", strings.Repeat("x", 101)); got.code() != wire.CodeRequestTooLarge {
		t.Errorf("a long body got %v", got)
	}
	if r, _ := up.request(); r != nil {
		t.Errorf("the upstream got %v", r.URL)
	}
	if got := s.send("POST", "/other", strings.Repeat("x", 5000)); got.status != http.StatusCreated {
		t.Errorf("a long body that passes got %v", got)
	}
	if got := s.pay("k1", strings.Repeat("x", 100)); got.status != http.StatusCreated {
		t.Errorf("a body just within the limit got %v", got)
	}
}

// TestP10_UpstreamThatDoesNotRead: an upstream that takes the connection and not
// the request does not hold it for ever.
func TestP10_UpstreamThatDoesNotRead(t *testing.T) {
	stop := make(chan struct{})
	address := rawUpstream(t, func(net.Conn) { <-stop })
	defer close(stop)
	s := newSidecar(t, "http://"+address, func(o *Options) {
		o.Limits.AnswerBody, o.HTTP.MaxRequestBody = 100*time.Millisecond, 32<<20
	})
	got := s.pay("k1", strings.Repeat("x", 16<<20)) // more than the sockets hold
	if got.status != http.StatusGatewayTimeout || got.code() != wire.CodeOutcomeUnknown {
		t.Errorf("got %v, want 504 outcome-unknown", got)
	}
}

// TestP10_Defaults: every limit is on, and each can be switched off.
func TestP10_Defaults(t *testing.T) {
	l := Limits{}.withDefaults()
	for name, d := range map[string]time.Duration{
		"ReadHeader": l.ReadHeader, "ReadBody": l.ReadBody, "ClientIdle": l.ClientIdle, "Dial": l.Dial, "TLSHandshake": l.TLSHandshake,
		"AnswerHeader": l.AnswerHeader, "AnswerBody": l.AnswerBody, "StreamIdle": l.StreamIdle,
		"MaxHeader": time.Duration(l.MaxHeader), "MaxAnswerHeader": time.Duration(l.MaxAnswerHeader), "MaxIdle": time.Duration(l.MaxIdle),
	} {
		if d <= 0 {
			t.Errorf("%s is off by default: %v", name, d)
		}
	}
	server := Limits{}.Server(nil)
	if server.ReadHeaderTimeout <= 0 || server.IdleTimeout <= 0 || server.MaxHeaderBytes <= 0 {
		t.Errorf("the server's limits are %+v", server)
	}
	off := Limits{
		ReadHeader: -1, ReadBody: -1, ClientIdle: -1, Dial: -1, TLSHandshake: -1,
		AnswerHeader: -1, AnswerBody: -1, StreamIdle: -1, MaxHeader: -1, MaxAnswerHeader: -1, MaxIdle: -1,
	}
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url, func(o *Options) { o.Limits = off })
	for i := range 3 {
		if got := s.pay(fmt.Sprint("k", i), "x"); got.status != http.StatusCreated {
			t.Errorf("without limits got %v", got)
		}
	}
}

// TestP10_UpstreamAddress: what is no address is refused at the start.
func TestP10_UpstreamAddress(t *testing.T) {
	for address, want := range map[string]target{
		"http://localhost:3000":     {scheme: "http", host: "localhost:3000", address: "localhost:3000"},
		"http://localhost/":         {scheme: "http", host: "localhost", address: "localhost:80"},
		"https://api.example":       {scheme: "https", host: "api.example", address: "api.example:443"},
		"h2c://[::1]:3000":          {scheme: "http", host: "[::1]:3000", address: "[::1]:3000", h2c: true},
		"localhost:3000":            {},
		"ftp://localhost":           {},
		"http://localhost/api":      {},
		"http://localhost?x=1":      {},
		"http://ana:senha@host":     {},
		"http://":                   {},
		"":                          {},
		"http://localhost:3000#top": {},
	} {
		got, err := parseTarget(address)
		if got != want || (err == nil) != (want != target{}) || err != nil && !errors.Is(err, errUpstreamURL) {
			t.Errorf("%q: %+v, %v", address, got, err)
		}
	}
}

// TestP10_KeepsConnections: an idle client connection is kept for the next request.
func TestP10_KeepsConnections(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for _, path := range []string{"/pay", "/other", "/pay"} {
		io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 5\r\n\r\ncorpo")
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != http.StatusCreated {
			t.Fatalf("%s: got %v, %v", path, res, err)
		}
		drain(res.Body)
	}
}

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
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// TestP10_SlowClients: a client that stops in its header or its body is sent
// away when its time is over, and leaves no key behind.
func TestP10_SlowClients(t *testing.T) {
	for _, c := range []struct {
		what, sent, want string
		after            time.Duration
	}{
		{"nothing", "", "", 10 * time.Second},
		{"half a header", "POST /pay HTTP/1.1\r\nHost: a\r\nIdempo", "", 10 * time.Second},
		{"half a body", "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k1\r\nContent-Length: 9\r\n\r\ncor", "HTTP/1.1 400 ", 30 * time.Second},
		{"half a body that passes", "POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\ncor", "HTTP/1.1 502 ", 30 * time.Second},
		{"nothing more", "GET /other HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 201 ", 75 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newPipeSidecar(t, func(w http.ResponseWriter, r *http.Request) {
				drain(r.Body)
				paid(w, r)
			})
			conn := s.connect()
			defer conn.Close()
			start := time.Now()
			io.WriteString(conn, c.sent)
			got, err := io.ReadAll(conn)
			if took := time.Since(start); took < c.after || took > c.after+time.Second {
				t.Errorf("%s: it took %v, want %v", c.what, took, c.after)
			}
			if err != nil || !strings.HasPrefix(string(got), c.want) {
				t.Errorf("%s: got %q, %v, want %q", c.what, got, err, c.want)
			}
			if rec := s.record("k1"); rec.State != umavez.Vacant {
				t.Errorf("%s: left a key that is %v", c.what, rec.State)
			}
		})
	}
}

// TestP10_SlowUpload: the limit is on pauses: what is large and moves on is not
// cut off, and no deadline of the body ends the wait for the answer.
func TestP10_SlowUpload(t *testing.T) {
	for _, path := range []string{"/pay", "/other"} {
		synctest.Test(t, func(t *testing.T) {
			var up seen
			s := newPipeSidecar(t, func(w http.ResponseWriter, r *http.Request) {
				up.echo(discardWriter{}, r)
				select {
				case <-time.After(100 * time.Second):
				case <-r.Context().Done():
					t.Errorf("%s: the request was given up", path)
				}
				paid(w, r)
			})
			body, talk := io.Pipe()
			go func() {
				for range 6 {
					time.Sleep(29 * time.Second)
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
		})
	}
}

// TestP10_SlowUpstreams: each wait for the upstream has an end, and it is where
// the limits say.
func TestP10_SlowUpstreams(t *testing.T) {
	for _, c := range []struct {
		what  string
		h     func(http.ResponseWriter, *http.Request)
		after time.Duration
	}{
		{"no reading", func(http.ResponseWriter, *http.Request) {}, time.Minute},
		{"no header", func(http.ResponseWriter, *http.Request) {}, 2 * time.Minute},
		{"no body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			http.NewResponseController(w).Flush()
		}, time.Minute},
		{"a body that stops", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			for range 3 {
				io.WriteString(w, "x")
				http.NewResponseController(w).Flush()
				time.Sleep(50 * time.Second)
			}
		}, 2*50*time.Second + time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			s := newPipeSidecar(t, func(w http.ResponseWriter, r *http.Request) {
				if c.what != "no reading" { // a pipe holds nothing that is not read
					drain(r.Body)
				}
				c.h(w, r)
				<-stop
			})
			defer close(stop)
			start := time.Now()
			got := s.pay("k1", "x")
			if got.status != http.StatusGatewayTimeout || got.code() != wire.CodeOutcomeUnknown {
				t.Errorf("%s: got %v, want 504 outcome-unknown", c.what, got)
			}
			if took := time.Since(start); took < c.after || took > c.after+time.Second {
				t.Errorf("%s: it took %v, want %v", c.what, took, c.after)
			}
			if rec := s.record("k1"); rec.State != umavez.Lost || rec.Reason != umavez.ReasonTimeout {
				t.Errorf("%s: the record is %v, %q", c.what, rec.State, rec.Reason)
			}
		})
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

package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// TestP2_NotReached: nobody listens, so nothing was sent: the key is free, and
// the same request runs as soon as somebody does.
func TestP2_NotReached(t *testing.T) {
	address := closedPort(t)
	s := newSidecar(t, "http://"+address)
	got := s.pay("k1", `{"valor":1}`)
	if got.status != http.StatusBadGateway || got.code() != wire.CodeUpstreamUnreachable {
		t.Errorf("got %v, want 502 upstream-unreachable", got)
	}
	if got.header.Get(wire.IdempotencyStatus) != "" {
		t.Errorf("an outcome that is known is called %q", got.header.Get(wire.IdempotencyStatus))
	}
	if rec := s.record("k1"); rec.State != umavez.Vacant {
		t.Fatalf("the key is %v, want vacant", rec.State)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the port was taken meanwhile: %v", err)
	}
	served := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(paid)}
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with the test
	}()
	defer func() {
		server.Close()
		<-served
	}()
	if again := s.pay("k1", `{"valor":1}`); again.status != http.StatusCreated || again.replayed() {
		t.Errorf("the retry got %v, want the first 201", again)
	}
}

// TestP2_NoHandshake: the upstream's TLS fails, so no request was sent.
func TestP2_NoHandshake(t *testing.T) {
	address := rawUpstream(t, func(c net.Conn) {
		io.WriteString(c, "this is no handshake\r\n")
		drain(c)
	})
	s := newSidecar(t, "https://"+address)
	if got := s.pay("k1", "x"); got.status != http.StatusBadGateway || got.code() != wire.CodeUpstreamUnreachable {
		t.Errorf("got %v, want 502 upstream-unreachable", got)
	}
	if rec := s.record("k1"); rec.State != umavez.Vacant {
		t.Errorf("the key is %v, want vacant", rec.State)
	}
}

// h2Frame is a frame of HTTP/2 with a payload of less than 256 bytes.
func h2Frame(kind, flags byte, stream uint32, payload string) string {
	return string([]byte{
		0, 0, byte(len(payload)), kind, flags,
		byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream),
	}) + payload
}

// h2Reset plays an upstream of HTTP/2 that answers each stream with a reset.
func h2Reset(code byte, streams *atomic.Int64) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		_, _ = io.ReadFull(r, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
		io.WriteString(c, h2Frame(4, 0, 0, ""))
		head := make([]byte, 9)
		for {
			if _, err := io.ReadFull(r, head); err != nil {
				return
			}
			size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
			_, _ = r.Discard(size)
			if kind, stream := head[3], head[8]; kind == 1 {
				streams.Add(1)
				io.WriteString(c, h2Frame(3, 0, uint32(stream), string([]byte{0, 0, 0, code})))
			}
		}
	}
}

// TestP2_RefusedStream: an upstream of HTTP/2 that refuses a stream says that
// it has done nothing with it (RFC 9113, 8.7). Any other reset says nothing.
func TestP2_RefusedStream(t *testing.T) {
	for _, c := range []struct {
		name  string
		code  byte
		state umavez.State
	}{
		{"REFUSED_STREAM", 7, umavez.Vacant},
		{"INTERNAL_ERROR", 2, umavez.Lost},
		{"CANCEL", 8, umavez.Lost},
	} {
		var streams atomic.Int64
		s := newSidecar(t, "h2c://"+rawUpstream(t, h2Reset(c.code, &streams)))
		for i := range 6 { // also on the connection that was used before
			key := fmt.Sprint("k", i)
			if got := s.pay(key, ""); got.status != http.StatusBadGateway {
				t.Errorf("%s: got %v, want 502", c.name, got)
			}
			if rec := s.record(key); rec.State != c.state {
				t.Errorf("%s: the key is %v, want %v", c.name, rec.State, c.state)
			}
		}
		if n := streams.Load(); n != 6 {
			t.Errorf("%s: the upstream saw %d requests of 6", c.name, n)
		}
	}
}

// playing reads requests, counts each in the book, and answers with play.
func playing(book *ledger, play func(c net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			drain(r.Body)
			book.act(r)
			play(c)
		}
	}
}

// says plays an upstream that writes an answer, or a part of one, and is gone.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, text)
		c.Close()
	}
}

// TestP3_Unknown: bytes went to the upstream, and no whole answer came back.
func TestP3_Unknown(t *testing.T) {
	reset := func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	silent := func(c net.Conn) { drain(c) }
	for _, c := range []struct {
		name   string
		play   func(net.Conn)
		limits Limits
		status int
		reason umavez.Reason
	}{
		{"reset before a byte", reset, Limits{}, 502, umavez.ReasonReset},
		{"closed before a byte", says(""), Limits{}, 502, umavez.ReasonReset},
		{"closed in the header", says("HTTP/1.1 201 Created\r\nContent-Le"), Limits{}, 502, umavez.ReasonBroken},
		{"no HTTP", says("SSH-2.0-OpenSSH_9.2\r\n"), Limits{}, 502, umavez.ReasonBroken},
		{"truncated", says("HTTP/1.1 201 Created\r\nContent-Length: 40\r\n\r\n{\"id\":"), Limits{}, 502, umavez.ReasonBroken},
		{"truncated chunks", says("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{\"id\":\r\n"), Limits{}, 502, umavez.ReasonBroken},
		{"switched unasked", says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), Limits{}, 502, umavez.ReasonBroken},
		{"no header in time", silent, Limits{AnswerHeader: 50 * time.Millisecond}, 504, umavez.ReasonTimeout},
		{"stalled in the body", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 40\r\n\r\n{\"id\":")
			silent(c)
		}, Limits{AnswerBody: 50 * time.Millisecond}, 504, umavez.ReasonTimeout},
		{"a header without end", says("HTTP/1.1 201 Created\r\nX: " + strings.Repeat("x", 2000)), Limits{MaxAnswerHeader: 1000}, 502, umavez.ReasonBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			book := newLedger()
			address := rawUpstream(t, playing(book, c.play))
			s := newSidecar(t, "http://"+address, func(o *Options) { o.Limits = c.limits })
			got := s.pay("k1", `{"valor":1}`)
			if got.status != c.status || got.code() != wire.CodeOutcomeUnknown {
				t.Errorf("got %v, want %d outcome-unknown", got, c.status)
			}
			if got.header.Get("Stripe-Should-Retry") != "false" || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("the refusal's header is %v", got.header)
			}
			if rec := s.record("k1"); rec.State != umavez.Lost || rec.Reason != c.reason {
				t.Errorf("the record is %v, reason %q, want %q", rec.State, rec.Reason, c.reason)
			}
			again := s.pay("k1", `{"valor":1}`)
			if again.status != http.StatusConflict || again.code() != wire.CodeOutcomeUnknown || again.replayed() {
				t.Errorf("the retry got %v, want 409 outcome-unknown", again)
			}
			book.want(t, "k1", 1)
			if strings.Contains(got.body, "127.0.0.1") || strings.Contains(got.body, "EOF") {
				t.Errorf("the inside of the network is shown: %s", got.body)
			}
		})
	}
}

// TestP3_UnknownOverH2: the same over HTTP/2, where a request shares its
// connection with others.
func TestP3_UnknownOverH2(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "h2c", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		switch r.Header.Get("Fail") {
		case "in the body":
			w.Header().Set("Content-Length", "40")
			io.WriteString(w, `{"id":`)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "before a byte":
			panic(http.ErrAbortHandler)
		case "in time":
			<-r.Context().Done()
			return
		}
		paid(w, r)
	})
	patient := newSidecar(t, up.url)
	impatient := newSidecar(t, up.url, func(o *Options) { o.Limits.AnswerHeader = 50 * time.Millisecond })
	for i, c := range []struct {
		fail   string
		status int
		reason umavez.Reason
	}{
		{"in the body", 502, umavez.ReasonBroken},
		{"before a byte", 502, umavez.ReasonReset},
		{"in time", 504, umavez.ReasonTimeout},
	} {
		key, s := fmt.Sprintf("k%d", i), patient
		if c.fail == "in time" {
			s = impatient
		}
		if got := s.pay(key, "x", "Fail", c.fail); got.status != c.status || got.code() != wire.CodeOutcomeUnknown {
			t.Errorf("%s: got %v, want %d outcome-unknown", c.fail, got, c.status)
		}
		if rec := s.record(key); rec.State != umavez.Lost || rec.Reason != c.reason {
			t.Errorf("%s: the record is %v, reason %q", c.fail, rec.State, rec.Reason)
		}
		book.want(t, key, 1)
	}
}

// TestP3_NeighboursOverH2: a stream that fails is no failure of the others on its
// connection; the connection's end is one of all of them.
func TestP3_NeighboursOverH2(t *testing.T) {
	book := newLedger()
	var inside sync.WaitGroup
	inside.Add(2)
	release := make(chan struct{})
	up := newUpstream(t, "h2c", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		switch r.Header.Get("Fail") {
		case "stream":
			panic(http.ErrAbortHandler)
		case "connection":
			cutConnection(r)
		}
		inside.Done()
		<-release
		paid(w, r)
	})
	s := newSidecar(t, up.url)
	var wg sync.WaitGroup
	for _, key := range []string{"k1", "k2"} {
		wg.Go(func() {
			if got := s.pay(key, "x"); got.code() != wire.CodeOutcomeUnknown {
				t.Errorf("%s: got %v, want outcome-unknown", key, got)
			}
		})
	}
	inside.Wait()
	if got := s.pay("k3", "x", "Fail", "stream"); got.code() != wire.CodeOutcomeUnknown {
		t.Errorf("got %v, want outcome-unknown", got)
	}
	for _, key := range []string{"k1", "k2"} {
		if rec := s.record(key); rec.State != umavez.Running {
			t.Errorf("%s is %v after its neighbour failed, want running", key, rec.State)
		}
	}
	s.pay("k4", "x", "Fail", "connection")
	wg.Wait()
	close(release)
	for _, key := range []string{"k1", "k2", "k3", "k4"} {
		book.want(t, key, 1)
		if rec := s.record(key); rec.State != umavez.Lost {
			t.Errorf("%s is %v after its connection failed, want lost", key, rec.State)
		}
	}
	if up.accepted() != 1 {
		t.Errorf("%d connections: they were no neighbours", up.accepted())
	}
}

// TestP3_LongAnswerBreaksOff: what is too long to be taken back is under way when
// it breaks. Its client learns by the end of its connection.
func TestP3_LongAnswerBreaksOff(t *testing.T) {
	const head = "HTTP/1.1 201 Created\r\nLocation: /pagamentos/42\r\n"
	for what, text := range map[string]string{
		"with a length": head + "Content-Length: 3000000\r\n\r\n" + strings.Repeat("x", 2_000_000),
		"in chunks":     head + "Transfer-Encoding: chunked\r\n\r\n1e8480\r\n" + strings.Repeat("x", 2_000_000) + "\r\n",
		"a stream":      head + "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n",
	} {
		book := newLedger()
		s := newSidecar(t, "http://"+rawUpstream(t, playing(book, says(text))))
		got, err := s.do(s.request("POST", "/pay", "x", keyName, "k1"))
		if err == nil && !errors.Is(got.broken, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d bytes end with %v", what, len(got.body), got.broken)
		}
		state, code := umavez.Lost, wire.CodeOutcomeUnknown
		if what == "a stream" { // it was done at the switch
			state, code = umavez.Done, wire.CodeReplayUnavailable
		}
		if rec := s.record("k1"); rec.State != state {
			t.Errorf("%s: the record is %v, want %v", what, rec.State, state)
		}
		again := s.pay("k1", "x")
		if again.code() != code || !strings.Contains(again.body, "/pagamentos/42") {
			t.Errorf("%s: the retry got %v, want %s with the original's Location", what, again, code)
		}
		book.want(t, "k1", 1)
	}
}

// TestA5_RealAnswer: a 502 that the upstream itself sent is an answer, kept as
// the attempt's last word.
func TestA5_RealAnswer(t *testing.T) {
	for _, status := range []int{500, 502, 503, 504} {
		book := newLedger()
		up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
			book.act(r)
			w.WriteHeader(status)
			io.WriteString(w, "the gateway behind did not answer")
		})
		s := newSidecar(t, up.url)
		first, again := s.pay("k1", "x"), s.pay("k1", "x")
		if first.status != status || first.code() != "" || first.replayed() {
			t.Errorf("%d: the first got %v", status, first)
		}
		if again.status != status || again.body != first.body || !again.replayed() || again.header.Get(wire.IdempotencyStatus) != "unknown" {
			t.Errorf("%d: the retry got %v", status, again)
		}
		book.want(t, "k1", 1)
	}
}

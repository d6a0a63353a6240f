package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

// TestK1_PassesUntouched: routes that are not enrolled, and methods that change
// nothing, pass with whatever keys they carry.
func TestK1_PassesUntouched(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url)
	for _, c := range []struct{ method, path string }{
		{"POST", "/other"}, {"PUT", "/pay"}, {"GET", "/pay"}, {"DELETE", "/pay"}, {"OPTIONS", "/pay"}, {"PURGE", "/pay"}, {"POST", "/pay/42"},
	} {
		for range 2 {
			got := s.send(c.method, c.path, "", keyName, `""`, keyName, "two, keys", "Accept-Encoding", "br", "Prefer", "wait=1")
			if got.status != http.StatusCreated || got.replayed() || got.header.Get(wire.IdempotencyKey) != "" {
				t.Errorf("%v: got %v", c, got)
			}
		}
		if r, _ := up.request(); fmt.Sprint(r.Header[wire.IdempotencyKey]) != `["" two, keys]` || r.Method != c.method {
			t.Errorf("%v: the upstream got %s %v", c, r.Method, r.Header)
		}
	}
}

// TestK2_WithoutKey: an enrolled request without a key runs unprotected, unless
// the route needs one.
func TestK2_WithoutKey(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	})
	s := newSidecar(t, up.url, func(o *Options) {
		o.Routes = append(o.Routes, Route{Pattern: "POST /strict"})
		o.Routes[1].HTTP.Required = true
	})
	for range 2 {
		if got := s.send("POST", "/pay", "x"); got.status != http.StatusCreated || got.replayed() {
			t.Errorf("got %v", got)
		}
		if got := s.send("POST", "/strict", "x"); got.code() != wire.CodeMissingKey {
			t.Errorf("got %v, want missing-key", got)
		}
	}
	book.want(t, "", 2)
}

// TestP9_WebSocket: an upgrade passes, and both sides talk.
func TestP9_WebSocket(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			t.Errorf("the upstream got %v", r.Header)
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n")
		rw.Flush()
		for line := ""; line != "bye\n"; {
			if line, err = rw.ReadString('\n'); err != nil {
				t.Error(err)
				return
			}
			rw.WriteString("echo " + line)
			rw.Flush()
		}
	})
	s := newSidecar(t, up.url)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nIdempotency-Key: k\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "websocket" {
		t.Fatalf("got %v, %v", res, err)
	}
	for _, c := range []struct{ say, hear string }{{"", "hello\n"}, {"one\n", "echo one\n"}, {"bye\n", "echo bye\n"}} {
		io.WriteString(conn, c.say)
		if line, err := in.ReadString('\n'); line != c.hear || err != nil {
			t.Errorf("after %q heard %q, %v", c.say, line, err)
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the upstream hung up, and the client sees %v", err)
	}
}

// TestP9_SilentTunnelEnds: an upgraded connection over which nothing passes is
// closed after StreamIdle.
func TestP9_SilentTunnelEnds(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		drain(conn)
	})
	s := newSidecar(t, up.url, func(o *Options) { o.Limits.StreamIdle = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("the client sees %v, want the end", err)
	}
}

// TestP9_NoSmuggling: an upgrade to a protocol that carries HTTP would lead past
// the enrolled routes. It is not passed on, and the request is answered as it is.
func TestP9_NoSmuggling(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url)
	for _, protocol := range []string{"h2c", "H2C", "websocket, h2c", "TLS/1.2, HTTP/1.1"} {
		got := s.send("GET", "/other", "", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", protocol, "Http2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA")
		r, _ := up.request()
		if got.status != http.StatusCreated || r.Header["Upgrade"] != nil || r.Header["Connection"] != nil || r.Header["Http2-Settings"] != nil {
			t.Errorf("%s: got %d, the upstream got %v", protocol, got.status, r.Header)
		}
	}
}

// TestP9_Connect: the upstream decides about a CONNECT.
func TestP9_Connect(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "db.example:5432" {
			t.Errorf("the upstream got %s %s", r.Method, r.Host)
		}
		if r.Header.Get("Proxy-Pass") == "" {
			w.Header().Set("Why", "no pass")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "no")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 200 Connection established\r\n\r\nhello\n")
		rw.Flush()
		line, _ := rw.ReadString('\n')
		rw.WriteString("echo " + line)
		rw.Flush()
	})
	s := newSidecar(t, up.url)
	connect := func(fields string) (*http.Response, *bufio.Reader, net.Conn) {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, "CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\nIdempotency-Key: k\r\n"+fields+"\r\n")
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Fatal(err)
		}
		return res, in, conn
	}
	if res, _, _ := connect(""); res.StatusCode != http.StatusForbidden || res.Header.Get("Why") != "no pass" {
		t.Errorf("refused with %v", res)
	}
	res, in, conn := connect("Proxy-Pass: yes\r\n")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("got %v", res)
	}
	hello, _ := in.ReadString('\n')
	io.WriteString(conn, "one\n")
	echo, _ := in.ReadString('\n')
	if hello != "hello\n" || echo != "echo one\n" {
		t.Errorf("heard %q and %q", hello, echo)
	}
}

// TestP9_GRPC: HTTP/2 without TLS on both sides, both directions at a time, and
// trailers at the end.
func TestP9_GRPC(t *testing.T) {
	up := newUpstream(t, "h2c", func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			t.Errorf("the upstream got %s, TE %q", r.Proto, r.Header.Get("Te"))
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		rc := http.NewResponseController(w)
		rc.Flush()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			io.WriteString(w, "echo "+line)
			rc.Flush()
		}
		w.Header().Set("Grpc-Status", "0")
	})
	s := newSidecar(t, up.url)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	body, talk := io.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/loja.Pagamentos/Pagar", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Te", "trailers")
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for _, word := range []string{"one\n", "two\n"} {
		io.WriteString(talk, word)
		if line, err := in.ReadString('\n'); line != "echo "+word || err != nil {
			t.Fatalf("heard %q, %v", line, err)
		}
	}
	talk.Close()
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 || res.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("the end is %q, %v, trailers %v", rest, err, res.Trailer)
	}
}

// TestP9_Streams: what passes goes out as it comes, without a store in between.
func TestP9_Streams(t *testing.T) {
	next := make(chan struct{})
	up := newUpstream(t, "http", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "first\n")
		http.NewResponseController(w).Flush()
		<-next
		io.WriteString(w, "second\n")
	})
	s := newSidecar(t, up.url)
	res, err := s.http.Do(s.request("GET", "/feed", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	if line, err := in.ReadString('\n'); line != "first\n" || err != nil {
		t.Errorf("heard %q, %v", line, err)
	}
	close(next)
	if line, err := in.ReadString('\n'); line != "second\n" || err != nil {
		t.Errorf("heard %q, %v", line, err)
	}
}

// TestP9_Failures: what any proxy says.
func TestP9_Failures(t *testing.T) {
	s := newSidecar(t, "http://"+closedPort(t))
	if got := s.send("GET", "/", ""); got.status != http.StatusBadGateway || got.body != "" {
		t.Errorf("got %v, want a plain 502", got)
	}
	address := rawUpstream(t, func(c net.Conn) { drain(c) })
	s = newSidecar(t, "http://"+address, func(o *Options) { o.Limits.AnswerHeader = 50 * time.Millisecond })
	if got := s.send("GET", "/", ""); got.status != http.StatusGatewayTimeout || got.body != "" {
		t.Errorf("got %v, want a plain 504", got)
	}
	if log := s.log.String(); !strings.Contains(log, "an unprotected request got no answer") {
		t.Errorf("the log is %q", log)
	}
}

//go:build unix

package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// socketPair is a connection over real sockets, and its other end.
func socketPair(t *testing.T) (*wireConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		here.Close()
		there.Close()
	})
	return &wireConn{Conn: here, now: time.Now}, there
}

// TestP11_LooksBeforeItLeaps: an upstream that hung up, and of which nobody has
// taken notice yet, gets no request.
func TestP11_LooksBeforeItLeaps(t *testing.T) {
	for what, upstream := range map[string]func(net.Conn){
		"hung up":          func(c net.Conn) { c.Close() },
		"reset":            func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
		"said a last word": func(c net.Conn) { io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		wire, there := socketPair(t)
		if !wire.open() {
			t.Errorf("%s: a connection that is open is said not to be", what)
		}
		upstream(there)
		tick := time.NewTicker(time.Millisecond)
		for range 5000 { // the system needs a moment
			if !wire.open() {
				break
			}
			<-tick.C
		}
		tick.Stop()
		wire.doubted.Store(true)
		for range 2 {
			if n, err := wire.Write([]byte("POST")); n != 0 || !errors.Is(err, errHungUp) {
				t.Errorf("%s: wrote %d bytes, %v", what, n, err)
			}
		}
		if n := wire.written.Load(); n != 0 {
			t.Errorf("%s: %d bytes are counted", what, n)
		}
	}
	wire, there := socketPair(t)
	wire.doubted.Store(true)
	if _, err := wire.Write([]byte("POST")); err != nil {
		t.Error(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(there, got); err != nil || !bytes.Equal(got, []byte("POST")) || wire.written.Load() != 4 {
		t.Errorf("the upstream got %q, %v; %d bytes are counted", got, err, wire.written.Load())
	}
}

// TestP11_AnotherConnection: a connection that is found dead before anything was
// written costs the request nothing: it goes out on another one, with its body.
func TestP11_AnotherConnection(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for _, body := range []string{"", "corpo", strings.Repeat("corpo", 10000)} {
			synctest.Test(t, func(t *testing.T) {
				var got string
				calls := 0
				handler := func(w http.ResponseWriter, r *http.Request) {
					read, _ := io.ReadAll(r.Body)
					got = string(read)
					calls++
					paid(w, r)
				}
				var change []func(*http.Server)
				if h2 {
					change = append(change, overH2)
				}
				tr, network := overPipes(t, handler, change...)
				mustExchange(t, tr, 1)
				synctest.Wait() // what HTTP/2 still has to say of the first exchange is said
				for conn := range tr.pool.all {
					conn.wire.refused.Store(true)
				}
				r := httptest.NewRequest("POST", "/pay", strings.NewReader(body))
				tr.target.aim(r, r.URL)
				r.RequestURI = ""
				res, err := tr.RoundTrip(r)
				if err != nil {
					t.Fatalf("HTTP/2 %v, %d bytes: %v", h2, len(body), err)
				}
				drain(res.Body)
				res.Body.Close()
				if got != body || calls != 2 || network.connections() != 2 {
					t.Errorf("HTTP/2 %v: the upstream got %d bytes in call %d on connection %d", h2, len(got), calls, network.connections())
				}
			})
		}
	}
}

// TestP11_BodyThatWasRead: a body of which something was read cannot be sent on
// another connection. The request was not written all the same.
func TestP11_BodyThatWasRead(t *testing.T) {
	b := newTrialBody(httptest.NewRequest("POST", "/pay", strings.NewReader("corpo")))
	b.Close() // net/http gives up without a look
	if !b.again() {
		t.Error("a body that nobody has read cannot be sent")
	}
	if got, err := io.ReadAll(b); string(got) != "corpo" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if b.again() {
		t.Error("a body that was read can be sent again")
	}
}

// TestP11_BodyIsClosedOnce: by net/http, when the request is on its connection;
// and by us, when it found none.
func TestP11_BodyIsClosedOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*trialBody)
		want int
	}{
		{"closed in the search", func(b *trialBody) { b.Close() }, 0},
		{"closed in the search, then settled", func(b *trialBody) { b.Close(); b.settle() }, 1},
		{"settled, then closed", func(b *trialBody) { b.settle(); b.Close() }, 1},
		{"settled", func(b *trialBody) { b.settle() }, 0},
		{"aborted", func(b *trialBody) { b.Close(); b.abort() }, 1},
	} {
		closes := 0
		r := httptest.NewRequest("POST", "/pay", nil)
		r.Body = closeCounter{strings.NewReader("corpo"), &closes}
		if c.do(newTrialBody(r)); closes != c.want {
			t.Errorf("%s: closed %d times, want %d", c.name, closes, c.want)
		}
	}
}

type closeCounter struct {
	io.Reader
	n *int
}

func (c closeCounter) Close() error {
	*c.n++
	return nil
}

package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// exchange sends a request with a key through a transport and reads the answer.
func exchange(tr *transport) error {
	r := httptest.NewRequest("POST", "/pay", strings.NewReader(`{"valor":1}`))
	r.Header.Set("Idempotency-Key", "k")
	out := r.Clone(r.Context())
	tr.target.aim(out, r.URL)
	out.RequestURI = ""
	res, err := tr.RoundTrip(out)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// mustExchange does n exchanges that are all answered.
func mustExchange(t *testing.T, tr *transport, n int) {
	t.Helper()
	for range n {
		if err := exchange(tr); err != nil {
			t.Fatal(err)
		}
	}
}

// TestP11_IdleTime: a connection is used again while it has been idle for less
// than two seconds, and for less than the upstream says minus one.
func TestP11_IdleTime(t *testing.T) {
	for _, c := range []struct {
		keepAlive string
		idle      time.Duration
		reused    bool
	}{
		{"", 1900 * time.Millisecond, true},
		{"", 2100 * time.Millisecond, false},
		{"timeout=5, max=100", 1900 * time.Millisecond, true}, // Node's
		{"timeout=2", 900 * time.Millisecond, true},
		{"timeout=2", 1100 * time.Millisecond, false},
		{"max=3,Timeout=\"2\"", 1100 * time.Millisecond, false},
		{"timeout=1", time.Millisecond, false},
		{"timeout=0", time.Millisecond, false},
		{"timeout=soon", 1900 * time.Millisecond, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr, network := overPipes(t, func(w http.ResponseWriter, r *http.Request) {
				if c.keepAlive != "" {
					w.Header().Set("Keep-Alive", c.keepAlive)
				}
				paid(w, r)
			})
			// Let a connection stay open: then two seconds are the limit.
			mustExchange(t, tr, 1)
			time.Sleep(5 * time.Second)
			mustExchange(t, tr, 1)
			before := network.connections()
			time.Sleep(c.idle)
			mustExchange(t, tr, 1)
			if reused := network.connections() == before; reused != c.reused {
				t.Errorf("Keep-Alive %q, idle for %v: reused %v, want %v", c.keepAlive, c.idle, reused, c.reused)
			}
		})
	}
}

// TestP11_IdleTimeOverH2: a connection with a request on it is not idle, however
// long the request takes; one without is as idle as any.
func TestP11_IdleTimeOverH2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int64
		tr, network := overPipes(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				<-release
			}
			paid(w, r)
		}, overH2)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := exchange(tr); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Second)
		mustExchange(t, tr, 1)
		if n := network.connections(); n != 1 {
			t.Errorf("%d connections, want the one that is in use", n)
		}
		close(release)
		wg.Wait()
		time.Sleep(90 * time.Millisecond)
		mustExchange(t, tr, 1)
		if n := network.connections(); n != 1 {
			t.Errorf("%d connections, want the warm one", n)
		}
		time.Sleep(2100 * time.Millisecond)
		mustExchange(t, tr, 1)
		if n := network.connections(); n != 2 {
			t.Errorf("%d connections, want a fresh one", n)
		}
	})
}

// TestP11_SlowReader: the upstream's clock runs from its last byte, not from when
// a slow client has taken it.
func TestP11_SlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, network := overPipes(t, paid)
		r := httptest.NewRequest("POST", "/pay", nil)
		tr.target.aim(r, r.URL)
		r.RequestURI = ""
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // the answer has come, and nobody reads it
		drain(res.Body)
		res.Body.Close()
		mustExchange(t, tr, 1)
		if n := network.connections(); n != 2 {
			t.Errorf("%d connections: one that was silent for 5 s was taken for warm", n)
		}
	})
}

// TestP11_IdleConnectionsEnd: what nobody uses is closed, and counted as long as
// it is there.
func TestP11_IdleConnectionsEnd(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Int64
			change := []func(*http.Server){stateCounter(&open)}
			if h2 {
				change = append(change, overH2)
			}
			tr, _ := overPipes(t, paid, change...)
			mustExchange(t, tr, 3)
			synctest.Wait()
			if open.Load() != 1 {
				t.Errorf("%d connections are open, want 1", open.Load())
			}
			time.Sleep(4100 * time.Millisecond)
			synctest.Wait()
			if open.Load() != 0 {
				t.Errorf("%d connections are open after four seconds, want none", open.Load())
			}
		})
	}
}

// TestP11_ShortIdleLimit: an upstream that closes idle connections after 300 ms,
// or 2 s as Gunicorn does, and requests at moments all around that, in virtual time: every one of them is
// answered.
func TestP11_ShortIdleLimit(t *testing.T) {
	for _, limit := range []time.Duration{300 * time.Millisecond, 2 * time.Second} {
		for _, h2 := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { shortIdleLimit(t, limit, h2) })
		}
	}
}

func shortIdleLimit(t *testing.T, limit time.Duration, h2 bool) {
	change := []func(*http.Server){func(s *http.Server) { s.IdleTimeout = limit }}
	if h2 {
		change = append(change, overH2)
	}
	tr, network := overPipes(t, paid, change...)
	network.lag = 2 * time.Millisecond // in which requests and farewells cross
	draw := rand.New(rand.NewPCG(1, 2))
	failed, reused := 0, 0
	for i := range 1000 {
		before := network.connections()
		if err := exchange(tr); err != nil {
			failed++
			t.Logf("request %d: %v", i, err)
		}
		if network.connections() == before {
			reused++
		}
		pause := time.Duration(draw.Int64N(int64(2 * limit)))
		if i%2 == 0 { // close to the limit
			pause = limit + time.Duration(draw.Int64N(12000)-6000)*time.Microsecond
		}
		time.Sleep(pause)
	}
	if failed > 0 {
		t.Errorf("limit %v, HTTP/2 %v: %d of 1000 requests were not answered", limit, h2, failed)
	}
	// Some of the pauses are short: it must not be by never reusing any.
	if reused < 50 {
		t.Errorf("limit %v, HTTP/2 %v: only %d requests were on a warm connection", limit, h2, reused)
	}
}

// TestP11_ShortIdleLimitOnSockets: the same on real sockets, through the whole
// sidecar, with several clients at a time: no key becomes unknown.
func TestP11_ShortIdleLimitOnSockets(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		paid(w, r)
	}, func(s *http.Server) { s.IdleTimeout = 300 * time.Millisecond })
	s := newSidecar(t, up.url)
	const clients, requests = 16, 7
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			draw := rand.New(rand.NewPCG(uint64(c), 7))
			for i := range requests {
				key := fmt.Sprintf("k-%d-%d", c, i)
				got, err := s.do(s.request("POST", "/pay", "x", keyName, key))
				if err != nil || got.status != http.StatusCreated {
					t.Errorf("%s: got %v, %v", key, got, err)
				}
				book.want(t, key, 1)
				// Around the limit, where the upstream closes.
				<-time.After(time.Duration(280+draw.IntN(40)) * time.Millisecond)
			}
		})
	}
	wg.Wait()
	t.Logf("%d requests on %d connections", clients*requests, up.accepted())
}

// TestP11_HangsUpUnsaid: an upstream that hangs up after each answer without
// saying so is found out, even when each try costs an unknown.
func TestP11_HangsUpUnsaid(t *testing.T) {
	address := rawUpstream(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		drain(r.Body)
		io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")
		_, _ = in.ReadByte() // what comes next finds the connection dead
	})
	s := newSidecar(t, "http://"+address)
	unknown := 0
	for i := range 40 {
		switch got := s.pay(fmt.Sprint("k", i), "x"); got.status {
		case http.StatusCreated:
		case http.StatusBadGateway:
			unknown++
			if i > 20 {
				t.Errorf("request %d still got %v", i, got)
			}
		default:
			t.Errorf("got %v", got)
		}
	}
	if unknown > briefMost+1 {
		t.Errorf("%d became unknown, want at most %d", unknown, briefMost+1)
	}
}

// TestP11_ManyAtOnce: a burst of requests over HTTP/2 shares connections; one
// over HTTP/1.1 has one each, and both are answered.
func TestP11_ManyAtOnce(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var change []func(*http.Server)
			if h2 {
				change = append(change, overH2)
			}
			tr, network := overPipes(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Second)
				paid(w, r)
			}, change...)
			var wg sync.WaitGroup
			for range 60 {
				wg.Go(func() {
					if err := exchange(tr); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			want := 60
			if h2 {
				want = 1
			}
			if n := network.connections(); n != want {
				t.Errorf("HTTP/2 %v: %d connections, want %d", h2, n, want)
			}
		})
	}
}

// TestP11_FailedDialIsShared: many who wait for one connection over HTTP/2 get
// its failure at once, and do not each wait for one of their own.
func TestP11_FailedDialIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, network := overPipes(t, paid, overH2)
		network.Close()
		var wg sync.WaitGroup
		var notWritten atomic.Int64
		for range 20 {
			wg.Go(func() {
				if failure, ok := errors.AsType[*SendError](exchange(tr)); ok && !failure.Written {
					notWritten.Add(1)
				}
			})
		}
		wg.Wait()
		if n := notWritten.Load(); n != 20 {
			t.Errorf("%d of 20 were told that nothing was written", n)
		}
	})
}

// TestP11_HangsUpAtOnce: an upstream that takes connections and hangs up, as some
// balancers do while nobody is behind them, is not dialled for ever.
func TestP11_HangsUpAtOnce(t *testing.T) {
	for _, scheme := range protocolNames {
		var dialled atomic.Int64
		address := rawUpstream(t, func(net.Conn) { dialled.Add(1) })
		s := newSidecar(t, scheme+"://"+address)
		for i := range 5 {
			if got := s.pay(fmt.Sprint("k", i), "x"); got.status != http.StatusBadGateway {
				t.Errorf("%s: got %v, want 502", scheme, got)
			}
		}
		if n := dialled.Load(); n > 5*(mostStale+2) {
			t.Errorf("%s: dialled %d times for 5 requests", scheme, n)
		}
	}
}

// TestP11_NothingTwice: while no connection is to be used twice, each request
// has a new one, and finds it.
func TestP11_NothingTwice(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var change []func(*http.Server)
			if h2 {
				change = append(change, overH2)
			}
			tr, network := overPipes(t, paid, change...)
			for range briefMost + 1 {
				tr.pool.warmth.closed(0)
			}
			mustExchange(t, tr, 5)
			if n := network.connections(); n != 5 {
				t.Errorf("HTTP/2 %v: %d connections for 5 requests", h2, n)
			}
			// One that stays open ends it.
			time.Sleep(watched + time.Second)
			mustExchange(t, tr, 5)
			if n := network.connections(); n != 6 {
				t.Errorf("HTTP/2 %v: %d connections, want one more", h2, n)
			}
		})
	}
}

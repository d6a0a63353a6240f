package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/leak"
	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// TestMain fails when a test has left a goroutine of ours behind.
func TestMain(m *testing.M) { leak.Main(m) }

// sidecar is a Proxy on a real socket, over a store in memory.
type sidecar struct {
	t     *testing.T
	url   string
	addr  string
	proxy *Proxy
	eng   *umavez.Engine
	log   *logBook
	http  *http.Client // HTTP/1.1, repeats nothing by itself

	// stopped is when the sidecar's clock was stopped; nil: it runs.
	stopped atomic.Pointer[time.Time]
}

// newSidecar starts a sidecar over a store of its own, whose route is "POST /pay"
// unless change says otherwise.
func newSidecar(t *testing.T, upstream string, change ...func(*Options)) *sidecar {
	t.Helper()
	return newSidecarOver(t, memstore.New(memstore.Options{}), umavez.Options{}, upstream, change...)
}

// newSidecarOver starts one over a store that others may have, too.
func newSidecarOver(t *testing.T, store umavez.Store, eo umavez.Options, upstream string, change ...func(*Options)) *sidecar {
	t.Helper()
	s := &sidecar{t: t, log: &logBook{}}
	var err error
	if s.eng, err = umavez.New(store, eo); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Upstream: upstream, Routes: []Route{{Pattern: "POST /pay"}}, Principal: NoPrincipal(),
		HTTP:   umavezhttp.Options{Namespace: "loja"},
		Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	if s.proxy, err = New(s.eng, o); err != nil {
		t.Fatal(err)
	}
	s.setClock()
	server := o.Limits.Server(s.proxy)
	server.ErrorLog = slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = listener.Addr().String()
	s.url = "http://" + s.addr
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with the test
	}()
	transport := &http.Transport{DisableCompression: true}
	s.http = &http.Client{Transport: transport, Timeout: time.Minute}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-served
		s.proxy.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.eng.Close(ctx); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	return s
}

// setClock makes the sidecar's clock one that can be stopped.
func (s *sidecar) setClock() {
	now := func() time.Time {
		if at := s.stopped.Load(); at != nil {
			return *at
		}
		return wallClock()
	}
	tr := s.proxy.transport
	s.proxy.now, tr.now, tr.pool.now, tr.pool.warmth.now = now, now, now, now
}

// keepWarm stops the clock by which connections grow cold: on a busy machine the
// time between two requests of a test may be longer than they count as warm.
func (s *sidecar) keepWarm() {
	at := wallClock()
	s.stopped.Store(&at)
}

// logBook keeps what was logged.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// reply is an answer, read to its end.
type reply struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
	// broken is why the body ended early.
	broken error
}

// code is that of a problem document.
func (r reply) code() string {
	var p struct{ Code string }
	if r.header.Get("Content-Type") != wire.ProblemMediaType || json.Unmarshal([]byte(r.body), &p) != nil {
		return ""
	}
	return p.Code
}

func (r reply) replayed() bool { return r.header.Get(wire.IdempotentReplayed) == "true" }

func (r reply) String() string { return fmt.Sprintf("%d %v %q", r.status, r.header, r.body) }

// request makes a request to the sidecar: fields are names and values in turn.
func (s *sidecar) request(method, path, body string, fields ...string) *http.Request {
	s.t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, s.url+path, rd)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		// Not by Add: the client's own transport would repeat a request whose
		// key it knows. This test's client must not.
		r.Header[fields[i]] = append(r.Header[fields[i]], fields[i+1])
	}
	r.GetBody = nil
	return r
}

// keyName is a spelling of Idempotency-Key that net/http's client does not know
// for one, and the sidecar's server does.
const keyName = "idempotency-key"

// do sends a request and reads the answer.
func (s *sidecar) do(r *http.Request) (reply, error) {
	res, err := s.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, res.Trailer, string(body), err}, nil
}

// send sends a request that must get an answer.
func (s *sidecar) send(method, path, body string, fields ...string) reply {
	s.t.Helper()
	got, err := s.do(s.request(method, path, body, fields...))
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

// pay sends POST /pay with a key.
func (s *sidecar) pay(key, body string, fields ...string) reply {
	s.t.Helper()
	return s.send("POST", "/pay", body, append([]string{keyName, key}, fields...)...)
}

// record is what the store has of an anonymous caller's key.
func (s *sidecar) record(key string) umavez.Record {
	s.t.Helper()
	anybody, err := umavezhttp.Anonymous(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	rec, err := s.eng.Get(context.Background(), s.key(anybody, key))
	if err != nil {
		s.t.Fatal(err)
	}
	return rec
}

// key is a caller's key as records are named by it.
func (s *sidecar) key(principal, name string) umavez.Key {
	s.t.Helper()
	settings, err := s.eng.Namespace(context.Background(), "loja", s.proxy.source.Recipe())
	if err != nil {
		s.t.Fatal(err)
	}
	k := umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: principal}, Name: name}
	if settings.Kept {
		copy(k.Secret[:], settings.HashKey)
	}
	return k
}

// ledger counts effects by key, as an upstream's database would.
type ledger struct {
	mu      sync.Mutex
	effects map[string]int
}

func newLedger() *ledger { return &ledger{effects: make(map[string]int)} }

// act has the effect that a request asks for.
func (l *ledger) act(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects[r.Header.Get(wire.IdempotencyKey)]++
}

func (l *ledger) of(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.effects[key]
}

// want fails unless the key had so many effects.
func (l *ledger) want(t *testing.T, key string, n int) {
	t.Helper()
	if got := l.of(key); got != n {
		t.Errorf("key %q had %d effects, want %d", key, got, n)
	}
}

// upstream is a server of net/http behind the sidecar.
type upstream struct {
	url string
	// conns counts the connections that were made to it.
	mu    sync.Mutex
	conns int
}

func (u *upstream) accepted() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.conns
}

// protocolNames are the two that an upstream may speak without TLS.
var protocolNames = []string{"http", "h2c"}

type connKey struct{}

// newUpstream starts an upstream that speaks HTTP/1.1 ("http") or HTTP/2
// without TLS ("h2c").
func newUpstream(t *testing.T, protocol string, h http.HandlerFunc, change ...func(*http.Server)) *upstream {
	t.Helper()
	u := &upstream{}
	server := &http.Server{
		Handler: h, Protocols: new(http.Protocols),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			u.mu.Lock()
			u.conns++
			u.mu.Unlock()
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	server.Protocols.SetHTTP1(protocol == "http")
	server.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
	for _, c := range change {
		c(server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.url = protocol + "://" + listener.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if server.TLSConfig != nil {
			_ = server.ServeTLS(listener, "", "")
			return
		}
		_ = server.Serve(listener) // ends with the test
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return u
}

// cutConnection ends the connection that a request came on, as a crash would:
// without an answer. The reset is not left to chance.
func cutConnection(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		if secure, ok := c.(*tls.Conn); ok {
			c = secure.NetConn()
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
	panic(http.ErrAbortHandler)
}

// paid answers as a payment does.
func paid(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, `{"id":"42","status":"aprovado"}`)
}

// rawUpstream is an upstream that plays each connection by hand.
func rawUpstream(t *testing.T, play func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				play(c)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return listener.Addr().String()
}

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l := httptest.NewUnstartedServer(nil).Listener
	defer l.Close()
	return l.Addr().String()
}

// newEngine is an engine over a store in memory.
func newEngine(t *testing.T) *umavez.Engine {
	t.Helper()
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// discard is a logger for what does not matter to a test.
var discard = slog.New(slog.DiscardHandler)

// drain reads to the end, or to wherever it ends.
func drain(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

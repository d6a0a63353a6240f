package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez/umavezhttp"
)

// pipes is a network in memory, for bubbles of testing/synctest: what waits on
// its connections waits in virtual time.
type pipes struct {
	mu    sync.Mutex
	made  int
	lag   time.Duration // of each direction
	ways  sync.WaitGroup
	queue chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{queue: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := p.pipe()
	select {
	case p.queue <- there:
		p.mu.Lock()
		p.made++
		p.mu.Unlock()
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// pipe is a connection on which everything, a farewell included, takes its time.
// What is under way to an end that has hung up is lost.
func (p *pipes) pipe() (here, there net.Conn) {
	here, near := net.Pipe()
	if p.lag == 0 {
		return here, near
	}
	far, there := net.Pipe()
	oneWay := func(to, from net.Conn) {
		defer to.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			time.Sleep(p.lag)
			if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}
	p.ways.Go(func() { oneWay(far, near) })
	p.ways.Go(func() { oneWay(near, far) })
	return here, there
}

func (p *pipes) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.queue:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }

// overPipes starts an upstream and a transport to it, on a network in memory.
// To be called in a bubble.
func overPipes(t *testing.T, h http.HandlerFunc, change ...func(*http.Server)) (*transport, *pipes) {
	t.Helper()
	network := newPipes()
	server := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	for _, c := range change {
		c(server)
	}
	scheme := "http"
	if server.Protocols.UnencryptedHTTP2() {
		scheme = "h2c"
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(network) // ends with the test
	}()
	to, err := parseTarget(scheme + "://upstream")
	if err != nil {
		t.Fatal(err)
	}
	tr := newTransport(to, Limits{}.withDefaults(), nil, time.Now)
	tr.dial = network.dial
	t.Cleanup(func() {
		tr.close()
		server.Close()
		<-served
		network.ways.Wait()
	})
	return tr, network
}

// overH2 makes an upstream speak HTTP/2.
func overH2(s *http.Server) {
	s.Protocols.SetHTTP1(false)
	s.Protocols.SetUnencryptedHTTP2(true)
}

// stateCounter counts the connections that a server has open.
func stateCounter(open *atomic.Int64) func(*http.Server) {
	return func(s *http.Server) {
		s.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			case http.StateActive, http.StateIdle:
			}
		}
	}
}

// pipeSidecar is a sidecar on a network in memory, in front of an upstream on
// another one. To be called in a bubble.
type pipeSidecar struct {
	*sidecar
	network *pipes
}

func newPipeSidecar(t *testing.T, h http.HandlerFunc, change ...func(*Options)) *pipeSidecar {
	t.Helper()
	s := &pipeSidecar{sidecar: &sidecar{t: t, log: &logBook{}, url: "http://sidecar"}, network: newPipes()}
	tr, _ := overPipes(t, h)
	o := Options{
		Upstream: "http://upstream", Routes: []Route{{Pattern: "POST /pay"}}, Principal: NoPrincipal(),
		HTTP: umavezhttp.Options{Namespace: "loja"}, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	s.eng = newEngine(t)
	var err error
	if s.proxy, err = New(s.eng, o); err != nil {
		t.Fatal(err)
	}
	s.proxy.transport.dial = tr.dial
	server := o.Limits.Server(s.proxy)
	server.ErrorLog = slogLogger(discard)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(s.network) // ends with the test
	}()
	transport := &http.Transport{DialContext: s.network.dial}
	s.http = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-served
		s.proxy.Close()
	})
	return s
}

// connect makes a connection to the sidecar.
func (s *pipeSidecar) connect() net.Conn {
	s.t.Helper()
	c, err := s.network.dial(s.t.Context(), "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

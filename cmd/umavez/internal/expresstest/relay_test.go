package expresstest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay is the network between two programs: an address that stays while what
// stands behind it dies and comes back elsewhere, and a cable that can be cut.
type relay struct {
	url string

	mu      sync.Mutex
	to      string // where connections go; "": they wait until it is known
	open    map[net.Conn]bool
	carried int // connections on which something was sent
	closed  bool
	changed *sync.Cond
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{url: "http://" + listener.Addr().String(), open: map[net.Conn]bool{}}
	r.changed = sync.NewCond(&r.mu)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.carry(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.cut()
		all.Wait()
	})
	return r
}

// move lets connections go to address from now on; "" makes new ones wait.
func (r *relay) move(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = address
	r.changed.Broadcast()
}

// cut breaks every connection that is there.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.open {
		conn.Close()
	}
	clear(r.open)
	r.changed.Broadcast()
}

// awaitCarried waits until so many connections have had something sent on them.
func (r *relay) awaitCarried(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.carried < n && !r.closed {
		r.changed.Wait()
	}
}

// carry is one connection's life.
func (r *relay) carry(in net.Conn) {
	defer in.Close()
	out := r.connect(in)
	if out == nil {
		return
	}
	defer out.Close()
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(in, out) // it ends when either side has
		in.Close()
	})
	buffer := make([]byte, 4096)
	n, err := in.Read(buffer)
	if err == nil {
		if _, err = out.Write(buffer[:n]); err == nil {
			r.mu.Lock()
			r.carried++
			r.changed.Broadcast()
			r.mu.Unlock()
			_, _ = io.Copy(out, in)
		}
	}
	out.Close()
	answers.Wait()
}

// connect waits until it is known where to and dials. It returns nil when the
// connection was cut first.
func (r *relay) connect(in net.Conn) net.Conn {
	r.mu.Lock()
	r.open[in] = true
	for r.to == "" && r.open[in] && !r.closed {
		r.changed.Wait()
	}
	to, alive := r.to, r.open[in] && !r.closed
	r.mu.Unlock()
	if !alive {
		return nil
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open[in] {
		out.Close()
		return nil
	}
	r.open[out] = true
	return out
}

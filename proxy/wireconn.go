package proxy

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wireConn is a connection to the upstream, below TLS. It knows what net/http
// does not tell: how many bytes have been handed to the system, when the last
// one came, and whether the upstream has hung up in the meantime.
type wireConn struct {
	net.Conn
	now func() time.Time
	// stall bounds each single write. Without it, an upstream that stops
	// reading holds a request for ever: the wait for an answer's header begins
	// only when the request is out.
	stall time.Duration

	// frames: the upstream may say something at any time (HTTP/2).
	frames  atomic.Bool
	written atomic.Int64
	// doubted: the connection was idle, so the next write looks before it leaps.
	doubted atomic.Bool
	// refused: that write found it dead. Nothing is written any more.
	refused atomic.Bool

	mu   sync.Mutex
	last time.Time // when the latest byte came, or the connection was made
}

// errHungUp: the upstream has closed the connection, and nothing was written.
var errHungUp = errors.New("umavez: the upstream has closed the idle connection")

// Write writes within stall, and counts.
//
// The first write after a time of idleness looks whether the upstream has hung
// up. net/http learns of that by a goroutine of its own, which on a busy machine
// may be late by more than the whole idle time; the system knows at once. What
// is left is the time that the upstream's farewell needs to get here.
func (c *wireConn) Write(p []byte) (int, error) {
	if c.doubted.CompareAndSwap(true, false) && !c.open() {
		c.refused.Store(true)
	}
	if c.refused.Load() {
		return 0, errHungUp
	}
	if c.stall > 0 {
		if err := c.SetWriteDeadline(c.now().Add(c.stall)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// Read reads, and notes when.
func (c *wireConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		c.last = c.now()
		c.mu.Unlock()
	}
	return n, err
}

// lastByte returns when the upstream was heard of last. Its own clock for an
// idle connection started about then, however long the answer waited here for
// a slow client.
func (c *wireConn) lastByte() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// CloseWrite closes one direction, which a tunnel needs to say "no more".
func (c *wireConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

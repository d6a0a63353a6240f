package proxy

import (
	"errors"
	"io"
	"sync"
	"time"
)

// tunnelBody is the connection that an upgrade handed over. It is closed when
// nothing passed in either direction for too long.
type tunnelBody struct {
	io.ReadWriteCloser
	idle  time.Duration
	timer *time.Timer
	once  sync.Once
	done  func()
}

func newTunnelBody(rwc io.ReadWriteCloser, idle time.Duration, done func()) *tunnelBody {
	t := &tunnelBody{ReadWriteCloser: rwc, idle: idle, done: done}
	if idle > 0 {
		t.timer = time.AfterFunc(idle, t.hangUp)
	}
	return t
}

// Read reads from the upstream.
func (t *tunnelBody) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	t.passed(n)
	return n, err
}

// Write writes to the upstream.
func (t *tunnelBody) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	t.passed(n)
	return n, err
}

func (t *tunnelBody) passed(n int) {
	if t.timer != nil && n > 0 {
		t.timer.Reset(t.idle)
	}
}

// CloseWrite tells the upstream that the client says no more.
func (t *tunnelBody) CloseWrite() error {
	if half, ok := t.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the tunnel.
func (t *tunnelBody) Close() error {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.hangUp()
	return nil
}

func (t *tunnelBody) hangUp() {
	t.ReadWriteCloser.Close()
	t.once.Do(t.done)
}

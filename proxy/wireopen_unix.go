//go:build unix

package proxy

import (
	"errors"
	"syscall"
)

// open reports whether the upstream has not hung up. Over HTTP/1.1 it must not
// have said anything either that nobody has read yet: on an idle connection that
// is a last word. HTTP/2 has frames that may come at any time. The look takes
// nothing off the connection and does not wait.
func (c *wireConn) open() bool {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true // a connection that is none of the system's cannot be looked at
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	// Not raw.Read: net/http's own reader waits in there.
	alive := false
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != nil {
			alive = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
			return
		}
		alive = n > 0 && c.frames.Load()
	})
	return err == nil && alive
}

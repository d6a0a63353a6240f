package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// SendError says that a request got no answer from the upstream. Whether it may
// have been acted on is what counts (rules P2 and P3), so it is a field and
// never read from an error's text.
type SendError struct {
	// Written: bytes of the request may have reached the upstream. When false
	// none has, and none can any more.
	Written bool
	// Answering: the answer had begun.
	Answering bool
	// Timeout: the upstream took too long.
	Timeout bool
	// stale: the connection was one that had been idle, and it was found dead
	// before anything was written. Another one costs nothing.
	stale bool
	// Err is the cause. It may tell of the inside of the network: log it, never show it.
	Err error
}

// Error says whether anything was written, and the cause.
func (e *SendError) Error() string {
	if e.Written {
		return "umavez: the upstream did not answer: " + e.Err.Error()
	}
	return "umavez: the upstream was not reached: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// send is one request on one connection, and knows whether it was written.
//
// With HTTP/1.1 the connection is this request's alone, so the count of the
// connection's bytes decides. net/http's writer has ended by the time that its
// RoundTrip returns an error.
//
// With HTTP/2 others write on the same connection, and the goroutine that
// writes this request may still be about to begin when RoundTrip has given up
// (the time ran out while it waited for its turn). So the two are made to agree
// through one state: whoever comes first wins. A writer that begins after the
// request was declared unwritten finds its connection closed.
type send struct {
	conn   *conn
	reused bool  // the connection had been idle before
	before int64 // bytes on the connection before this request
	state  atomic.Uint32
	// entered: HTTP/1.1's writer took the request. Without it, bytes that went
	// out are a TLS farewell and no request.
	entered   atomic.Bool
	answering atomic.Bool
}

const (
	sendWaiting   uint32 = iota // nothing of it is written yet
	sendBegun                   // bytes of it may be on the wire
	sendUnwritten               // declared unwritten: no byte may follow
)

func newSend(c *conn) *send {
	return &send{conn: c, before: c.wire.written.Load(), reused: c.wasIdle >= 0}
}

// watch returns a context under which net/http tells how far the request got.
func (s *send) watch(ctx context.Context) context.Context {
	t := &httptrace.ClientTrace{
		GotFirstResponseByte: func() { s.answering.Store(true) },
	}
	if s.conn.many {
		// Called for each field while the header is put together, before its
		// first byte is written.
		t.WroteHeaderField = func(string, []string) {
			s.state.CompareAndSwap(sendWaiting, sendBegun)
			if s.state.Load() == sendUnwritten {
				s.conn.wire.Close()
			}
		}
	} else {
		t.WroteRequest = func(httptrace.WroteRequestInfo) { s.entered.Store(true) }
	}
	return httptrace.WithClientTrace(ctx, t)
}

// written decides whether the upstream may have seen anything of the request.
// To be called once, after RoundTrip has failed.
func (s *send) written(err error) bool {
	nothing := s.conn.wire.written.Load() == s.before
	if !s.conn.many {
		return s.entered.Load() && !nothing
	}
	if nothing && s.conn.wire.refused.Load() {
		return false // by nobody since this request came, and never again
	}
	return !s.state.CompareAndSwap(sendWaiting, sendUnwritten) && !refused(err)
}

// failed makes the error of a request that got no answer.
func (s *send) failed(err error) *SendError {
	written := s.written(err)
	// A stream that was refused was written, though it was not acted on. Such
	// an upstream has enough to do.
	stale := !written && s.reused && !refused(err)
	return &SendError{
		Written: written, Answering: s.answering.Load(), Timeout: isTimeout(err),
		stale: stale, Err: err,
	}
}

// refused reports whether the upstream refused an HTTP/2 stream before doing
// anything with it. REFUSED_STREAM says exactly that (RFC 9113, 8.7), and no
// other code does.
func refused(err error) bool {
	const refusedStream = 0x7
	se, ok := errors.AsType[streamError](err)
	return ok && se.Code == refusedStream
}

// streamError has the shape of net/http's own type for a reset HTTP/2 stream,
// which it keeps to itself and converts to any struct of the same shape.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error makes streamError an error; what is printed is always the original.
func (e streamError) Error() string { return "umavez: the stream was reset" }

// isTimeout reports whether time ran out, by a timer of ours or of net/http's.
func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// isUpgraded reports whether an answer hands its connection over.
func isUpgraded(res *http.Response) bool { return res.StatusCode == http.StatusSwitchingProtocols }

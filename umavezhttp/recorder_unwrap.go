package umavezhttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// This file is what a handler can do to its connection beyond writing an
// answer: what the faces offer, and what http.ResponseController finds.

// Unwrap is where [http.ResponseController] looks for what the recorder itself
// does not show. It is not the client's ResponseWriter: that one would let a
// handler, or a controller that finds a Flush deeper down, put bytes on the wire
// before the answer is stored.
func (w *recorder) Unwrap() http.ResponseWriter { return (*gate)(w) }

// gate is a recorder as http.ResponseController sees it: it can do whatever the
// client's ResponseWriter can, at any depth, and says http.ErrNotSupported of
// the rest. Writing to it is writing to the recorder.
type gate recorder

// Header is the recorder's.
func (g *gate) Header() http.Header { return g.header }

// Write is the recorder's.
func (g *gate) Write(p []byte) (int, error) { return (*recorder)(g).Write(p) }

// WriteHeader is the recorder's.
func (g *gate) WriteHeader(code int) { (*recorder)(g).WriteHeader(code) }

// FlushError is for http.ResponseController.
func (g *gate) FlushError() error { return (*recorder)(g).flush() }

// Hijack is for http.ResponseController.
func (g *gate) Hijack() (net.Conn, *bufio.ReadWriter, error) { return (*recorder)(g).hijack() }

// SetReadDeadline is for http.ResponseController.
func (g *gate) SetReadDeadline(t time.Time) error {
	return (*recorder)(g).control(func(c *http.ResponseController) error { return c.SetReadDeadline(t) })
}

// SetWriteDeadline is for http.ResponseController.
func (g *gate) SetWriteDeadline(t time.Time) error {
	return (*recorder)(g).control(func(c *http.ResponseController) error { return c.SetWriteDeadline(t) })
}

// EnableFullDuplex is for http.ResponseController.
func (g *gate) EnableFullDuplex() error {
	return (*recorder)(g).control((*http.ResponseController).EnableFullDuplex)
}

// control does what changes the connection and writes nothing.
func (w *recorder) control(do func(*http.ResponseController) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rec == nil {
		return errAnswerOver
	}
	return do(http.NewResponseController(w.rec.under))
}

// canFlush reports whether http.ResponseController could flush w.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch u := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = u.Unwrap()
		default:
			return false
		}
	}
}

// hijack gives the connection to the handler. With that the operation is done
// and its answer, whatever the handler writes, is not kept. Taking the
// connection puts nothing on the wire, so the record is completed after it, and
// before the handler can write.
func (w *recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.rec
	switch {
	case rec == nil:
		return nil, nil, errAnswerOver
	case rec.mode == hijacked:
		return nil, nil, http.ErrHijacked
	case rec.mode == cut:
		return nil, nil, rec.cause
	case rec.mode == holding && rec.status != 0:
		if err := rec.goLive(nil, ""); err != nil {
			return nil, nil, err
		}
	}
	conn, rw, err := http.NewResponseController(rec.under).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if rec.status == 0 {
		rec.status = http.StatusSwitchingProtocols
	}
	rec.attempt.Seal()
	if !rec.ended && !rec.endDone() {
		conn.Close()
		return nil, nil, rec.cause
	}
	rec.mode, rec.taping = hijacked, false
	return conn, rw, nil
}

// copyBuffers serve readFrom.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// readFrom writes all of src. While the answer is recorded, its bytes go the
// way of Write; then the client's ResponseWriter has src to itself, and may send
// a file without copying it.
func (w *recorder) readFrom(src io.Reader) (total int64, err error) {
	buffer := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buffer)
	for {
		if under := w.through(); under != nil {
			n, err := under.ReadFrom(src)
			total += n
			if w.passed(n, err) {
				return total, err
			}
		}
		n, readErr := src.Read(buffer[:])
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		switch {
		case errors.Is(readErr, io.EOF):
			return total, nil
		case readErr != nil:
			// What the handler wanted to send has not come whole. It may
			// overlook that; a record must not.
			w.spoil()
			return total, readErr
		}
	}
}

// through returns the client's ResponseWriter if it may have a source to itself.
func (w *recorder) through() io.ReaderFrom {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.rec
	if rec == nil || rec.mode != live || rec.taping || rec.gone || !bodyAllowed(rec.status) {
		return nil
	}
	under, _ := rec.under.(io.ReaderFrom)
	return under
}

// passed counts what went through. It returns true when all of the source did:
// after an error the rest is read here, to tell a client that has left, which
// changes nothing for the handler, from a source that fails.
func (w *recorder) passed(n int64, err error) (done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rec == nil {
		return true
	}
	w.rec.written += n
	w.rec.gone = err != nil
	return err == nil
}

// spoil says that the answer's body is not whole.
func (w *recorder) spoil() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rec != nil {
		w.rec.broken = true
	}
}

// push promises another resource over HTTP/2. It says nothing of the answer.
func (w *recorder) push(target string, o *http.PushOptions) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rec == nil {
		return errAnswerOver
	}
	pusher, ok := w.rec.under.(http.Pusher)
	if !ok {
		return http.ErrNotSupported
	}
	return pusher.Push(target, o)
}

// closeNotify tells when the handler should stop. As with its context, that is
// not when the client leaves, except from a stream that has no end.
func (w *recorder) closeNotify() <-chan bool {
	left := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { left <- true })
	return left
}

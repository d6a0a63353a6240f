package umavezgin

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// writer is gin's ResponseWriter over what records the answer. It behaves as
// gin's own, which cannot be made outside of gin: a status is kept back until
// something is written, so that the last one counts.
type writer struct {
	http.ResponseWriter // the recorder
	outside             gin.ResponseWriter
	status              int
	size                int
	chosen              bool // a handler has said something of the answer
	hijacked            bool
}

var _ gin.ResponseWriter = (*writer)(nil)

// unwritten is gin's size of an answer whose header is not written yet.
const unwritten = -1

// Unwrap is for http.ResponseController. What it finds is still the recorder.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader keeps the status back.
func (w *writer) WriteHeader(code int) {
	if code > 0 && !w.Written() {
		w.status, w.chosen = code, true
	}
}

// WriteHeaderNow writes the header with the last status.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size, w.chosen = 0, true
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// Write writes a piece of the body.
func (w *writer) Write(data []byte) (n int, err error) {
	w.WriteHeaderNow()
	n, err = w.ResponseWriter.Write(data)
	w.size += n
	return n, err
}

// WriteString is Write without a copy.
func (w *writer) WriteString(s string) (n int, err error) {
	w.WriteHeaderNow()
	n, err = io.WriteString(w.ResponseWriter, s)
	w.size += n
	return n, err
}

// Status is the last status.
func (w *writer) Status() int { return w.status }

// Size is how much of the body is written, or -1 before the header is.
func (w *writer) Size() int { return w.size }

// Written reports whether the header is written.
func (w *writer) Written() bool { return w.size != unwritten }

// Flush sends what is there: the answer goes out live from here on (rule R9).
func (w *writer) Flush() {
	w.WriteHeaderNow()
	// gin's writers can flush, so the recorder over them can.
	w.ResponseWriter.(http.Flusher).Flush()
}

// Hijack gives the connection away. As with gin, only before there is a body.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.size > 0 {
		return nil, nil, http.ErrHijacked
	}
	conn, rw, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		w.size, w.chosen, w.hijacked = max(w.size, 0), true, true
	}
	return conn, rw, err
}

// CloseNotify tells when the handler should stop. It is how c.Stream learns of it.
func (w *writer) CloseNotify() <-chan bool {
	return w.ResponseWriter.(interface{ CloseNotify() <-chan bool }).CloseNotify()
}

// Pusher is that of the connection, or nil. What is pushed is no part of the answer.
func (w *writer) Pusher() http.Pusher { return w.outside.Pusher() }

// finish writes the header of an answer that has no body. One that was never
// chosen is left to the recorder, which knows an operation that was told to stop
// from one that has nothing to say (rule R10). failed: the handlers have left
// errors for somebody else to answer. He is too late, and nobody knows what he
// would have said.
func (w *writer) finish(failed bool) {
	if failed && !w.chosen {
		w.WriteHeader(http.StatusInternalServerError)
	}
	if w.chosen || w.status != http.StatusOK {
		w.WriteHeaderNow()
	}
}

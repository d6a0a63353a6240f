package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// errStalled ends an answer, or a tunnel, in which nothing came for too long.
var errStalled error = stallError{}

// stallError is a timeout to whoever asks by net.Error.
type stallError struct{}

func (stallError) Error() string { return "umavez: nothing came from the upstream for too long" }
func (stallError) Timeout() bool { return true }

// Temporary is a part of net.Error, which has no other use for it.
func (stallError) Temporary() bool { return false }

// answerBody is the body of an answer. It bounds the pauses in it, says of an
// answer that breaks off that it did, and gives its connection back once.
type answerBody struct {
	io.ReadCloser
	pause   time.Duration
	timer   *time.Timer
	stalled atomic.Bool
	once    sync.Once
	done    func()
}

func newAnswerBody(res *http.Response, pause time.Duration,
	cancel context.CancelCauseFunc, done func(),
) *answerBody {
	b := &answerBody{ReadCloser: res.Body, pause: pause, done: done}
	if pause > 0 {
		// Cancelling is the one way to end a Read that works for both versions
		// of HTTP.
		b.timer = time.AfterFunc(pause, func() {
			b.stalled.Store(true)
			cancel(errStalled)
		})
		b.timer.Stop()
	}
	return b
}

// Read reads; its error is io.EOF at a clean end, and else a [*SendError].
func (b *answerBody) Read(p []byte) (int, error) {
	if b.timer != nil {
		b.timer.Reset(b.pause)
	}
	n, err := b.ReadCloser.Read(p)
	if b.timer != nil {
		b.timer.Stop()
	}
	if err == nil {
		return n, nil
	}
	b.once.Do(b.done)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, io.EOF
	}
	if b.stalled.Load() {
		err = errStalled
	}
	return n, &SendError{Written: true, Answering: true, Timeout: isTimeout(err), Err: err}
}

// Close ends the answer, also before its end.
func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.done)
	return err
}

// streamTypes are the media types whose answers are not whole until the
// conversation is over: they go out as they come (rule R9).
var streamTypes = []string{"text/event-stream", "multipart/x-mixed-replace", "application/grpc"}

// isStream reports whether an answer is meant to be read while it goes on.
func isStream(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	for _, t := range streamTypes {
		// application/grpc also has forms such as application/grpc+proto and -web.
		if media == t || t == "application/grpc" && strings.HasPrefix(media, t) {
			return true
		}
	}
	return false
}

type readWriteCloser = io.ReadWriteCloser

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

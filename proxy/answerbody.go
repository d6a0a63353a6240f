package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
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

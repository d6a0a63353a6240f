package umavezhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// recorder is the ResponseWriter that a protected handler gets (in one of the
// faces of recorder_faces.go). It behaves as the one of net/http does, except
// that nothing goes out before the answer is stored.
//
// The recorder itself is small and belongs to one request for ever, since a
// goroutine that outlives the handler may hold on to it. What it records into
// is used again for other requests: when the handler has returned, the recorder
// is sealed, and loses it.
type recorder struct {
	ctx    context.Context // the operation's
	header http.Header     // what the handler sees and changes

	mu  sync.Mutex
	rec *recording // nil: sealed
}

// errAnswerOver is what a goroutine gets that outlives its handler and still
// writes. Its bytes are in nobody's answer.
var errAnswerOver = errors.New("umavez: the handler has returned and its answer is complete")

// Header returns the header that the handler changes. What somebody outside has
// set before stands in it, too.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader keeps the status, and the header as it is now.
func (w *recorder) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rec != nil {
		w.rec.writeHeader(code)
	}
}

// Write records p and, once the answer goes out live, sends it.
func (w *recorder) Write(p []byte) (int, error) { return w.write(p, "") }

// WriteString is Write without a copy.
func (w *recorder) WriteString(s string) (int, error) { return w.write(nil, s) }

func (w *recorder) write(p []byte, s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rec == nil {
		return 0, errAnswerOver
	}
	return w.rec.write(p, s)
}

// seal takes what was recorded away from the handler.
func (w *recorder) seal() *recording {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.rec
	w.rec = nil
	return rec
}

// recording is an answer while it is being written. It is guarded by its
// recorder's mutex until that is sealed; then it is the middleware's alone.
type recording struct {
	call    *call
	attempt *umavez.Attempt
	under   http.ResponseWriter // the client's
	header  http.Header         // the recorder's

	mode    mode
	taping  bool  // the tape still holds all that was written
	ended   bool  // the attempt was ended when the answer became a stream
	unsaved bool  // the store has not taken the note or the answer yet
	cause   error // why mode is cut

	status   int     // 0: the handler has not written a header
	declared int64   // the Content-Length that the handler declared; -1: none
	written  int64   // what the handler has written of the body
	fields   []field // the header as it was when it was written
	kept     []field // what is kept of it, once it is known
	trailers []field
	tape     tape

	gone      bool  // the client takes nothing any more
	swallowed int64 // bytes for it that were neither sent nor recorded
	broken    bool  // the body is not whole, whatever its length says
}

// mode is where what a handler writes goes.
type mode uint8

const (
	// holding: onto the tape. Nothing has gone out.
	holding mode = iota
	// live: to the client, and onto the tape while it fits.
	live
	// cut: nowhere. The key is somebody else's by now.
	cut
	// hijacked: the handler has the connection.
	hijacked
)

// reset makes a recording ready for another answer, keeping its memory.
func (rec *recording) reset() {
	rec.tape.erase()
	clear(rec.fields)
	clear(rec.kept)
	clear(rec.trailers)
	*rec = recording{
		tape: rec.tape, taping: true, declared: -1,
		fields: rec.fields[:0], kept: rec.kept[:0], trailers: rec.trailers[:0],
	}
}

// writeHeader is WriteHeader, with net/http's own rules.
func (rec *recording) writeHeader(code int) {
	switch {
	case rec.mode == hijacked, rec.mode == cut:
		return
	case rec.status != 0:
		rec.call.logf("http: superfluous response.WriteHeader call: %d after %d", code, rec.status)
		return
	case code < 100 || code > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", code)) // as net/http does
	case code < 200 && code != http.StatusSwitchingProtocols:
		rec.inform(code)
		return
	}
	rec.status = code
	rec.declare()
	for name, values := range rec.header {
		// Cut to their length, so that a later Add does not write into them.
		rec.fields = append(rec.fields, field{name, values[:len(values):len(values)]})
	}
	if code == http.StatusSwitchingProtocols || wire.IsStream(valueOf(rec.fields, "Content-Type")) {
		rec.switchOver()
	}
}

// declare reads the handler's Content-Length, if it set one.
func (rec *recording) declare() {
	text := rec.header.Get("Content-Length")
	if text == "" {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		rec.call.logf("http: invalid Content-Length of %q", text)
		rec.header.Del("Content-Length")
		return
	}
	rec.declared = n
}

// write is Write of p or, when that is empty, of s.
func (rec *recording) write(p []byte, s string) (int, error) {
	n := len(p) + len(s)
	if err := rec.admit(int64(n)); err != nil || n == 0 {
		return 0, err
	}
	if rec.taping && max(rec.tape.length+int64(n), rec.declared) > rec.call.once.opt.MaxAnswer {
		// It will not be kept whole. What there is of it goes out now (rule R9).
		if err := rec.goLive(p, s); err != nil {
			return 0, err
		}
		rec.taping = false
		rec.tape.erase()
	}
	if rec.taping {
		if s != "" {
			rec.tape.addString(s)
		} else {
			rec.tape.add(p)
		}
	}
	if rec.mode == live {
		if err := rec.send(p, s); err != nil {
			return 0, err
		}
	}
	rec.written += int64(n)
	return n, nil
}

// admit says whether n more bytes of body may be written. The header is
// written first, if it was not.
func (rec *recording) admit(n int64) error {
	switch rec.mode {
	case hijacked:
		return http.ErrHijacked
	case cut:
		return rec.cause
	case holding, live:
	}
	if rec.status == 0 {
		rec.writeHeader(http.StatusOK)
		if rec.mode == cut {
			return rec.cause
		}
	}
	switch {
	case n == 0:
		return nil
	case !bodyAllowed(rec.status):
		return http.ErrBodyNotAllowed
	case rec.declared >= 0 && rec.written+n > rec.declared:
		return http.ErrContentLength
	}
	return nil
}

// bodyAllowed reports whether an answer with this status can have a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// complete reports whether the handler wrote as much as it declared.
func (rec *recording) complete() bool {
	return !rec.broken && (rec.declared < 0 || rec.written == rec.declared || !bodyAllowed(rec.status))
}

// sniffed is how many bytes http.DetectContentType looks at.
const sniffed = 512

// sniff gives the answer the Content-Type that net/http would give it, from the
// bytes that are about to go out first: those on the tape, and next. It is set
// in so many words, so that a replay has the same one, however it reaches its
// client. open: the header goes out before the body is complete.
func (rec *recording) sniff(next []byte, open bool) {
	if !bodyAllowed(rec.status) || has(rec.fields, "Content-Type") {
		return
	}
	head := rec.tape.head(sniffed)
	if missing := sniffed - len(head); missing > 0 && len(next) > 0 {
		head = append(append(make([]byte, 0, sniffed), head...), next[:min(missing, len(next))]...)
	}
	if len(head) == 0 && !open {
		return // no body, no type
	}
	// Where net/http would not look, a field without values keeps it from doing
	// so in the replay, which it sees as one piece.
	f := field{name: "Content-Type"}
	if len(head) > 0 && valueOf(rec.fields, "Content-Encoding") == "" && !has(rec.fields, "Transfer-Encoding") {
		f.values = []string{http.DetectContentType(head)}
	}
	rec.fields = append(rec.fields, f)
}

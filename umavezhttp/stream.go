package umavezhttp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/umavez/umavez"
)

// This file is rule R9: answers that go out before they are complete, because
// the handler flushes, because they are over the cap, or because they have no
// end that anybody could wait for.

// goLive sends what is on the tape, and lets what follows through as it comes.
// Before the first byte, the store notes what is known of the answer by then,
// and that it was not kept yet: were the process to die now, a retry must not
// be told that nothing has happened. next is what is about to be written.
func (rec *recording) goLive(next []byte, nextString string) error {
	if rec.mode != holding {
		return rec.cause
	}
	if nextString != "" {
		next = []byte(nextString[:min(len(nextString), sniffed)])
	}
	rec.sniff(next, true)
	rec.attempt.Seal()
	note := sheet{status: rec.status, kept: NotKeptYet, fields: location(rec.fields)}
	err := rec.attempt.Note(note.encode())
	if errors.Is(err, umavez.ErrLeaseLost) {
		return rec.cutOff(err)
	}
	// The store may be away. The operation has run all the same, and holding
	// its answer back would help nobody: the record stays as it is, which is
	// lost if this process dies, and never an invitation to run again.
	rec.unsaved = err != nil
	rec.open()
	if err := rec.tape.writeTo(rec.under); err != nil {
		rec.gone = true
	}
	return nil
}

// open puts the header on the wire, of an answer that goes out live.
func (rec *recording) open() {
	rec.keep(false)
	rec.mode = live
	rec.putHeader()
	rec.under.WriteHeader(rec.status)
}

// cutOff ends an answer that nobody is to see: the key went to somebody else,
// whose record answers this request, too.
func (rec *recording) cutOff(cause error) error {
	rec.mode, rec.cause, rec.taping = cut, cause, false
	rec.tape.erase()
	return cause
}

// location is what the note of a live answer holds of its header.
func location(fields []field) []field {
	for _, f := range fields {
		if f.name == "Location" {
			return []field{f}
		}
	}
	return nil
}

// switchOver ends the attempt now, because its answer becomes something that
// has no end to wait for: an event stream, say, or another protocol. The
// operation is done and its answer is not kept. An answer that proves something
// else, a 503 of that type, say, goes the ordinary way.
func (rec *recording) switchOver() {
	rec.attempt.Seal()
	out, _ := rec.call.once.route.decide(rec.status, false, rec.mark(), "")
	if out != keepWhole && out != keepBare {
		return
	}
	rec.keep(false)
	if !rec.endDone() {
		return
	}
	rec.taping = false
	rec.mode = live
	rec.putHeader()
	rec.under.WriteHeader(rec.status)
	// From here on nothing depends on the operation's running to its end, and
	// whoever streams must learn that the client has left.
	attempt, client := rec.attempt, rec.call.r.Context()
	context.AfterFunc(client, func() { attempt.Stop(context.Cause(client)) })
}

// endDone completes the attempt without a body. false: the key went to
// somebody else.
func (rec *recording) endDone() bool {
	done := sheet{status: rec.status, kept: KeptWithoutBody, fields: rec.kept, origin: rec.call.origin}
	err := rec.attempt.Complete(done.encode())
	if errors.Is(err, umavez.ErrLeaseLost) {
		rec.ended = true
		_ = rec.cutOff(err) // its cause is given to whoever writes next
		return false
	}
	rec.ended, rec.unsaved = true, err != nil
	return true
}

// mark is what the operation has said of itself so far.
func (rec *recording) mark() umavez.Mark {
	m, _ := rec.attempt.Mark()
	return m
}

// mostSwallowed is how much of a live answer, beyond what is recorded, is taken
// from a handler whose client has left. The operation is to run to its end
// (rule R7), so its writes do not fail; but one that never stops writing must.
const mostSwallowed = 64 << 20

// errClientGone is what a handler gets that writes on and on to a client who
// has left.
var errClientGone = errors.New("umavez: the client has left, and the answer is too long to be finished without it")

// send passes bytes of a live answer on. A client that takes nothing any more
// changes nothing for the handler, within limits; a stream that nobody waits
// for to end learns of it at once.
func (rec *recording) send(p []byte, s string) error {
	var err error
	switch {
	case rec.gone:
		err = errClientGone
	case s != "":
		_, err = io.WriteString(rec.under, s)
	default:
		_, err = rec.under.Write(p)
	}
	if err == nil {
		return nil
	}
	rec.gone = true
	if rec.ended {
		return err
	}
	if rec.taping {
		return nil
	}
	rec.swallowed += int64(len(p) + len(s))
	if rec.swallowed <= mostSwallowed {
		return nil
	}
	rec.broken = true
	return errClientGone
}

// flush is the handler's Flush: the answer goes out live from here on.
func (w *recorder) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.rec
	if rec == nil {
		return errAnswerOver
	}
	if rec.mode == holding {
		if !canFlush(rec.under) {
			return http.ErrNotSupported
		}
		if err := rec.admit(0); err != nil {
			return err
		}
		if err := rec.goLive(nil, ""); err != nil {
			return err
		}
	}
	switch {
	case rec.mode == hijacked:
		return http.ErrHijacked
	case rec.mode == cut:
		return rec.cause
	case rec.gone && !rec.ended:
		return nil
	}
	err := http.NewResponseController(rec.under).Flush()
	if err != nil && !errors.Is(err, http.ErrNotSupported) && !rec.ended {
		rec.gone = true
		return nil
	}
	return err
}

// inform sends a 1xx on its way to the answer (rule A9). It carries the header
// as it is now, which is taken back afterwards: it may yet change.
func (rec *recording) inform(code int) {
	h := rec.under.Header()
	before := h.Clone()
	replaceHeader(h, rec.header)
	rec.under.WriteHeader(code)
	replaceHeader(h, before)
}

func replaceHeader(h, by http.Header) {
	clear(h)
	for name, values := range by {
		h[name] = values
	}
}

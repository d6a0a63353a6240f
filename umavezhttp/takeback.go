package umavezhttp

import (
	"errors"
	"net/http"
)

// ErrNotTakenBack is what [TakeBack] returns when something of the answer has
// gone out, or w is not that of a protected handler.
var ErrNotTakenBack = errors.New("umavez: the answer has begun to go out and cannot be taken back")

// TakeBack makes as if a protected handler had not answered yet: what it has
// written of status, header and body is forgotten, and it may answer anew. It is
// for one that passes on an answer of somebody else, and finds in the middle
// that it breaks off: nothing but the tape has seen it so far, since the first
// byte goes out after the answer is stored (rule R1).
//
// An answer that is a stream or over the cap is on its way already (rule R9).
// Then there is an error, and what is left to the handler is
// panic(http.ErrAbortHandler).
func TakeBack(w http.ResponseWriter) error {
	for {
		switch u := w.(type) {
		case interface{ takeBack() error }:
			return u.takeBack()
		case interface{ Unwrap() http.ResponseWriter }:
			w = u.Unwrap()
		default:
			return ErrNotTakenBack
		}
	}
}

func (w *recorder) takeBack() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.rec
	if rec == nil || rec.mode != holding || rec.ended {
		return ErrNotTakenBack
	}
	rec.tape.erase()
	clear(rec.fields)
	rec.fields = rec.fields[:0]
	rec.status, rec.declared, rec.written = 0, -1, 0
	rec.taping, rec.broken = true, false
	// What stands in the client's header was put there by somebody outside.
	replaceHeader(w.header, rec.under.Header().Clone())
	return nil
}

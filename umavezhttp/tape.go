package umavezhttp

import (
	"net/http"
	"sync"
)

// A tape holds what a handler wrote. It grows by pieces of one size and never
// moves what is on it, so that an answer of one megabyte takes one megabyte and
// leaves nothing behind for the collector. Tapes and their pieces are used
// again: nothing of them may be seen by a store, or by a goroutine that
// outlives its handler.
type tape struct {
	first  []byte   // most answers fit
	more   [][]byte // full pieces, and one that is being filled
	length int64
}

const (
	// firstPiece holds an ordinary JSON answer.
	firstPiece = 4 << 10
	// nextPiece is small beside the cap of an answer (1 MiB) and large beside
	// what a call of Write costs.
	nextPiece = 64 << 10
)

var pieces = sync.Pool{New: func() any { return new([nextPiece]byte) }}

// add records p.
func (t *tape) add(p []byte) {
	t.length += int64(len(p))
	for len(p) > 0 {
		piece := t.room()
		n := min(len(p), cap(*piece)-len(*piece))
		*piece = append(*piece, p[:n]...)
		p = p[n:]
	}
}

// addString records s.
func (t *tape) addString(s string) {
	t.length += int64(len(s))
	for len(s) > 0 {
		piece := t.room()
		n := min(len(s), cap(*piece)-len(*piece))
		*piece = append(*piece, s[:n]...)
		s = s[n:]
	}
}

// room returns the piece to fill next.
func (t *tape) room() *[]byte {
	if t.first == nil {
		t.first = make([]byte, 0, firstPiece)
	}
	if len(t.first) < cap(t.first) {
		return &t.first
	}
	if last := len(t.more) - 1; last >= 0 && len(t.more[last]) < nextPiece {
		return &t.more[last]
	}
	t.more = append(t.more, pieces.Get().(*[nextPiece]byte)[:0])
	return &t.more[len(t.more)-1]
}

// appendTo appends what is recorded.
func (t *tape) appendTo(b []byte) []byte {
	b = append(b, t.first...)
	for _, piece := range t.more {
		b = append(b, piece...)
	}
	return b
}

// writeTo writes what is recorded, up to the first error.
func (t *tape) writeTo(w http.ResponseWriter) error {
	if len(t.first) > 0 {
		if _, err := w.Write(t.first); err != nil {
			return err
		}
	}
	for _, piece := range t.more {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// head returns up to n of the first bytes.
func (t *tape) head(n int) []byte { return t.first[:min(n, len(t.first))] }

// erase empties the tape and gives its pieces back.
func (t *tape) erase() {
	for i, piece := range t.more {
		pieces.Put((*[nextPiece]byte)(piece[:nextPiece]))
		t.more[i] = nil
	}
	*t = tape{first: t.first[:0], more: t.more[:0]}
}

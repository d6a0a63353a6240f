package umavezhttp

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/umavez/umavez/internal/wire"
)

// bodyTooLarge: the request's body is over the cap.
type bodyTooLarge struct{ limit int64 }

func (e *bodyTooLarge) Error() string { return "umavez: the request body is over the cap" }

// bodyBroken: the request's body did not arrive whole.
type bodyBroken struct{ err error }

func (e *bodyBroken) Error() string { return "umavez: reading the request body: " + e.err.Error() }
func (e *bodyBroken) Unwrap() error { return e.err }

// bodyProblem is the refusal of a request whose body could not be read.
func bodyProblem(err error) Problem {
	if large, ok := errors.AsType[*bodyTooLarge](err); ok {
		p := problemFor(wire.CodeRequestTooLarge)
		p.limit = large.limit
		return p
	}
	return problemFor(wire.CodeRequestIncomplete)
}

// errBodyTaken is a mistake in the order of handlers, or in one of them.
var errBodyTaken = errors.New("a handler outside has read it and did not put it back")

// readBody reads the whole body of r, at most limit bytes. It comes before any
// claim: a client that leaves, or lies about the length, must not leave a key
// behind, and the fingerprint needs all of it.
//
// Afterwards r.Body gives the handler the very same bytes; ContentLength stays
// as it was sent, and there is no GetBody, which would invite a transport to
// send the request twice. The returned slice is the one that the handler reads
// from: do not change it. It is good until freeBody.
//
// An error is a *bodyTooLarge or a *bodyBroken; see bodyProblem.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	r.GetBody = nil
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	// Before the first read: a client that waits for 100-continue sends nothing.
	if r.ContentLength > limit {
		return nil, &bodyTooLarge{limit}
	}
	b := bodyPool.Get().(*keptBody)
	if err := b.fill(r.Body, limit, r.ContentLength); err != nil {
		b.recycle()
		return nil, err
	}
	if len(b.bytes) == 0 && r.ContentLength > 0 {
		// net/http tells of a body that breaks off. This one came whole, and
		// somebody outside has read it: without its bytes every request of the
		// key would pass for the same one (rule F10).
		b.recycle()
		return nil, &bodyBroken{errBodyTaken}
	}
	b.from, r.Body = r.Body, b
	return b.bytes, nil
}

// freeBody ends the use of what readBody returned, and lets its memory serve
// the next request. handed says whether a handler ever had r: it may have kept
// the body, so the body itself stays closed for good. Not calling freeBody only
// costs memory.
func freeBody(r *http.Request, handed bool) {
	b, ok := r.Body.(*keptBody)
	if !ok {
		return
	}
	r.Body = http.NoBody
	if !handed {
		b.recycle()
		return
	}
	heir := &keptBody{}
	b.mu.Lock()
	heir.bytes, b.bytes, b.closed = b.bytes, nil, true
	b.mu.Unlock()
	heir.recycle()
}

const (
	// firstRead is how much is read at first: a payment fits, and a client that
	// announces a megabyte and sends nothing costs only this much.
	firstRead = 4 << 10
	// mostPooled keeps the pool from holding on to the memory of rare large bodies.
	mostPooled = 64 << 10
)

var bodyPool = sync.Pool{New: func() any { return &keptBody{bytes: make([]byte, 0, firstRead)} }}

// keptBody is a request's body that was read into memory. Like net/http's own
// bodies it can be read while the handler runs, and no longer: a goroutine that
// outlives its handler gets an error, not the bytes of somebody else's request.
type keptBody struct {
	mu     sync.Mutex
	bytes  []byte
	off    int
	closed bool
	from   io.Closer // what the bytes were read from
}

// fill reads all of src. length is what the client announced, or -1.
func (b *keptBody) fill(src io.Reader, limit, length int64) error {
	b.bytes, b.off, b.closed = b.bytes[:0], 0, false
	for {
		if len(b.bytes) == cap(b.bytes) {
			// Doubling, but not past what was announced, plus a byte for the end.
			size := 2 * int64(cap(b.bytes))
			if length >= int64(len(b.bytes)) {
				size = min(size, length+1)
			}
			grown := make([]byte, len(b.bytes), max(size, int64(len(b.bytes))+512))
			copy(grown, b.bytes)
			b.bytes = grown
		}
		n, err := src.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case int64(len(b.bytes)) > limit:
			return &bodyTooLarge{limit}
		case err == io.EOF:
			return nil
		case err != nil:
			if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
				return &bodyTooLarge{large.Limit}
			}
			return &bodyBroken{err}
		}
	}
}

// Read is the handler's.
func (b *keptBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.off == len(b.bytes):
		return 0, io.EOF
	}
	n := copy(p, b.bytes[b.off:])
	b.off += n
	return n, nil
}

// Close is the handler's. Closing what the bytes came from, too, gives outer
// handlers that replaced the body what they wait for.
func (b *keptBody) Close() error {
	b.mu.Lock()
	from := b.from
	b.closed, b.from = true, nil
	b.mu.Unlock()
	if from == nil {
		return nil
	}
	return from.Close()
}

// recycle puts b back for the next request. Nobody else may hold it.
func (b *keptBody) recycle() {
	if cap(b.bytes) > mostPooled || cap(b.bytes) < firstRead {
		return
	}
	b.bytes, b.off, b.closed, b.from = b.bytes[:0], 0, false, nil
	bodyPool.Put(b)
}

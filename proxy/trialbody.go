package proxy

import (
	"io"
	"net/http"
	"sync"
)

// trialBody is the body of a request that may have to look for another
// connection. net/http closes a body that it could not send; the body is needed
// again then, so closing it waits until the search is over.
type trialBody struct {
	req *http.Request

	body io.ReadCloser // nil: none

	mu      sync.Mutex
	touched bool // something was read from it
	closed  bool // net/http is done with it
	settled bool // closing closes
}

func newTrialBody(req *http.Request) *trialBody {
	b := &trialBody{req: req}
	if req.Body != nil && req.Body != http.NoBody {
		b.body = req.Body
	}
	return b
}

// request returns the request with the body to try with. net/http knows an
// empty body by what it is, so that one stays.
func (b *trialBody) request() *http.Request {
	if b.body == nil {
		return b.req
	}
	r := *b.req
	r.Body = b
	return &r
}

// Read reads the body.
func (b *trialBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.touched = true
	b.mu.Unlock()
	return b.body.Read(p)
}

// Close closes the body once the request has found its connection.
func (b *trialBody) Close() error {
	b.mu.Lock()
	b.closed = true
	settled := b.settled
	b.mu.Unlock()
	if !settled {
		return nil
	}
	return b.body.Close()
}

// again reports whether the request can try another connection. It can while
// nobody has read of its body. net/http reads it only after the header has been
// written, unless it knows the body to be in memory, which it does not of this one.
func (b *trialBody) again() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = false
	return !b.touched
}

// settle ends the search: the request is on its connection.
func (b *trialBody) settle() {
	b.mu.Lock()
	b.settled = true
	over := b.closed && b.body != nil
	b.mu.Unlock()
	if over {
		_ = b.body.Close() // read or not, it is not wanted any more
	}
}

// abort ends the search without a connection.
func (b *trialBody) abort() {
	b.mu.Lock()
	b.settled = true
	b.mu.Unlock()
	if b.body != nil {
		_ = b.body.Close() // see settle
	}
}

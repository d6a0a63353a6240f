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

	mu      sync.Mutex
	body    io.ReadCloser // nil: none
	touched bool          // something was read from it
	closed  bool          // net/http is done with it
	settled bool          // closing closes
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
	body := b.body
	b.mu.Unlock()
	return body.Read(p)
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

// rewind makes the body ready for another connection, if that is possible.
func (b *trialBody) rewind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = false
	if b.body == nil || !b.touched {
		return true
	}
	if b.req.GetBody == nil {
		return false
	}
	again, err := b.req.GetBody()
	if err != nil {
		return false
	}
	_ = b.body.Close() // its bytes come from the new one
	b.body, b.touched = again, false
	return true
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

package umavezhttp

import (
	"net/http"
	"net/url"
	"slices"
)

// Request is what a record keeps of a request whose route says KeepRequest: all
// that its handler may read of it, so that a lost operation can be finished, or
// looked into, without its client. Its binary form (request_codec.go) is what
// lies in the store, behind the engine's sealer if it has one.
type Request struct {
	Method string
	// Target is the request line's, as it was received: http.Request.RequestURI.
	Target string
	// URL is what the handler sees, with whatever outer handlers have made of it.
	// User, Opaque and Fragment are not kept: no request that a server receives
	// may have them.
	URL  url.URL
	Host string
	// Proto is the version of HTTP, such as "HTTP/1.1".
	Proto string
	// RemoteAddr is the network address that the request came from.
	RemoteAddr string
	// Pattern and PathValues are those of [http.ServeMux].
	Pattern    string
	PathValues map[string]string
	// Header holds the end-to-end fields, but for those that the route withholds
	// from its handler.
	Header http.Header
	// ContentLength is the body's length as the client announced it; -1: not.
	ContentLength int64
	Body          []byte
	// Trailer holds the fields that came after the body.
	Trailer http.Header

	// Principal and Key say whose request it is, and under which key it runs.
	Principal string
	Key       string
}

// RequestError says what is wrong with the stored form of a request, and where.
type RequestError struct {
	// At is the offset of the first byte that makes no sense, from 0.
	At int
	// Fault says what is wrong with it.
	Fault string
}

// Error names the fault and the place, and nothing of the request.
func (e *RequestError) Error() string {
	return errorf("kept request: %s at byte %d", e.Fault, e.At).Error()
}

// AppendBinary appends the stored form of the request. It refuses one without a
// method, a principal or a key, which could never be matched with a record.
func (q *Request) AppendBinary(b []byte) ([]byte, error) {
	switch {
	case q.Method == "":
		return b, errorf("kept request without a method")
	case q.Principal == "", q.Key == "":
		return b, errorf("kept request without a principal or a key")
	case q.ContentLength < -1:
		return b, errorf("kept request with a content length of %d", q.ContentLength)
	}
	s := q.sheet()
	return s.append(slices.Grow(b, s.size())), nil
}

// MarshalBinary returns the stored form of the request.
func (q *Request) MarshalBinary() ([]byte, error) { return q.AppendBinary(nil) }

// UnmarshalBinary reads the stored form: all of it or, with a [*RequestError],
// nothing. Body is a part of b, which must not be changed afterwards.
func (q *Request) UnmarshalBinary(b []byte) error {
	got, err := openRequest(b)
	if err != nil {
		return err
	}
	*q = got
	return nil
}

// texts are the texts of a request under the names by which they are
// stored, in the order of those names.
func (q *Request) texts() []requestText {
	return []requestText{
		{"host", &q.Host},
		{"key", &q.Key},
		{"method", &q.Method},
		{"path", &q.URL.Path},
		{"pattern", &q.Pattern},
		{"principal", &q.Principal},
		{"proto", &q.Proto},
		{"query", &q.URL.RawQuery},
		{"raw-path", &q.URL.RawPath},
		{"remote", &q.RemoteAddr},
		{"scheme", &q.URL.Scheme},
		{"target", &q.Target},
		{"url-host", &q.URL.Host},
	}
}

type requestText struct {
	name string
	text *string
}

package umavezhttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// This file takes down the request of a route that says KeepRequest, and makes a
// request of it again. What is not kept is not shown to the handler on any
// attempt, so that a handler which cannot do without it fails when it is first
// tried, and not when a lost operation is finished without it.

// credentials are the headers that authentication outside consumes. They are
// never kept in plain.
var credentials = []string{"Authorization", "Cookie", "Proxy-Authorization"}

// perHop are about one connection, which a kept request has none of. What
// Connection names is, too.
var perHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade"}

// keepRequest takes the request down, so that the claim keeps it. A request over
// the cap is refused if it would be the first of its key, since the route
// promises to finish what it begins. One that has a record already is answered
// by that, however long its cookies have become.
func (c *call) keepRequest() (refusal Problem, ok bool) {
	kept := c.requestOf()
	s := kept.sheet()
	if limit := c.once.opt.MaxKeptRequest; int64(s.size()) > limit {
		rec, err := c.once.eng.Get(c.r.Context(), c.key)
		switch {
		case err != nil && !errors.Is(err, umavez.ErrUnreadable):
			c.logf("umavez: record %v: %v", c.key.ID(), err)
			return unavailable(), false
		case rec.State == umavez.Vacant:
			p := problemFor(wire.CodeRequestTooLarge)
			p.limit, p.whole = limit, true
			return p, false
		}
		return Problem{}, true
	}
	c.kept = s.append(make([]byte, 0, s.size()))
	return Problem{}, true
}

// requestOf is the request as it is kept.
func (c *call) requestOf() Request {
	r := c.r
	q := Request{
		Method: r.Method, Target: r.RequestURI, URL: *r.URL, Host: r.Host, Proto: r.Proto,
		RemoteAddr: r.RemoteAddr, Pattern: r.Pattern, Header: c.shownHeader(r.Header),
		ContentLength: max(r.ContentLength, -1), Body: c.body, Trailer: r.Trailer,
		Principal: c.key.Scope.Principal, Key: c.key.Name,
	}
	for name := range wildcards(r.Pattern) {
		if q.PathValues == nil {
			q.PathValues = map[string]string{}
		}
		q.PathValues[name] = r.PathValue(name)
	}
	return q
}

// shownHeader is the part of a header that the handler is shown on routes that
// keep requests.
func (c *call) shownHeader(h http.Header) http.Header {
	rt := &c.once.route
	var named []string
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			named = append(named, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	shown := make(http.Header, len(h))
	for name, values := range h {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(perHop, canonical) || slices.Contains(named, canonical) || slices.Contains(rt.Withhold, canonical) {
			continue
		}
		shown[name] = slices.Clone(values)
	}
	return shown
}

// shownRequest is the request of a first attempt as the handler sees it.
func (c *call) shownRequest(r *http.Request) *http.Request {
	r.Header = c.shownHeader(r.Header)
	if r.URL.User != nil {
		plain := *r.URL
		plain.User = nil
		r.URL = &plain
	}
	return r
}

// rebuild makes a request of a kept one. Its context has no server, and nothing
// of what handlers outside put there.
func (q *Request) rebuild(ctx context.Context) *http.Request {
	address := q.URL
	r := &http.Request{
		Method: q.Method, RequestURI: q.Target, URL: &address, Host: q.Host, Proto: q.Proto,
		RemoteAddr: q.RemoteAddr, Pattern: q.Pattern, Header: q.Header.Clone(),
		ContentLength: q.ContentLength, Trailer: q.Trailer.Clone(),
		// The bytes are the store's, and must not go into the pool of bodies.
		Body: &keptBody{bytes: bytes.Clone(q.Body)},
	}
	r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(q.Proto)
	if q.ContentLength < 0 {
		r.TransferEncoding = []string{"chunked"}
	}
	for name, value := range q.PathValues {
		r.SetPathValue(name, value)
	}
	return r.WithContext(ctx)
}

// wildcards yields the names of a ServeMux pattern's wildcards.
func wildcards(pattern string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			_, after, found := strings.Cut(pattern, "{")
			name, rest, closed := strings.Cut(after, "}")
			if !found || !closed {
				return
			}
			pattern = rest
			if name = strings.TrimSuffix(name, "..."); name != "" && name != "$" && !yield(name) {
				return
			}
		}
	}
}

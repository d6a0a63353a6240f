package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// forwarder is the operation behind an enrolled route: it sends the request to
// the upstream, once, and writes down what came of it (outcome.go). It is not
// httputil.ReverseProxy, which cannot tell a request that was written from one
// that was not, flushes what is no stream, and has begun to answer by the time
// that it finds an answer broken.
type forwarder struct {
	transport *transport
	// keyHeaders are the names under which a key may come.
	keyHeaders []string
	// pass takes requests of enrolled routes that run unprotected (rule K2).
	pass   http.Handler
	refuse refuser
	// again is when another attempt may know more of an operation that was lost:
	// when it runs it again, or a reconciler is asked. 0: never.
	again time.Duration
	log   *slog.Logger
}

// refuser writes one of our own documents with a code of package wire, and says
// when to come again; 0: nothing.
type refuser func(w http.ResponseWriter, r *http.Request, code string, status int, again time.Duration)

// ServeHTTP runs one attempt.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if umavez.FromContext(r.Context()) == nil {
		f.pass.ServeHTTP(w, r)
		return
	}
	news := &interim{w: w}
	out, err := f.request(r, news)
	if err != nil {
		// Only memory stands between the body and here, so nothing was sent.
		f.notReached(w, r, err)
		return
	}
	res, err := f.transport.RoundTrip(out)
	news.end()
	if err != nil {
		f.noAnswer(w, r, err)
		return
	}
	defer res.Body.Close()
	if isUpgraded(res) {
		// Nobody asked for another protocol: see request.
		f.noAnswer(w, r, &SendError{Written: true, Answering: true, Err: errUnasked})
		return
	}
	removeHopByHop(res.Header)
	f.answer(w, r, res)
}

// request makes the upstream request.
func (f *forwarder) request(r *http.Request, news *interim) (*http.Request, error) {
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: news.got})
	out := r.Clone(ctx)
	f.transport.target.aim(out, r.URL)
	out.RequestURI, out.Close, out.GetBody, out.TransferEncoding = "", false, nil, nil
	trailers := strings.Contains(strings.ToLower(strings.Join(r.Header["Te"], ",")), "trailers")
	// With the hop-by-hop headers goes any Upgrade: an operation that is to run
	// once does not turn into a connection. Expect goes too, the body is here.
	removeHopByHop(out.Header)
	delete(out.Header, "Expect")
	if trailers {
		out.Header.Set("Te", "trailers")
	}
	// What is stored must be readable by the next client, which may not take
	// what this one takes (rule A8).
	out.Header.Set("Accept-Encoding", "identity")
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // or net/http would put its own name
	}
	f.setKey(out.Header)
	return out, f.setBody(out, r)
}

// setKey spells the key for the upstream (rule P4): once, under the first of the
// names that the client used, bare where that can spell it.
func (f *forwarder) setKey(h http.Header) {
	found := false
	for _, name := range f.keyHeaders {
		lines := h[name]
		if len(lines) == 0 {
			continue
		}
		delete(h, name)
		if found {
			continue
		}
		// The middleware has parsed it, or the request would not be here.
		if key, err := wire.ParseKey(lines[0]); err == nil {
			found = true
			h[name] = []string{wire.FormatKey(key)}
		}
	}
}

// setBody gives the upstream request its body, which the middleware has read.
// Where its length was not announced it is known now, and said: some servers
// take no chunked body. One with trailers must stay chunked.
func (f *forwarder) setBody(out, r *http.Request) error {
	switch {
	case r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0:
		out.Body, out.ContentLength = http.NoBody, 0
	case r.ContentLength < 0 && len(r.Trailer) == 0:
		whole, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		out.ContentLength = int64(len(whole))
		out.Body = io.NopCloser(bytes.NewReader(whole))
	default:
		// The transport closes what it sends; the body is the server's to close.
		out.Body = io.NopCloser(r.Body)
	}
	return nil
}

// interim passes 1xx answers on while the upstream works (rule A9). They come on
// the transport's goroutine, and one that comes too late is dropped.
type interim struct {
	w  http.ResponseWriter
	mu sync.Mutex
	// over: the final answer has come, or none will.
	over bool
}

func (i *interim) got(code int, header textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	// 100 answers an expectation that was not passed on.
	if i.over || code == http.StatusContinue {
		return nil
	}
	news := http.Header(header).Clone()
	removeHopByHop(news)
	h := i.w.Header()
	before := h.Clone()
	for name, values := range news {
		h[name] = append(h[name], values...)
	}
	i.w.WriteHeader(code)
	// WriteHeader leaves the header as it is, and these fields are not the answer's.
	clear(h)
	maps.Copy(h, before)
	return nil
}

func (i *interim) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
}

// cause is why a context ended, for the log.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// What became of a protected request, and what the record is told of it:
//
//	no byte was written          → 502, released (P2)
//	written, and no whole answer → 502 or 504 outcome-unknown, abandoned (P3)
//	an answer                    → its status says what it proves (A1–A5), unless
//	                               the application says more (A6)

var errUnasked = errors.New("umavez: the upstream switched protocols unasked")

// noAnswer ends an attempt that got no whole answer.
func (f *forwarder) noAnswer(w http.ResponseWriter, r *http.Request, err error) {
	failure, ok := errors.AsType[*SendError](err)
	if ok && !failure.Written {
		f.notReached(w, r, err)
		return
	}
	why, status := umavez.ReasonReset, http.StatusBadGateway
	switch {
	case !ok: // nobody knows: the worst is taken for true
	case failure.Timeout:
		why, status = umavez.ReasonTimeout, http.StatusGatewayTimeout
	case failure.Answering:
		why = umavez.ReasonBroken
	}
	f.mark(r, umavez.Unknown(r.Context(), why))
	f.log.Error("the outcome of a protected request is unknown",
		"method", r.Method, "path", r.URL.Path, "reason", string(why), "error", cause(r.Context(), err))
	f.refuse(w, r, wire.CodeOutcomeUnknown, status, f.again)
}

// notReached ends an attempt of which the upstream has seen nothing.
func (f *forwarder) notReached(w http.ResponseWriter, r *http.Request, err error) {
	f.mark(r, umavez.Release(r.Context()))
	f.log.Warn("the upstream was not reached",
		"method", r.Method, "path", r.URL.Path, "error", cause(r.Context(), err))
	f.refuse(w, r, wire.CodeUpstreamUnreachable, http.StatusBadGateway, 0)
}

// mark reports a mark that did not take. It cannot happen before the answer has
// begun; if it does, the answer's status decides, and that must be seen.
func (f *forwarder) mark(r *http.Request, err error) {
	if err != nil {
		f.log.Error("an outcome could not be marked", "path", r.URL.Path, "error", err)
	}
}

// answer writes the upstream's answer down. One that breaks off is no answer, and
// its client must be told so (rule P3): it is taken back, which works while the
// middleware still has all of it. What is longer than it keeps is under way by
// then, and if it breaks, so does the client's connection (rule R10).
func (f *forwarder) answer(w http.ResponseWriter, r *http.Request, res *http.Response) {
	f.stated(r, res)
	f.begin(w, res)
	if wire.IsStream(res.Header.Get("Content-Type")) {
		f.stream(w, r, res)
		return
	}
	// A copy, and never a flush: that the upstream sent its answer in chunks
	// does not make it a stream (rule R9). A write fails when the key has gone
	// to somebody else, or when the client has left in the middle of what is not
	// kept. The middleware knows that by itself.
	_, err := io.Copy(writerOnly{w}, res.Body)
	if failure, ok := errors.AsType[*SendError](err); ok {
		if umavezhttp.TakeBack(w) != nil {
			f.brokenOff(r, failure)
		}
		f.noAnswer(w, r, failure)
		return
	}
	f.end(w, res)
}

// stated does what the application says of its own answer (rule A6), before the
// answer begins: then it is too late to say anything. What it says of an answer
// that does not arrive counts for nothing, since the last mark wins.
func (f *forwarder) stated(r *http.Request, res *http.Response) {
	lines := res.Header[wire.IdempotencyOutcome]
	delete(res.Header, wire.IdempotencyOutcome)
	if len(lines) == 0 {
		return
	}
	ctx := r.Context()
	switch said := strings.ToLower(strings.TrimSpace(lines[0])); {
	case len(lines) > 1:
		f.log.Error("the upstream states two outcomes; its status decides", "path", r.URL.Path)
	case said == wire.OutcomeReleased:
		f.mark(r, umavez.Release(ctx))
	case said == wire.OutcomeKept:
		f.mark(r, umavez.Keep(ctx))
	case said == wire.OutcomeNoBody:
		f.mark(r, umavez.KeepWithoutBody(ctx))
	default:
		f.log.Error("the upstream states an outcome that does not exist; its status decides",
			"path", r.URL.Path, "outcome", said)
	}
}

// begin writes the answer's header.
func (f *forwarder) begin(w http.ResponseWriter, res *http.Response) {
	h := w.Header()
	for name, values := range res.Header {
		h[name] = append(h[name], values...)
	}
	if len(res.Trailer) > 0 {
		// HTTP/1.1 has trailers only after chunks; HTTP/2 has both.
		delete(h, "Content-Length")
	}
	for _, name := range slices.Sorted(maps.Keys(res.Trailer)) {
		h.Add("Trailer", name)
	}
	w.WriteHeader(res.StatusCode)
}

// end writes the trailers: under their own names when they were announced.
func (f *forwarder) end(w http.ResponseWriter, res *http.Response) {
	announced := w.Header()["Trailer"]
	for name, values := range res.Trailer {
		if !slices.Contains(announced, name) {
			name = http.TrailerPrefix + name
		}
		w.Header()[name] = values
	}
}

// stream passes an endless answer on as it comes.
func (f *forwarder) stream(w http.ResponseWriter, r *http.Request, res *http.Response) {
	rc := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	// The header first: a client waits for it before there is an event.
	err := flush(rc)
	for err == nil {
		var n int
		n, err = res.Body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
			if ferr := flush(rc); ferr != nil {
				return
			}
		}
	}
	if failure, ok := errors.AsType[*SendError](err); ok {
		f.brokenOff(r, failure)
	}
	f.end(w, res)
}

// flush sends what is written, where the writer can.
func flush(rc *http.ResponseController) error {
	if err := rc.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// brokenOff ends an answer that broke off after its beginning went out. The one
// thing that still tells the client is the end of its connection.
func (f *forwarder) brokenOff(r *http.Request, err error) {
	f.log.Error("an answer broke off while it went out",
		"method", r.Method, "path", r.URL.Path, "error", cause(r.Context(), err))
	panic(http.ErrAbortHandler)
}

// writerOnly hides ReadFrom: with it, the middleware could not tell an answer that
// breaks off from one that ends.
type writerOnly struct{ io.Writer }

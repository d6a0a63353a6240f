package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/umavez/umavez/umavezhttp"
)

// identity is what the source said of a request's caller, on its way to the
// middleware, which answers for the error.
type identity struct {
	principal string
	err       error
}

type identityKey struct{}

// identify asks who is calling, for requests whose key will count. Those without
// one run unprotected and are for the upstream alone to judge. It returns false
// when it has answered itself.
func (p *Proxy) identify(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if !p.hasKey(r) {
		return r, true
	}
	return p.identifyCaller(w, r)
}

// identifyCaller asks who is calling, whatever the request.
func (p *Proxy) identifyCaller(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	var id identity
	id.principal, id.err = p.source.Principal(r)
	if refused, ok := errors.AsType[*Refused](id.err); ok {
		h := w.Header()
		for name, values := range refused.Header {
			h[name] = values
		}
		w.WriteHeader(refused.Status)
		_, _ = w.Write(refused.Body) // a client that has left is refused too
		return nil, false
	}
	if id.err != nil && r.Context().Err() == nil {
		// What anybody can cause must not fill the log; what is wrong with the
		// source must be seen.
		level := slog.LevelWarn
		if errors.Is(id.err, umavezhttp.ErrUnauthenticated) {
			level = slog.LevelDebug
		}
		p.log.Log(r.Context(), level, "a caller was not identified", "method", r.Method, "path", r.URL.Path, "error", id.err)
	}
	return r.WithContext(context.WithValue(r.Context(), identityKey{}, &id)), true
}

// errNotAsked cannot happen: who is calling is asked before the middleware runs.
// Were it to, nobody's key is better than anybody's.
var errNotAsked = errors.New("umavez: the caller was not asked for")

// identified is the umavezhttp.Principal of the sidecar.
func identified(r *http.Request) (string, error) {
	id, ok := r.Context().Value(identityKey{}).(*identity)
	if !ok {
		return "", errNotAsked
	}
	return id.principal, id.err
}

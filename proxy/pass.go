package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

// passThrough forwards what is not protected: requests that match no route, and
// those of a route that need no key and have none. It streams both ways, lets
// WebSockets, gRPC and trailers through (rule P9), and leaves keys as they are
// (rule K1). Its transport repeats nothing either.
func passThrough(t *transport, l *slog.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Transport: t,
		Rewrite: func(pr *httputil.ProxyRequest) {
			t.target.aim(pr.Out, pr.In.URL)
			// The same map: the server fills it at the end of the body.
			pr.Out.Trailer = pr.In.Trailer
			// ReverseProxy takes these away; arrive has made them trustworthy.
			for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if lines := pr.In.Header[name]; len(lines) > 0 {
					pr.Out.Header[name] = slices.Clone(lines)
				}
			}
			dropSmuggling(pr.Out.Header)
		},
		ModifyResponse: func(res *http.Response) error {
			res.Header.Del(wire.IdempotencyOutcome) // it is for the sidecar (rule A6)
			return nil
		},
		FlushInterval: -1, // as it comes
		ErrorHandler:  func(w http.ResponseWriter, r *http.Request, err error) { passFailed(l, w, r, err) },
		ErrorLog:      slogLogger(l),
	}
}

// dropSmuggling refuses to switch to a protocol that carries HTTP: requests in
// there would reach the upstream past the sidecar, enrolled routes included. The
// upstream then answers in the protocol that it has. HTTP/2 without TLS works by
// prior knowledge, where the sidecar sees each request.
func dropSmuggling(h http.Header) {
	for _, line := range h["Upgrade"] {
		for protocol := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(protocol)), "/")
			if name != "h2c" && name != "h2" && name != "http" && name != "tls" {
				continue
			}
			delete(h, "Upgrade")
			delete(h, "Connection")
			delete(h, "Http2-Settings")
			return
		}
	}
}

// passFailed answers an unprotected request that got no answer. No document of
// ours is due here: the status is what any proxy says.
func passFailed(l *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		// The client has left. Nobody reads this; it only must not look like a success.
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	status := http.StatusBadGateway
	if failure, ok := errors.AsType[*SendError](err); ok && failure.Timeout && failure.Written {
		status = http.StatusGatewayTimeout
	}
	l.Warn("an unprotected request got no answer", "method", r.Method, "path", r.URL.Path, "error", err)
	w.WriteHeader(status)
}

// slogLogger lets ReverseProxy's own remarks go where ours go.
func slogLogger(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelInfo) }

// patientBody bounds the pauses in a request's body. The limit is set anew at
// each read, so what is large may take its time, and what has stopped may not.
type patientBody struct {
	io.ReadCloser
	rc    *http.ResponseController
	pause time.Duration
	now   func() time.Time
}

// Read reads, within the limit.
func (b *patientBody) Read(p []byte) (int, error) {
	// Where deadlines are not supported there is none.
	_ = b.rc.SetReadDeadline(b.now().Add(b.pause))
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// It must not stay: net/http waits on the same connection for the
		// client's leaving, and would take a deadline that passes for that.
		// After any other end it must: net/http reads what is left of a body
		// before it answers, and would wait for ever.
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

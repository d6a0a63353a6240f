package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

// CORS lets pages of other origins call the enrolled routes (rule P7): their
// browsers must be told that they may send a key and read what the sidecar says.
// It covers the sidecar's own documents, which the application does not see.
// Where the application's answer speaks for itself, it is left alone.
type CORS struct {
	// Origins may call: "https://loja.example", or "*" for any. Empty: CORS is
	// the application's alone.
	Origins []string
	// Credentials allows requests with cookies. Not with "*", which would let
	// any page act for whoever visits it.
	Credentials bool
	// MaxAge is how long a browser may remember a preflight. Default 10 min.
	MaxAge time.Duration
}

// exposed are the headers that a page needs in order to go on after an answer.
const exposed = wire.IdempotencyKey + ", " + wire.IdempotentReplayed + ", " +
	wire.IdempotencyStatus + ", " + wire.RetryAfter + ", Location"

// check refuses origins that no browser sends: they would never match.
func (c CORS) check() (CORS, error) {
	if c.MaxAge <= 0 {
		c.MaxAge = 10 * time.Minute
	}
	c.Origins = slices.Clone(c.Origins)
	for i, origin := range c.Origins {
		if origin == "*" {
			if c.Credentials {
				return c, fmt.Errorf(`umavez: CORS: credentials cannot go with the origin "*"`)
			}
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			return c, fmt.Errorf("umavez: CORS: an origin is SCHEME://HOST[:PORT] and nothing more, unlike %q", origin)
		}
		c.Origins[i] = strings.ToLower(origin)
	}
	return c, nil
}

// origin returns the request's Origin if it may call, or "".
func (c *CORS) origin(r *http.Request) string {
	origin := r.Header.Get("Origin")
	if origin == "" || len(c.Origins) == 0 {
		return ""
	}
	if slices.Contains(c.Origins, "*") || slices.Contains(c.Origins, strings.ToLower(origin)) {
		return origin
	}
	return ""
}

// isPreflight reports whether a browser asks if it may send another request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers for an enrolled route. What headers the page wants to send
// is for the application to judge, when they come.
func (c *CORS) preflight(w http.ResponseWriter, r *http.Request, origin string) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
	if wanted := r.Header["Access-Control-Request-Headers"]; len(wanted) > 0 {
		h["Access-Control-Allow-Headers"] = slices.Clone(wanted)
	}
	if c.Credentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	h.Set("Access-Control-Max-Age", strconv.Itoa(int(c.MaxAge/time.Second)))
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
}

// corsWriter adds what the page's browser needs just before an answer's header
// goes out: only then is it known what the application has said itself.
type corsWriter struct {
	http.ResponseWriter
	cors   *CORS
	origin string
	wrote  bool
}

// WriteHeader adds the headers to a final answer.
func (w *corsWriter) WriteHeader(code int) {
	if !w.wrote && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.wrote = true
		w.decorate()
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write writes the header first, as net/http does.
func (w *corsWriter) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController. It is here, and not left to Unwrap,
// because flushing sends the header.
func (w *corsWriter) FlushError() error {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is FlushError for those who look for a http.Flusher.
func (w *corsWriter) Flush() { _ = w.FlushError() }

// Unwrap is where http.ResponseController finds the rest.
func (w *corsWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *corsWriter) decorate() {
	h := w.Header()
	if len(h["Access-Control-Allow-Origin"]) == 0 {
		h.Set("Access-Control-Allow-Origin", w.origin)
		if w.cors.Credentials {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		// The answer depends on it now, whatever the application thinks.
		h["Vary"] = append(slices.Clone(h["Vary"]), "Origin")
	}
	h["Access-Control-Expose-Headers"] = append(slices.Clone(h["Access-Control-Expose-Headers"]), exposed)
}

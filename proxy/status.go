package proxy

import (
	"net/http"
	"strings"
)

// statusPath is below which callers are told what became of their keys. While
// Options.Status is off it is like every other path, and goes to the upstream.
const statusPath = "/.umavez/keys/"

// asksStatus reports whether a request is for the sidecar itself: whatever its
// method, so that no key ends up in an upstream's log.
func (p *Proxy) asksStatus(r *http.Request) bool {
	if p.status == nil {
		return false
	}
	key, ok := strings.CutPrefix(r.URL.EscapedPath(), statusPath)
	return ok && key != "" && !strings.Contains(key, "/")
}

// serveStatus tells a caller about a key of its own. The caller is asked for as
// for an operation; the key stands in the path, so nothing else is looked at.
func (p *Proxy) serveStatus(w http.ResponseWriter, r *http.Request) {
	if origin := p.cors.origin(r); origin != "" {
		w = &corsWriter{ResponseWriter: w, cors: &p.cors, origin: origin}
	}
	if r, ok := p.identifyCaller(w, p.arrive(w, r)); ok {
		p.status.ServeHTTP(w, r)
	}
}

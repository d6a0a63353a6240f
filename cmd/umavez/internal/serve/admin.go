package serve

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// readyTimeout bounds the question to the store that /readyz?store=1 asks.
const readyTimeout = 2 * time.Second

// health is what the admin address tells.
type health struct {
	draining atomic.Bool
	// pingStore asks the store for an answer, any answer.
	pingStore func(context.Context) error
}

// newAdmin builds the admin address's pages: health, readiness, metrics, and
// the keys. But for the keys, which are behind a token or closed, it has no
// authentication, so it is meant for loopback or the cluster's own network, and
// shows neither keys nor principals nor answers.
func newAdmin(h *health, m *metrics, keys http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", m.handler())
	mux.Handle("/keys", keys)
	mux.Handle("/keys/", keys)
	return mux
}

// ready is 503 only while draining. A store that is down does not make it so by
// default: requests without a key and replays from elsewhere still pass, and
// taking every replica out at once would turn a store's fault into an outage.
// ?store=1 asks the store too.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		say(w, http.StatusServiceUnavailable, "draining")
		return
	}
	if r.URL.Query().Get("store") != "1" {
		say(w, http.StatusOK, "ready")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if h.pingStore(ctx) != nil {
		// The cause is the log's: a store's error text may tell of its inside.
		say(w, http.StatusServiceUnavailable, "the store does not answer")
		return
	}
	say(w, http.StatusOK, "ready, and the store answers")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

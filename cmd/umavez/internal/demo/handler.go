package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// This file is the board over HTTP:
//
//	GET  /             the page
//	GET  /api/state    a View
//	GET  /api/events   a View as a server-sent event, now and whenever it changes
//	POST /api/start    {"withoutKeys": false}: a new world
//	POST /api/pay      {"trouble": "none"}, "twice", "drop" or "kill": a payment
//	POST /api/retry    {"key": "pedido-1"}: the same once more
//	POST /api/settle   {"key": "pedido-1"}: an operator asks the gateway
//
// A POST is answered 202 and {"key": …} at once; what comes of it is in the View.
// 409: something else is under way. 400 and 404: it makes no sense.

// NewHandler returns the board's pages and its API.
func NewHandler(b *Board) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, b.look(r.Context()))
	})
	mux.HandleFunc("GET /api/events", b.serveEvents)
	mux.HandleFunc("POST /api/start", b.post(func(in command) (string, error) { return "", b.Start(in.WithoutKeys) }))
	mux.HandleFunc("POST /api/pay", b.post(func(in command) (string, error) { return b.Pay(in.Trouble) }))
	mux.HandleFunc("POST /api/retry", b.post(func(in command) (string, error) { return in.Key, b.Retry(in.Key) }))
	mux.HandleFunc("POST /api/settle", b.post(func(in command) (string, error) { return in.Key, b.Settle(in.Key) }))
	return onlyOurs(http.NewCrossOriginProtection().Handler(mux))
}

// onlyOurs refuses a host with a name that is not localhost: a page of another
// site may have its own name lead here.
func onlyOurs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "this host is not served here", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// command is what a POST says.
type command struct {
	WithoutKeys bool   `json:"withoutKeys"`
	Trouble     string `json:"trouble"`
	Key         string `json:"key"`
}

// maxCommand bounds a command, in bytes.
const maxCommand = 1 << 10

func (b *Board) post(f func(command) (key string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in command
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommand))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "umavez: demo: " + err.Error()})
			return
		}
		key, err := f(in)
		status := http.StatusAccepted
		switch {
		case err == nil:
			writeJSON(w, status, map[string]string{"key": key})
			return
		case errors.Is(err, errTrouble):
			status = http.StatusBadRequest
		case errors.Is(err, errNoKey):
			status = http.StatusNotFound
		default:
			status = http.StatusConflict
		}
		writeJSON(w, status, map[string]string{"error": err.Error()})
	}
}

// eventsEvery is the pause between two looks for a page that watches: shorter than
// an eye notices, and nothing for a machine.
const eventsEvery = 150 * time.Millisecond

// serveEvents sends a View now, and whenever it has changed.
func (b *Board) serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	var last []byte
	for {
		text, err := json.Marshal(b.look(r.Context()))
		if err != nil || r.Context().Err() != nil || b.life.Err() != nil {
			return
		}
		if !bytes.Equal(text, last) {
			last = text
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
				return
			}
			if out.Flush() != nil {
				return
			}
		}
		if pause(r.Context(), eventsEvery) != nil {
			return
		}
	}
}

func writeJSON(w http.ResponseWriter, status int, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

package umavezhttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// Status is what a caller is told of one of its keys: the JSON of [Once.Status].
// All times are by the store's clock, in seconds with fractions, and not instants,
// so that no caller compares its own clock with the store's.
type Status struct {
	// State is vacant, running, lost, unknown, done or expired. A key is lost
	// when the next attempt with it runs, and unknown when it does not.
	State string `json:"state"`
	// Reason says why it is lost or unknown: killed, 5xx, parked and so on.
	Reason string `json:"reason,omitempty"`
	// Age is since when the key is in use, and Since for how long it has been in
	// this state. Missing when it is vacant.
	Age   *float64 `json:"age_seconds,omitempty"`
	Since *float64 `json:"since_seconds,omitempty"`
	// Answer is the status of the answer. Done only.
	Answer int `json:"answer_status,omitempty"`
	// Replayable says whether the same request gets that answer again. Done only.
	Replayable *bool `json:"replayable,omitempty"`
	// ExpiresIn is how long the answer is still kept. Done only.
	ExpiresIn *float64 `json:"expires_in_seconds,omitempty"`
	// NextTurn is when somebody looks into it next, if anybody does. Unknown only.
	NextTurn *float64 `json:"next_turn_in_seconds,omitempty"`
}

// Status returns a handler that tells callers where their keys stand, without
// sending the operation again. It is there where it is mounted, inside the same
// authentication as the operations:
//
//	mux.Handle("GET /.umavez/keys/{key}", auth(once.Status()))
//
// The key is the last segment of the path, percent-encoded and without quotes.
// Only GET and HEAD are answered: 200 with a [Status] as JSON, and 404 with one,
// too, for a key that nobody holds. A key of somebody else is one that nobody
// holds: a caller sees its own. Refusals are those of the operations.
func (o *Once) Status() http.Handler { return http.HandlerFunc(o.serveStatus) }

func (o *Once) serveStatus(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	principal, refusal, ok := o.opt.caller(r)
	if !ok {
		o.opt.refuse(w, r, refusal)
		return
	}
	name, ok := keyOfPath(r.URL)
	if !ok {
		o.opt.refuse(w, r, problemFor(wire.CodeInvalidKey))
		return
	}
	settings, err := o.space.settings(r.Context())
	if err != nil {
		logf(r, "umavez: settings of namespace %q: %v", o.opt.Namespace, err)
		o.opt.refuse(w, r, unavailable())
		return
	}
	scope := umavez.Scope{Namespace: o.opt.Namespace, Principal: principal}
	key := umavez.Key{Scope: scope, Name: name, Secret: settings.secret}
	rec, err := o.eng.Get(r.Context(), key)
	if err != nil && !errors.Is(err, umavez.ErrUnreadable) { // no answer is shown here
		logf(r, "umavez: record %v: %v", key.ID(), err)
		o.opt.refuse(w, r, unavailable())
		return
	}
	status := o.statusOf(&rec)
	text, _ := json.Marshal(status) // strings and numbers: it cannot fail
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if rec.State == umavez.Vacant {
		w.WriteHeader(http.StatusNotFound)
	}
	if r.Method != http.MethodHead {
		w.Write(append(text, '\n'))
	}
}

// keyOfPath reads the key in the last segment of a path, as it was sent: a slash
// in a key is %2F. ok is false when no request could have this key (rules K3, K6).
func keyOfPath(u *url.URL) (key string, ok bool) {
	path := u.EscapedPath()
	key, err := url.PathUnescape(path[strings.LastIndexByte(path, '/')+1:])
	return key, err == nil && wire.FormatKey(key) != ""
}

// statusOf is what a caller may know of its own record.
func (o *Once) statusOf(rec *umavez.Record) Status {
	s := Status{State: rec.State.String()}
	if rec.State == umavez.Vacant {
		return s
	}
	s.Age, s.Since = inSeconds(rec.Age), inSeconds(rec.Since)
	switch rec.State {
	case umavez.Lost:
		s.Reason = string(rec.Reason)
		if rec.Unknown() {
			s.State = "unknown"
		}
		if in, ok := o.eng.NextTurn(rec); ok {
			s.NextTurn = inSeconds(in)
		}
	case umavez.Done:
		s.ExpiresIn = inSeconds(rec.RetainLeft)
		v, err := openAnswer(rec.Answer)
		whole := err == nil && v.kept == KeptWhole
		s.Answer, s.Replayable = v.status, &whole
	case umavez.Vacant, umavez.Running, umavez.Expired:
	}
	return s
}

func inSeconds(d time.Duration) *float64 {
	s := max(d, 0).Seconds()
	return &s
}

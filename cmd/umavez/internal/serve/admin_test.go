package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
)

func get(h http.Handler, method, target string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, target, nil))
	return rec
}

func TestReadiness(t *testing.T) {
	var storeErr error
	h := &health{pingStore: func(context.Context) error { return storeErr }}
	admin := newAdmin(h, newMetrics(), keys.Closed())
	check := func(when, target string, want int) {
		t.Helper()
		if rec := get(admin, http.MethodGet, target); rec.Code != want {
			t.Errorf("%s: %s is %d, want %d", when, target, rec.Code, want)
		}
	}
	check("running", "/healthz", 200)
	check("running", "/readyz", 200)
	check("running", "/readyz?store=1", 200)
	storeErr = errors.New("disk I/O error in /var/secret")
	check("store down", "/healthz", 200)
	check("store down", "/readyz", 200)
	check("store down", "/readyz?store=1", 503)
	if body := get(admin, http.MethodGet, "/readyz?store=1").Body.String(); strings.Contains(body, "secret") {
		t.Errorf("the store's error text is shown: %s", body)
	}
	storeErr = nil
	h.draining.Store(true)
	check("draining", "/healthz", 200)
	check("draining", "/readyz", 503)
	check("draining", "/readyz?store=1", 503)
}

// TestAdminHasNothingElse: no other page, and no method that changes anything.
func TestAdminHasNothingElse(t *testing.T) {
	admin := newAdmin(&health{}, newMetrics(), keys.Closed())
	for _, target := range []string{"/", "/keys", "/debug/pprof/", "/healthz/", "/metrics/x"} {
		if rec := get(admin, http.MethodGet, target); rec.Code != http.StatusNotFound {
			t.Errorf("%s is %d, want 404", target, rec.Code)
		}
	}
	for _, target := range []string{"/healthz", "/readyz", "/metrics"} {
		if rec := get(admin, http.MethodPost, target); rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s is %d, want 405", target, rec.Code)
		}
	}
}

// TestEveryMomentHasACounter: a moment that is added to the engine must not go
// uncounted.
func TestEveryMomentHasACounter(t *testing.T) {
	m := newMetrics()
	names := map[string]umavez.Moment{}
	for _, moment := range umavez.Moments() {
		c, ok := momentCounters[moment]
		if !ok || c.help == "" {
			t.Errorf("%v has no counter", moment)
			continue
		}
		if before, twice := names[c.name]; twice {
			t.Errorf("%v and %v have the same counter %s", before, moment, c.name)
		}
		names[c.name] = moment
		m.observe(umavez.Observation{Moment: moment, Route: "POST /a", Policy: umavez.Rerunnable})
	}
	text := get(newAdmin(&health{}, m, keys.Closed()), http.MethodGet, "/metrics").Body.String()
	for name := range names {
		if want := name + `{policy="rerunnable",route="POST /a"} 1`; !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if !strings.Contains(text, `umavez_operation_seconds_count{end="completed",policy="rerunnable",route="POST /a"} 1`) {
		t.Error("metrics lack the operation's time")
	}
}

// TestCountersBeginAtZero: each counter of a configured route is there before
// anything happens, and nothing of a route that is not.
func TestCountersBeginAtZero(t *testing.T) {
	c, err := fromYAML(t, "upstream: http://127.0.0.1:3000\nprincipal: none\nroutes:\n"+
		"  - {route: POST /a, name: payments}\n"+
		"  - {route: POST /b, policy: rerunnable}\n")
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	m.begin(c.Routes)
	text := get(newAdmin(&health{}, m, keys.Closed()), http.MethodGet, "/metrics").Body.String()
	for _, counter := range momentCounters {
		for _, labels := range []string{`{policy="opaque",route="payments"}`, `{policy="rerunnable",route="POST /b"}`} {
			if want := "\n" + counter.name + labels + " 0\n"; !strings.Contains(text, want) {
				t.Errorf("metrics lack %s", want)
			}
		}
		if n := strings.Count(text, "\n"+counter.name+"{"); n != 2 {
			t.Errorf("%s has %d series, want 2", counter.name, n)
		}
	}
}

// TestMetricsHoldNoIDs: a label for each key would be a series for each key.
func TestMetricsHoldNoIDs(t *testing.T) {
	m := newMetrics()
	o := umavez.Observation{Moment: umavez.MomentStarted, ID: umavez.Key{Name: "k"}.ID(), Attempt: umavez.NewAttemptID()}
	m.observe(o)
	text := get(newAdmin(&health{}, m, keys.Closed()), http.MethodGet, "/metrics").Body.String()
	if strings.Contains(text, o.ID.String()) || strings.Contains(text, o.Attempt.String()) {
		t.Error("metrics name records or attempts")
	}
}

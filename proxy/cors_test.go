package proxy

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/umavez/umavez/internal/wire"
)

const loja = "https://loja.example"

// TestP7_Preflight: preflights for enrolled routes are answered here, before
// anybody is asked who is calling; others are the application's.
func TestP7_Preflight(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	a, s := newAsking(t, u.url)
	a.set(func(http.ResponseWriter, *http.Request) { t.Error("a preflight has no caller") })
	s.proxy.cors, _ = CORS{Origins: []string{"https://Loja.example"}, Credentials: true}.check()
	for _, c := range []struct {
		path, origin, method string
		ours                 bool
	}{
		{"/pay", loja, "POST", true},
		{"/pay/", loja, "POST", true},
		{"/pay", loja, "PUT", false},
		{"/other", loja, "POST", false},
		{"/pay", "https://loja.example.evil", "POST", false},
		{"/pay", "null", "POST", false},
		{"//pay", loja, "POST", false},
	} {
		got := s.send("OPTIONS", c.path, "", "Origin", c.origin, "Access-Control-Request-Method", c.method,
			"Access-Control-Request-Headers", "idempotency-key,content-type")
		if !c.ours {
			if got.status != http.StatusCreated {
				t.Errorf("%+v: got %v, want the application's answer", c, got)
			}
			continue
		}
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": c.origin, "Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Credentials": "true",
			"Access-Control-Allow-Headers": "idempotency-key,content-type", "Access-Control-Max-Age": "600",
			"Vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
		} {
			if got.status != http.StatusNoContent || got.header.Get(name) != want {
				t.Errorf("%+v: %d, %s is %q, want %q", c, got.status, name, got.header.Get(name), want)
			}
		}
	}
	if got := s.send("OPTIONS", "/pay", "", "Origin", loja); got.status != http.StatusCreated {
		t.Errorf("an OPTIONS that is no preflight got %v", got)
	}
}

// TestP7_CORSOfAnswers: first answers, replays and our own documents can be read
// by the page; what the application says itself is left as it is.
func TestP7_CORSOfAnswers(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Own") != "" {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Expose-Headers", "X-Total")
		}
		w.Header().Set("Vary", "Accept")
		paid(w, r)
	})
	s := newSidecar(t, up.url, func(o *Options) {
		o.CORS.Origins = []string{loja, "https://outra.example"}
		o.Routes[0].HTTP.Required = true
	})
	check := func(what string, got reply, origin string, vary ...string) {
		t.Helper()
		if lines := got.header["Access-Control-Allow-Origin"]; !reflect.DeepEqual(lines, []string{origin}) {
			t.Errorf("%s: allowed for %q, want %q", what, lines, origin)
		}
		if !reflect.DeepEqual(got.header["Vary"], vary) {
			t.Errorf("%s: varies by %q, want %q", what, got.header["Vary"], vary)
		}
		exposes := strings.Join(got.header["Access-Control-Expose-Headers"], ", ")
		for _, name := range []string{"Idempotency-Key", "Idempotent-Replayed", "Idempotency-Status", "Retry-After", "Location"} {
			if !strings.Contains(exposes, name) {
				t.Errorf("%s: exposes %q, not %s", what, exposes, name)
			}
		}
		if got.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: allows credentials", what)
		}
	}
	check("first", s.pay("k1", "x", "Origin", loja), loja, "Accept", "Origin")
	again := s.pay("k1", "x", "Origin", loja)
	check("replay", again, loja, "Accept", "Origin")
	if !again.replayed() {
		t.Errorf("the replay is %v", again)
	}
	check("replay to another origin", s.pay("k1", "x", "Origin", "https://outra.example"), "https://outra.example", "Accept", "Origin")
	missing := s.send("POST", "/pay", "x", "Origin", loja)
	check("missing key", missing, loja, "Origin")
	if missing.code() != wire.CodeMissingKey {
		t.Errorf("got %v, want missing-key", missing)
	}
	check("ambiguous", s.send("POST", "//pay", "x", "Origin", loja), loja, "Origin")
	own := s.pay("k2", "x", "Origin", loja, "Own", "yes")
	check("the application's own", own, "*", "Accept")
	if got := own.header["Access-Control-Expose-Headers"]; got[0] != "X-Total" {
		t.Errorf("exposes %q", got)
	}
	for _, origin := range []string{"https://evil.example", "http://loja.example", "null"} {
		if got := s.pay("k3", "x", "Origin", origin); got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may read %v", origin, got)
		}
	}
	if got := s.send("POST", "/other", "x", "Origin", loja); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a route that is not enrolled says %v", got)
	}
}

// TestP7_CORSStream: an answer that is flushed before it has an end has the headers too.
func TestP7_CORSStream(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush()
	})
	s := newSidecar(t, up.url, func(o *Options) { o.CORS.Origins = []string{"*"} })
	for _, key := range []string{"k1", ""} {
		fields := []string{"Origin", loja}
		if key != "" {
			fields = append(fields, keyName, key)
		}
		if got := s.send("POST", "/pay", "x", fields...); got.header.Get("Access-Control-Allow-Origin") != loja || got.status != http.StatusOK {
			t.Errorf("key %q: got %v", key, got)
		}
	}
}

// TestP7_CORSNonsense: is refused at the start.
func TestP7_CORSNonsense(t *testing.T) {
	for _, c := range []CORS{
		{Origins: []string{"*"}, Credentials: true},
		{Origins: []string{"loja.example"}},
		{Origins: []string{"https://loja.example/"}},
		{Origins: []string{"https://loja.example?x"}},
		{Origins: []string{""}},
	} {
		if _, err := c.check(); err == nil || !strings.HasPrefix(err.Error(), "umavez: CORS: ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

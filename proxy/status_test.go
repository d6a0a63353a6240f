package proxy

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"

	"github.com/umavez/umavez/umavezhttp"
)

// statusOf reads what a caller is told.
func statusOf(t *testing.T, r reply) (s umavezhttp.Status) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &s); err != nil {
		t.Fatalf("%v: %v", r, err)
	}
	return s
}

// TestStatus: a caller is told of its own keys, and of nobody else's, and
// nothing of it reaches the upstream.
func TestStatus(t *testing.T) {
	seen := make(chan string, 100)
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path
		w.WriteHeader(http.StatusCreated)
	})
	s := newSidecar(t, up.url, func(o *Options) {
		source, err := FromHeader("X-Tenant", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
		if err != nil {
			t.Fatal(err)
		}
		o.Principal, o.Status = source, true
		o.CORS = CORS{Origins: []string{"https://loja.example"}}
	})
	if got := s.send("POST", "/pay", "1", keyName, "a/b", "X-Tenant", "ana"); got.status != http.StatusCreated {
		t.Fatal(got)
	}
	<-seen
	if got := s.send("GET", "/.umavez/keys/a%2Fb", "", "X-Tenant", "ana"); got.status != http.StatusOK || statusOf(t, got).State != "done" || statusOf(t, got).Answer != http.StatusCreated {
		t.Errorf("her own key: %v", got)
	}
	for _, c := range []struct {
		what, method, path, tenant string
		want                       int
	}{
		{"somebody else", "GET", "/.umavez/keys/a%2Fb", "bia", http.StatusNotFound},
		{"nobody", "GET", "/.umavez/keys/a%2Fb", "", http.StatusUnauthorized},
		{"another method", "DELETE", "/.umavez/keys/a%2Fb", "ana", http.StatusMethodNotAllowed},
		{"no key", "GET", "/.umavez/keys/%C3%A9", "ana", http.StatusBadRequest},
	} {
		fields := []string{}
		if c.tenant != "" {
			fields = append(fields, "X-Tenant", c.tenant)
		}
		if got := s.send(c.method, c.path, "", fields...); got.status != c.want {
			t.Errorf("%s: %v, want %d", c.what, got, c.want)
		}
	}
	got := s.send("OPTIONS", "/.umavez/keys/k", "", "Origin", "https://loja.example", "Access-Control-Request-Method", "GET")
	if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("a page's preflight: %v", got)
	}
	if len(seen) > 0 {
		t.Errorf("the upstream saw %s", <-seen)
	}
	// What is beside the path is the upstream's.
	for _, path := range []string{"/.umavez/keys", "/.umavez/keys/", "/.umavez/keys/a/b", "/.umavez"} {
		if s.send("GET", path, ""); len(seen) != 1 {
			t.Errorf("%s did not reach the upstream", path)
		} else {
			<-seen
		}
	}
}

// TestStatusOff: the path is the upstream's, as every other.
func TestStatusOff(t *testing.T) {
	up := newUpstream(t, "http", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s := newSidecar(t, up.url)
	if got := s.send("GET", "/.umavez/keys/k", ""); got.status != http.StatusTeapot {
		t.Errorf("%v, want the upstream's answer", got)
	}
}

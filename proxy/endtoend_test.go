package proxy

import (
	"net/http"
	"net/netip"
	"testing"
)

// TestP6_ConnectionTakesNothingOfOurs: a client cannot have the sidecar remove
// what it tells the upstream, by naming it in Connection; what else is named
// there goes.
func TestP6_ConnectionTakesNothingOfOurs(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	source, err := FromHeader("X-User", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	s := newSidecar(t, u.url, func(o *Options) { o.Principal = source })
	for _, path := range []string{"/pay", "/elsewhere"} {
		got := s.send("POST", path, "x", keyName, "abc", "X-User", "ana", "X-Mine", "gone", "Connection",
			"X-Mine, x-forwarded-for,X-Forwarded-Proto , X-Forwarded-Host", "Connection", "Idempotency-Key, x-user")
		if got.status != http.StatusCreated {
			t.Fatalf("%s: got %v", path, got)
		}
		r, _ := up.request()
		for name, want := range map[string]string{
			"Idempotency-Key": "abc", "X-User": "ana", "X-Mine": "",
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": s.addr,
		} {
			if have := r.Header.Get(name); have != want {
				t.Errorf("%s: the upstream got %s: %q, want %q", path, name, have, want)
			}
		}
	}
}

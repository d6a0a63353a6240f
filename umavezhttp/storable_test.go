package umavezhttp

import "testing"

func TestA7_Storable(t *testing.T) {
	for name, want := range map[string]bool{
		"Content-Type": true, "location": true, "X-Pedido": true, "Vary": true,
		"Content-Length": false, "date": false, "Set-Cookie": false, "Transfer-Encoding": false,
		"Retry-After": false, "access-control-allow-origin": false, "Idempotent-Replayed": false, "RateLimit-Limit": false,
	} {
		if Storable(name) != want {
			t.Errorf("Storable(%q) = %v, want %v", name, !want, want)
		}
	}
}

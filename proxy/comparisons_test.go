package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// TestF10_AcrossRoutes: a key of one route on another one is a key for another
// request, also where the two compare requests in different ways.
func TestF10_AcrossRoutes(t *testing.T) {
	book := newLedger()
	up := newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		book.act(r)
		w.WriteHeader(http.StatusCreated)
	})
	routes := []Route{
		{Pattern: "POST /pay", HTTP: umavezhttp.Route{Exclude: []string{"/cvv"}}},
		{Pattern: "PUT /order"},
		{Pattern: "POST loja.example/bill", HTTP: umavezhttp.Route{Raw: true, Headers: []string{"X-Version"}}},
	}
	s := newSidecar(t, up.url, func(o *Options) { o.Routes = routes })
	const body = `{"cvv":"123"}`
	send := func(i int, key string) reply {
		method, target, _ := strings.Cut(routes[i].Pattern, " ")
		host, path, _ := strings.Cut(target, "/")
		r := s.request(method, "/"+path, body, keyName, key, "Content-Type", "application/json")
		if host != "" {
			r.Host = host
		}
		got, err := s.do(r)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i, first := range routes {
		key := string(rune('a' + i))
		if got := send(i, key); got.status != http.StatusCreated {
			t.Fatalf("%s: %v", first.Pattern, got)
		}
		for j, second := range routes {
			got := send(j, key)
			switch {
			case i == j && !got.replayed():
				t.Errorf("%s again: %v", first.Pattern, got)
			case i != j && (got.status != http.StatusUnprocessableEntity || got.code() != wire.CodeKeyReused || !strings.Contains(got.body, `"path"`)):
				t.Errorf("%s, then %s: %v, want 422 key-reused that names the path", first.Pattern, second.Pattern, got)
			}
		}
		book.want(t, key, 1)
	}
}

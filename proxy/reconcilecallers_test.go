package proxy

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// toldApart has callers told apart, by a header.
func toldApart(t *testing.T) func(*Options) {
	t.Helper()
	from, err := FromHeader("X-Caller", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Principal = from }
}

// TestP12_TwoCallersOfOneKey: ana was charged with the key, and bia's attempt with
// the same key died before its charge. Asked by the key alone the gateway would
// show ana's charge, so New refuses that. With what is bia's own, bia gets no
// answer of ana's, and in the end a charge of her own.
func TestP12_TwoCallersOfOneKey(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	byKey := Options{
		Upstream: api.url, Routes: []Route{{Pattern: "POST /pay"}}, HTTP: umavezhttp.Options{Namespace: "loja"},
	}
	askedBy(g)(&byKey)
	toldApart(t)(&byKey)
	_, err := New(newEngine(t), byKey)
	if err == nil || !strings.Contains(err.Error(), `the route "POST /pay": reconcile.ask: two callers may use the same key`) {
		t.Errorf("New says %v", err)
	}
	s := newSidecarOver(t, store, umavez.Options{}, api.url, toldApart(t),
		askedBy(g, func(r *Reconcile) { r.Ask.URL += `&amount={{field "/valor"}}` }))
	g.answers = func(w http.ResponseWriter, r *http.Request) {
		found := slices.DeleteFunc(g.of(r.URL.Query().Get("reference")), func(c charge) bool {
			return strconv.Itoa(c.Amount) != r.URL.Query().Get("amount")
		})
		_ = json.NewEncoder(w).Encode(map[string]any{"data": found})
	}
	wantPaid(t, s.pay("k1", `{"valor":100}`, "X-Caller", "ana"), "g-1", false)
	api.diesBefore()
	wantUnknown(t, s.pay("k1", `{"valor":5}`, "X-Caller", "bia"))
	api.lives()
	store.pass(11 * time.Second)
	wantUnknown(t, s.pay("k1", `{"valor":5}`, "X-Caller", "bia"))
	store.pass(time.Hour)
	wantPaid(t, s.pay("k1", `{"valor":5}`, "X-Caller", "bia"), "g-2", false)
	if n := g.asked.Load(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

// TestP12_NobodyToldApart: a question by the key alone is right then, also where
// something is put around the Source.
func TestP12_NobodyToldApart(t *testing.T) {
	g := newGateway(t)
	for _, source := range []Source{NoPrincipal(), struct{ Source }{NoPrincipal()}} {
		o := Options{
			Upstream: g.url, Routes: []Route{{Pattern: "POST /pay"}}, Principal: source,
			HTTP: umavezhttp.Options{Namespace: "loja"},
		}
		askedBy(g)(&o)
		p, err := New(newEngine(t), o)
		if err != nil {
			t.Errorf("%T: %v", source, err)
			continue
		}
		p.Close()
	}
}

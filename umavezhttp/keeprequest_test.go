package umavezhttp_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// seen is what a handler sees of a request.
type seen struct {
	Method, Target, Host, Proto, RemoteAddr, Pattern, ID, Rest string
	URL                                                        string
	Header, Trailer                                            http.Header
	Length                                                     int64
	Body                                                       string
}

func see(r *http.Request) seen {
	body, _ := io.ReadAll(r.Body)
	return seen{
		r.Method, r.RequestURI, r.Host, r.Proto, r.RemoteAddr, r.Pattern, r.PathValue("id"), r.PathValue("rest"),
		fmt.Sprintf("%#v", *r.URL), r.Header.Clone(), r.Trailer.Clone(), r.ContentLength, string(body),
	}
}

// tenantKey is where authentication in these tests puts the caller.
type tenantKey struct{}

// TestR12_TheSameRequest: the completed operation sees what the lost one saw, but
// for the server around it, and what authentication knew is restored.
func TestR12_TheSameRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests []seen
		var tenants, completing []any
		s := completed(nil)
		s.http.Principal = func(r *http.Request) (string, error) { return r.Header.Get("X-Tenant"), nil }
		s.route.Withhold = []string{"x-tenant"}
		s.route.Restore = func(r *http.Request, principal string) (context.Context, error) {
			return context.WithValue(r.Context(), tenantKey{}, principal), nil
		}
		operation := s.once(t).Rerunnable(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests = append(requests, see(r))
			tenants = append(tenants, r.Context().Value(tenantKey{}))
			completing = append(completing, umavez.Completing(r.Context()))
			if len(requests) == 1 {
				panic(http.ErrAbortHandler)
			}
			if r.Context().Value(http.ServerContextKey) != nil || r.Context().Err() != nil {
				t.Error("there is a server in the context, or it has ended")
			}
			pay(w, r)
		}))
		mux := http.NewServeMux()
		mux.HandleFunc("POST /lojas/{id}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
			ctx := context.WithValue(r.Context(), tenantKey{}, r.Header.Get("X-Tenant"))
			operation.ServeHTTP(w, r.WithContext(ctx))
		})
		request := func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/lojas/a%2Fb/x/y?q=1&q=2", strings.NewReader(payment))
			r.Host, r.RemoteAddr, r.ContentLength = "loja.example", "192.0.2.7:4242", -1
			r.Header = http.Header{
				"Idempotency-Key": {`"k 1"`}, "X-Tenant": {"acme"}, "X-Two": {"a, b", "c"}, "Content-Type": {"application/json"},
				"Authorization": {"Bearer secret"}, "Cookie": {"s=secret"}, "Proxy-Authorization": {"secret"},
				"Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Te": {"trailers"},
			}
			r.Trailer = http.Header{"X-Sum": {"1"}}
			return r
		}
		mustPanic(t, func() { serve(mux, request()) })
		elapse(2 * time.Minute)
		if len(requests) != 2 || !reflect.DeepEqual(requests[0], requests[1]) {
			t.Fatalf("saw %+v", requests)
		}
		first := requests[0]
		if first.Body != payment || first.ID != "a/b" || first.Rest != "x/y" || first.Length != -1 {
			t.Errorf("saw %+v", first)
		}
		shown := http.Header{"Idempotency-Key": {`"k 1"`}, "X-Two": {"a, b", "c"}, "Content-Type": {"application/json"}}
		if !reflect.DeepEqual(first.Header, shown) {
			t.Errorf("was shown the header %v", first.Header)
		}
		if fmt.Sprint(tenants, completing) != "[acme acme] [false true]" {
			t.Errorf("tenants %v, completing %v", tenants, completing)
		}
		if got := serve(mux, request()); !got.replayed() || got.status != 201 {
			t.Errorf("the retry: %v", got)
		}
	})
}

// TestR12_WithASealer: what is sealed is kept and shown whole, credentials too.
func TestR12_WithASealer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var headers []string
		store := memstore.New(memstore.Options{})
		s := completed(store)
		s.engine.Sealer = newRing(t)
		s.route.PlainRequests = false
		h := s.once(t).Rerunnable(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			headers = append(headers, r.Header.Get("Authorization"))
			if len(headers) == 1 {
				panic(http.ErrAbortHandler)
			}
		}))
		mustPanic(t, func() { post(h, "k", "Authorization", "Bearer secret") })
		for _, kept := range requestsIn(t, store) {
			if len(kept) == 0 || strings.Contains(string(kept), "secret") {
				t.Errorf("the store has %q", kept)
			}
		}
		elapse(2 * time.Minute)
		if fmt.Sprint(headers) != "[Bearer secret Bearer secret]" {
			t.Errorf("saw %q", headers)
		}
	})
}

// requestsIn are the kept requests of a store, by record.
func requestsIn(t *testing.T, store *memstore.Store) map[umavez.ID][]byte {
	t.Helper()
	requests := map[umavez.ID][]byte{}
	_, err := store.Rewrite(t.Context(), umavez.ID{}, 100, func(id umavez.ID, rec *umavez.Record) error {
		requests[id] = rec.Request
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// TestR12_MovedRequest: a request that somebody moved to another record, or that
// is damaged, is not completed under that record's key.
func TestR12_MovedRequest(t *testing.T) {
	for name, bend := range map[string]func(others [][]byte, own []byte) []byte{
		"moved": func(others [][]byte, own []byte) []byte {
			for _, other := range others {
				if string(other) != string(own) {
					return other
				}
			}
			return nil
		},
		"damaged": func(_ [][]byte, own []byte) []byte { return own[:len(own)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int64
				store := memstore.New(memstore.Options{})
				h := completed(store).once(t).Rerunnable(counted(&runs, func(http.ResponseWriter, *http.Request) {
					panic(http.ErrAbortHandler)
				}))
				for _, key := range []string{"one", "two"} {
					mustPanic(t, func() { post(h, key) })
				}
				requests := slices.Collect(maps.Values(requestsIn(t, store)))
				_, err := store.Rewrite(t.Context(), umavez.ID{}, 10, func(_ umavez.ID, rec *umavez.Record) error {
					rec.Request = bend(requests, rec.Request)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				elapse(9 * time.Minute)
				if runs.Load() != 2 {
					t.Errorf("ran %d times", runs.Load())
				}
			})
		})
	}
}

// TestR12_Unfit: a route whose requests may not be kept, or could not be found
// again, is refused at wiring, and says why.
func TestR12_Unfit(t *testing.T) {
	once := setup{}.once(t)
	for want, rt := range map[string]umavezhttp.Route{
		"needs a Route.Name":       {KeepRequest: true, PlainRequests: true},
		"give the engine a Sealer": {Name: "r", KeepRequest: true},
		"has no KeepRequest":       {Name: "r", PlainRequests: true},
		"the route has no Keep":    {Name: "r", CompleteAfter: time.Second},
		"CompleteTries is neg":     {Name: "r", KeepRequest: true, PlainRequests: true, CompleteTries: -1},
		"no header name":           {Name: "r", KeepRequest: true, PlainRequests: true, Withhold: []string{"a b"}},
	} {
		if _, err := once.With(rt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error that says %q", rt, err, want)
		}
	}
	if _, err := once.With(umavezhttp.Route{Restore: func(*http.Request, string) (context.Context, error) { return nil, nil }}); err == nil {
		t.Error("took Restore without KeepRequest")
	}
	kept, err := once.With(umavezhttp.Route{Name: "r", KeepRequest: true, PlainRequests: true})
	if err != nil {
		t.Fatal(err)
	}
	kept.Stepped(http.HandlerFunc(pay))
	if got := fmt.Sprint(mustPanic(t, func() { kept.Rerunnable(http.HandlerFunc(pay)) })); !strings.Contains(got, `route "r"`) {
		t.Errorf("a second handler of one route: %v", got)
	}
}

// TestR12_OpaqueNeedsAReconciler: an opaque operation is never completed, so its
// request is kept for a reconciler, or not at all.
func TestR12_OpaqueNeedsAReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		once := completed(nil).once(t)
		h := once.Opaque(lostThen(&runs, pay))
		if err := once.Open(t.Context()); err == nil || !strings.Contains(err.Error(), `["pagar"]`) {
			t.Errorf("Open: %v", err)
		}
		var got umavezhttp.Request
		o := &oracle{say: func(_ int64, l umavez.LostRecord) (umavez.Verdict, error) {
			return umavez.StillUnknown(), got.UnmarshalBinary(l.Request)
		}}
		mustPanic(t, func() { post(h, "before") })
		h, err := once.Reconcile(h, umavez.Reconciler{Ask: o.Ask})
		if err != nil {
			t.Fatal(err)
		}
		if err := once.Open(t.Context()); err != nil {
			t.Error(err)
		}
		runs.Store(0)
		mustPanic(t, func() { post(h, "k") })
		elapse(time.Hour)
		if string(got.Body) != payment || got.Key != "k" || runs.Load() != 1 {
			t.Errorf("the reconciler got %+v; ran %d times", got, runs.Load())
		}
	})
}

// TestR12_TooLarge: a request that would have to be kept and is over the cap is
// refused before anything runs. One that has an answer gets it, however long its
// header has become.
func TestR12_TooLarge(t *testing.T) {
	store := memstore.New(memstore.Options{})
	var runs atomic.Int64
	s := completed(store)
	s.works = false
	s.http.MaxKeptRequest = 1000
	h := s.once(t).Rerunnable(counted(&runs, pay))
	long := strings.Repeat("x", 1000)
	got := post(h, "k", "X-Long", long)
	got.mustRefuse(t, 413, "request-too-large")
	if !strings.Contains(got.problem().Detail, "header and body") || !strings.Contains(got.problem().Detail, "1000") {
		t.Errorf("it says %q", got.problem().Detail)
	}
	if runs.Load() != 0 || store.Len() != 0 {
		t.Fatalf("ran %d times, %d records", runs.Load(), store.Len())
	}
	first := post(h, "k")
	post(h, "k", "X-Long", long).mustEqual(t, first)
	if runs.Load() != 1 {
		t.Errorf("ran %d times", runs.Load())
	}
}

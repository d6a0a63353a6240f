package umavezhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// completed is a setup whose route "pagar" keeps its requests, and whose engine
// completes what is lost.
func completed(store umavez.Store) setup {
	return setup{
		store: store, works: true,
		route: umavezhttp.Route{Name: "pagar", KeepRequest: true, PlainRequests: true},
	}
}

// elapse lets time go by in a bubble, and what is due then be done.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// gateway is a card gateway that honours the key of a charge, as steps need it.
type gateway struct {
	mu      sync.Mutex
	charges map[string]int // by key: how often it was sent
}

func (g *gateway) charge(key string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.charges == nil {
		g.charges = map[string]int{}
	}
	g.charges[key]++
	return "charge-" + key[:8]
}

// TestR13_HundredPayments: a hundred payments are lost, each somewhere in its
// middle, and none of their clients comes back. Two processes finish them, each
// once.
func TestR13_HundredPayments(t *testing.T) {
	const n = 100
	synctest.Test(t, func(t *testing.T) {
		var gw gateway
		var firsts, completions sync.Map
		crash := func(r *http.Request, where int) {
			key := r.Header.Get("Idempotency-Key")
			i, err := strconv.Atoi(key[1:])
			if err != nil {
				t.Error(err)
			}
			if _, again := firsts.Load(key); !again && i%3 == where {
				firsts.Store(key, true)
				panic(http.ErrAbortHandler)
			}
		}
		operation := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if umavez.Completing(r.Context()) {
				runs, _ := completions.LoadOrStore(r.Header.Get("Idempotency-Key"), new(atomic.Int64))
				runs.(*atomic.Int64).Add(1)
			}
			crash(r, 0)
			charge, err := umavez.Step(r.Context(), "cobrar", func(_ context.Context, key string) (string, error) {
				charge := gw.charge(key)
				crash(r, 1)
				return charge, nil
			}, umavez.KeyHonouredFor(24*time.Hour))
			if err != nil {
				t.Error(err)
			}
			crash(r, 2)
			answers(201, charge)(w, r)
		})
		store := memstore.New(memstore.Options{})
		h := completed(store).once(t).Stepped(operation)
		completed(store).once(t).Stepped(operation) // the other process
		for i := range n {
			mustPanic(t, func() { post(h, fmt.Sprint("k", i)) })
		}
		elapse(3 * time.Minute)
		if len(gw.charges) != n {
			t.Errorf("%d payments were charged", len(gw.charges))
		}
		for i := range n {
			key := fmt.Sprint("k", i)
			got := post(h, key)
			if got.status != 201 || !got.replayed() || !strings.HasPrefix(got.body, "charge-") {
				t.Errorf("%s: %v", key, got)
			}
			if runs, _ := completions.Load(key); runs == nil || runs.(*atomic.Int64).Load() != 1 {
				t.Errorf("%s: completed %v times", key, runs)
			}
		}
	})
}

// TestR13_NotBeforeNorAfter: the client's own retries come first, and what is old
// is left alone.
func TestR13_NotBeforeNorAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var runs atomic.Int64
		var at []time.Duration
		s := completed(nil)
		s.route.CompleteAfter, s.route.CompleteUntil = 2*time.Minute, 5*time.Minute
		s.route.CompleteTries = 100
		h := s.once(t).Rerunnable(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			runs.Add(1)
			at = append(at, time.Since(began))
			panic(http.ErrAbortHandler)
		}))
		mustPanic(t, func() { post(h, "k") })
		elapse(time.Hour)
		if len(at) < 2 || at[1] < 2*time.Minute || at[len(at)-1] >= 5*time.Minute {
			t.Errorf("ran at %v", at)
		}
	})
}

// TestR13_Parked: an operation that fails again and again is set aside, and shown
// as unknown.
func TestR13_Parked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		s := completed(nil)
		s.route.CompleteAfter, s.route.CompleteUntil = time.Second, time.Hour
		once := s.once(t)
		h := once.Rerunnable(counted(&runs, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		mustPanic(t, func() { post(h, "k") })
		time.Sleep(30 * time.Minute)
		if runs.Load() != 5 {
			t.Errorf("ran %d times", runs.Load())
		}
		got := post(h, "k")
		got.mustRefuse(t, 409, "outcome-unknown")
		got.mustWait(t, "")
		if status := statusOf(t, once, "k"); status.State != "unknown" || status.Reason != "parked" {
			t.Errorf("status: %+v", status)
		}
	})
}

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
		s := completed(nil)
		s.engine.Sealer = bareSealer{}
		s.route.PlainRequests = false
		h := s.once(t).Rerunnable(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			headers = append(headers, r.Header.Get("Authorization"))
			if len(headers) == 1 {
				panic(http.ErrAbortHandler)
			}
		}))
		mustPanic(t, func() { post(h, "k", "Authorization", "Bearer t") })
		elapse(2 * time.Minute)
		if fmt.Sprint(headers) != "[Bearer t Bearer t]" {
			t.Errorf("saw %q", headers)
		}
	})
}

// bareSealer seals nothing; it is there to be there.
type bareSealer struct{}

func (bareSealer) Seal(text, _ []byte) ([]byte, error)   { return text, nil }
func (bareSealer) Open(sealed, _ []byte) ([]byte, error) { return sealed, nil }
func (bareSealer) Stale([]byte) bool                     { return false }

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

// alone is a handler that is completed, what it does to its connection or its
// goroutine, and what comes of it.
type alone struct {
	second http.HandlerFunc
	runs   int64
	status int
	code   string
}

func handlersAlone(t *testing.T) map[string]alone {
	return map[string]alone{
		"flush": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, "one ")
			w.(http.Flusher).Flush()
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(w, "two"); err != nil {
				t.Error(err)
			}
		}, 2, 201, ""},
		"hijack": {func(w http.ResponseWriter, r *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("Hijack: %v", err)
			}
			w.WriteHeader(201)
		}, 2, 201, ""},
		"endless stream": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
			<-r.Context().Done()
		}, 2, 409, "replay-unavailable"},
		"large": {func(w http.ResponseWriter, r *http.Request) {
			for range 3 << 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					t.Error(err)
				}
			}
		}, 2, 409, "replay-unavailable"},
		"panic":  {func(http.ResponseWriter, *http.Request) { panic("again") }, 3, 409, "outcome-unknown"},
		"goexit": {func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, 3, 409, "outcome-unknown"},
		"5xx":    {answers(503, "away"), 3, 503, ""},
	}
}

// TestR13_WithoutAServer: what a handler does to its connection or its goroutine
// harms neither the answer nor the worker.
func TestR13_WithoutAServer(t *testing.T) {
	quiet(t)
	for name, c := range handlersAlone(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs, failed atomic.Int64
				s := completed(nil)
				s.route.CompleteTries = 3
				s.engine.Observe = func(o umavez.Observation) {
					if o.Moment == umavez.MomentRecoveryFailed && o.Err != nil {
						failed.Add(1)
					}
				}
				h := s.once(t).Rerunnable(lostThen(&runs, func(w http.ResponseWriter, r *http.Request) {
					if !umavez.Completing(r.Context()) {
						t.Error("not completing")
					}
					c.second(w, r)
				}))
				mustPanic(t, func() { post(h, "k") })
				elapse(9 * time.Minute)
				if runs.Load() != c.runs {
					t.Fatalf("ran %d times, want %d", runs.Load(), c.runs)
				}
				got := post(h, "k")
				if got.status != c.status || got.problem().Code != c.code || c.code == "" && !got.replayed() {
					t.Errorf("got %v", got)
				}
				if want := map[int64]int64{2: 0, 3: 2}[c.runs]; failed.Load() != want {
					t.Errorf("%d failures observed", failed.Load())
				}
			})
		})
	}
}

// quiet keeps the log of panics that a test makes out of its output.
func quiet(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}

// TestR13_RestoreFails: without what authentication knew nothing runs, and it is
// tried again.
func TestR13_RestoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, restores atomic.Int64
		s := completed(nil)
		s.route.Restore = func(r *http.Request, _ string) (context.Context, error) {
			if restores.Add(1) == 1 {
				return nil, errors.New("the directory is away")
			}
			return r.Context(), nil
		}
		h := s.once(t).Rerunnable(lostThen(&runs, pay))
		mustPanic(t, func() { post(h, "k") })
		time.Sleep(9 * time.Minute)
		if restores.Load() != 2 || runs.Load() != 2 {
			t.Errorf("restored %d times, ran %d times", restores.Load(), runs.Load())
		}
		if got := post(h, "k"); got.status != 201 || !got.replayed() {
			t.Errorf("got %v", got)
		}
	})
}

// TestR13_ClientsLeave: over sockets, with clients that hang up in the middle of
// an operation that is then lost. Another process finishes all of them.
func TestR13_ClientsLeave(t *testing.T) {
	const n = 20
	store := memstore.New(memstore.Options{})
	arrived := make(chan struct{}, n)
	hangUp := make(chan struct{})
	lost, finished := make(chan string, n), make(chan string, n)
	front := completed(store)
	front.works = false
	server := listen(t, front.once(t).Rerunnable(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-hangUp
		defer func() { lost <- r.Header.Get("Idempotency-Key") }()
		panic(http.ErrAbortHandler)
	})), false)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var clients sync.WaitGroup
	for i := range n {
		r := socketRequest(ctx, t, server.URL, fmt.Sprint("k", i))
		clients.Go(func() {
			if resp, err := server.Client().Do(r); err == nil {
				resp.Body.Close()
				t.Errorf("an answer: %d", resp.StatusCode)
			}
		})
	}
	for range n {
		<-arrived
	}
	leave()
	clients.Wait()
	close(hangUp)
	for range n {
		<-lost
	}
	back := completed(store)
	back.engine.RecoverEvery = time.Millisecond
	back.route.CompleteAfter = time.Millisecond
	h := back.once(t).Rerunnable(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != payment || !umavez.Completing(r.Context()) {
			t.Errorf("completes %q, %v", body, err)
		}
		pay(w, r)
		finished <- r.Header.Get("Idempotency-Key")
	}))
	done := map[string]bool{}
	for range n {
		done[<-finished] = true
	}
	if len(done) != n {
		t.Errorf("finished %v", done)
	}
	for key := range done {
		r := socketRequest(t.Context(), t, server.URL, key)
		r.RequestURI = "/pagamentos"
		if got := serve(h, r); got.status != 201 || !got.replayed() {
			t.Errorf("%s: %v", key, got)
		}
	}
	if len(finished) != 0 {
		t.Error("one was finished twice")
	}
}

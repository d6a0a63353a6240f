package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// gateway charges cards. It knows no idempotency keys: a request that comes twice
// charges twice. It can be asked by the reference that a charge was sent with,
// and told to refuse one from now on.
type gateway struct {
	url string
	// wire, when set, is on which the next charge comes.
	wire atomic.Pointer[slowWire]
	// answers, when set, answers questions instead.
	answers func(w http.ResponseWriter, r *http.Request)

	asked, asking, mostAsking atomic.Int64

	mu        sync.Mutex
	charges   []charge
	cancelled map[string]bool
}

// slowWire is where a charge is that was sent and has not arrived.
type slowWire struct{ sent, arrive, over chan struct{} }

type charge struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	Amount    int    `json:"amount"`
	Status    string `json:"status"`
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{cancelled: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", g.charge)
	mux.HandleFunc("GET /charges", g.question)
	mux.HandleFunc("DELETE /references/{reference}", g.cancel)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

func (g *gateway) charge(w http.ResponseWriter, r *http.Request) {
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if slow := g.wire.Swap(nil); slow != nil {
		close(slow.sent)
		<-slow.arrive
		defer close(slow.over)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancelled[c.Reference] {
		http.Error(w, "cancelled", http.StatusConflict)
		return
	}
	c.ID, c.Status = "g-"+strconv.Itoa(len(g.charges)+1), "paid"
	g.charges = append(g.charges, c)
	_ = json.NewEncoder(w).Encode(c) // to a caller who may have died
}

func (g *gateway) question(w http.ResponseWriter, r *http.Request) {
	g.asked.Add(1)
	now := g.asking.Add(1)
	defer g.asking.Add(-1)
	for most := g.mostAsking.Load(); now > most && !g.mostAsking.CompareAndSwap(most, now); most = g.mostAsking.Load() {
	}
	if g.answers != nil {
		g.answers(w, r)
		return
	}
	g.list(w, r)
}

// list answers a question by the truth.
func (g *gateway) list(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": g.of(r.URL.Query().Get("reference"))})
}

// of returns the charges with a reference. It is what tests count by.
func (g *gateway) of(reference string) []charge {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := []charge{}
	for _, c := range g.charges {
		if c.Reference == reference {
			found = append(found, c)
		}
	}
	return found
}

func (g *gateway) cancel(w http.ResponseWriter, r *http.Request) {
	reference := r.PathValue("reference")
	if found := g.of(reference); len(found) > 0 {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(found[0])
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancelled[reference] = true
	w.WriteHeader(http.StatusNoContent)
}

// pay charges, as the upstream does it: with the client's key as the reference.
func (g *gateway) pay(key string, body []byte) (*http.Response, error) {
	var order struct{ Valor int }
	if err := json.Unmarshal(body, &order); err != nil {
		return nil, err
	}
	text, err := json.Marshal(charge{Reference: key, Amount: order.Valor})
	if err != nil {
		return nil, err
	}
	return http.Post(g.url+"/charges", "application/json", strings.NewReader(string(text)))
}

// shop is an upstream that charges, and can be made to die on the way.
type shop struct {
	*upstream
	gateway *gateway
	// before and after the charge.
	before, after atomic.Pointer[func(r *http.Request)]
	requests      atomic.Int64
}

func newShop(t *testing.T, g *gateway) *shop {
	s := &shop{gateway: g}
	s.upstream = newUpstream(t, "http", func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			cutConnection(r)
		}
		if f := s.before.Load(); f != nil {
			(*f)(r)
		}
		key := strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
		res, err := g.pay(key, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer res.Body.Close()
		if f := s.after.Load(); f != nil {
			(*f)(r)
		}
		if res.StatusCode != http.StatusOK {
			w.WriteHeader(http.StatusConflict)
			return
		}
		var c charge
		_ = json.NewDecoder(res.Body).Decode(&c)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"id": c.ID, "status": "aprovado"})
	})
	return s
}

// diesAfter and diesBefore make it die around the charge; lives ends that.
func (s *shop) diesAfter()  { f := func(r *http.Request) { cutConnection(r) }; s.after.Store(&f) }
func (s *shop) diesBefore() { f := func(r *http.Request) { cutConnection(r) }; s.before.Store(&f) }
func (s *shop) lives()      { s.before.Store(nil); s.after.Store(nil) }

// askedBy are the changes to a sidecar's options under which its route is
// reconciled against a gateway.
func askedBy(g *gateway, change ...func(*Reconcile)) func(*Options) {
	return func(o *Options) {
		r := asksByKey(change...)
		r.Ask.URL = strings.Replace(r.Ask.URL, "https://gw.example", g.url, 1)
		if r.Cancel != nil {
			r.Cancel.Ask.URL = strings.Replace(r.Cancel.Ask.URL, "https://gw.example", g.url, 1)
		}
		rt := &o.Routes[0]
		rt.HTTP.KeepRequest, rt.HTTP.PlainRequests, rt.Reconcile = true, true, r
		rt.HTTP.Wait = -1
	}
}

// cancels has the key refused where nothing was found.
func cancels(r *Reconcile) {
	r.Cancel = &Inquiry{
		Ask: Question{Method: "DELETE", URL: "https://gw.example/references/{{.Key}}"},
		Rules: []Rule{
			{Status: []string{"204"}, Verdict: VerdictCannotHappen, Proven: "the gateway refuses this reference from now on"},
			{
				Status: []string{"409"}, When: []Condition{{At: "/reference", OneOf: []any{"{{.Key}}"}}}, Verdict: VerdictHappened,
				Answer: &Answer{Status: 201, Body: `{"id": {{response "/id"}}, "status": "aprovado"}`},
			},
		},
	}
}

// timed is a store whose clock can be moved.
type timed struct {
	*memstore.Store
	ahead atomic.Int64
}

func newTimed() *timed {
	s := new(timed)
	s.Store = memstore.New(memstore.Options{Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }})
	return s
}

// pass lets time go by.
func (s *timed) pass(d time.Duration) { s.ahead.Add(int64(d)) }

// askings counts what an engine tells of its reconcilers.
type askings struct {
	mu     sync.Mutex
	errors []error
}

func (a *askings) observe(o umavez.Observation) {
	if o.Moment == umavez.MomentAsked {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.errors = append(a.errors, o.Err)
	}
}

func (a *askings) all() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]error(nil), a.errors...)
}

// until polls for a condition; only a failing test waits to the end.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// trail is the audit trail of an anonymous caller's key.
func (s *sidecar) trail(key string) []umavez.AuditEntry {
	s.t.Helper()
	anybody, err := umavezhttp.Anonymous(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	_, trail, err := s.eng.Inspect(context.Background(), s.key(anybody, key).ID())
	if err != nil {
		s.t.Fatal(err)
	}
	return trail
}

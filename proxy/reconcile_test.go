package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// wantUnknown fails unless the answer says that the outcome is not known.
func wantUnknown(t *testing.T, got reply) {
	t.Helper()
	if got.code() != wire.CodeOutcomeUnknown {
		t.Errorf("got %v, want outcome-unknown", got)
	}
}

// wantPaid fails unless the answer is that of the gateway's charge.
func wantPaid(t *testing.T, got reply, id string, replayed bool) {
	t.Helper()
	if got.status != http.StatusCreated || got.replayed() != replayed ||
		!strings.Contains(got.body, `"`+id+`"`) || !strings.Contains(got.body, `"aprovado"`) {
		t.Errorf("got %v, want 201 for %s, replayed: %v", got, id, replayed)
	}
}

// TestR4_ReconcilerFindsTheCharge: the upstream died after it had charged. The
// gateway knows of it, so the client's retry gets an answer, and nobody is charged
// again.
func TestR4_ReconcilerFindsTheCharge(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g))
	api.diesAfter()
	lost := s.pay("k1", `{"valor":100}`)
	wantUnknown(t, lost)
	if lost.status != http.StatusBadGateway || lost.header.Get(wire.RetryAfter) != "10" || lost.header.Get(wire.ShouldRetry) != "true" {
		t.Errorf("the attempt's own client is not told when somebody will know: %v", lost)
	}
	api.lives()

	// Not at once: a late owner may still complete.
	first := s.pay("k1", `{"valor":100}`)
	wantUnknown(t, first)
	if g.asked.Load() != 0 {
		t.Errorf("asked %d times right after the loss", g.asked.Load())
	}
	store.pass(11 * time.Second)
	for range 2 {
		got := s.pay("k1", `{"valor":100}`)
		wantPaid(t, got, "g-1", true)
		if got.header.Get("Content-Type") != "application/json" {
			t.Errorf("the answer is %v", got)
		}
	}
	if n := g.asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once: what is settled is settled", n)
	}
	if n := len(g.of("k1")); n != 1 || api.requests.Load() != 1 {
		t.Errorf("%d charges and %d requests, want one of each", n, api.requests.Load())
	}
	if trail := s.trail("k1"); len(trail) != 1 || trail[0].Action != umavez.ActionHappened || trail[0].Who != "reconciler" {
		t.Errorf("the audit trail says %+v", trail)
	}
	if got := s.pay("k1", `{"valor":101}`); got.code() != wire.CodeKeyReused {
		t.Errorf("another request with the key got %v", got)
	}
}

// TestReconcilerFindsNothing: it proves nothing until the quiet time is over;
// then the operation runs, once.
func TestReconcilerFindsNothing(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g))
	api.diesBefore()
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	api.lives()
	store.pass(11 * time.Second)
	got := s.pay("k1", `{"valor":100}`)
	wantUnknown(t, got)
	if got.header.Get(wire.RetryAfter) == "" {
		t.Errorf("somebody will ask again, and the client is not told: %v", got)
	}
	wantUnknown(t, s.pay("k1", `{"valor":100}`)) // in the pause
	if n := g.asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	store.pass(9 * time.Minute)
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	if n := g.asked.Load(); n != 2 || api.requests.Load() != 1 {
		t.Errorf("asked %d times, %d requests, before the quiet time is over", n, api.requests.Load())
	}
	store.pass(11 * time.Minute)
	wantPaid(t, s.pay("k1", `{"valor":100}`), "g-1", false)
	wantPaid(t, s.pay("k1", `{"valor":100}`), "g-1", true)
	if n := len(g.of("k1")); n != 1 {
		t.Errorf("%d charges, want one", n)
	}
}

// onTheWire makes the next charge arrive when the test says so, after the upstream
// that sent it has died.
func onTheWire(t *testing.T, g *gateway, api *shop) (arrive func()) {
	slow := &slowWire{sent: make(chan struct{}), arrive: make(chan struct{}), over: make(chan struct{})}
	g.wire.Store(slow)
	dies := func(r *http.Request) {
		go func() {
			if res, err := g.pay("k1", []byte(`{"valor":100}`)); err == nil {
				res.Body.Close()
			}
		}()
		<-slow.sent
		cutConnection(r)
	}
	api.before.Store(&dies)
	var once sync.Once
	arrive = func() {
		once.Do(func() { close(slow.arrive) })
		<-slow.over
	}
	t.Cleanup(func() { once.Do(func() { close(slow.arrive) }) })
	return arrive
}

// TestChargeThatComesLate: the gateway charges after it was asked for the first
// time. It is asked again, and there is one charge.
func TestChargeThatComesLate(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g))
	arrive := onTheWire(t, g, api)
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	api.lives()
	store.pass(11 * time.Second)
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	arrive()
	store.pass(time.Minute)
	wantPaid(t, s.pay("k1", `{"valor":100}`), "g-1", true)
	if n := len(g.of("k1")); n != 1 || g.asked.Load() != 2 || api.requests.Load() != 1 {
		t.Errorf("%d charges, asked %d times, %d requests", n, g.asked.Load(), api.requests.Load())
	}
}

// TestCancelledCharge: a gateway that refuses the reference from now on makes the
// verdict certain at once, and a charge that is still on its way is refused.
func TestCancelledCharge(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g, cancels))
	arrive := onTheWire(t, g, api)
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	api.lives()
	store.pass(11 * time.Second)
	got := s.pay("k1", `{"valor":100}`)
	if got.status != http.StatusConflict || got.replayed() {
		t.Errorf("the next attempt got %v, want the upstream's own 409", got)
	}
	arrive()
	if n := len(g.of("k1")); n != 0 {
		t.Errorf("%d charges with a reference that was cancelled", n)
	}
	if trail := s.trail("k1"); len(trail) != 1 || trail[0].Action != umavez.ActionCannotHappen ||
		!strings.Contains(trail[0].Why, "refuses this reference from now on") {
		t.Errorf("the audit trail says %+v", trail)
	}
}

// TestCancelledTooLate: the charge came between the question and the
// cancellation, whose answer says so.
func TestCancelledTooLate(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g, cancels))
	api.diesAfter()
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	g.answers = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[]}`) }
	store.pass(11 * time.Second)
	wantPaid(t, s.pay("k1", `{"valor":100}`), "g-1", true)
	if n := len(g.of("k1")); n != 1 {
		t.Errorf("%d charges, want one", n)
	}
}

// TestTwoSidecarsAskOneAtATime: they share a store.
func TestTwoSidecarsAskOneAtATime(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	one := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g))
	two := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g))
	api.diesAfter()
	wantUnknown(t, one.pay("k1", `{"valor":100}`))
	api.lives()
	store.pass(11 * time.Second)
	asked, answer := make(chan struct{}, 9), make(chan struct{})
	g.answers = func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-answer
		g.list(w, r)
	}
	first := make(chan reply, 1)
	go func() {
		got, err := one.do(one.request("POST", "/pay", `{"valor":100}`, keyName, "k1", "prefer", "wait=30"))
		if err != nil {
			t.Error(err)
		}
		first <- got
	}()
	<-asked
	for range 3 {
		got := two.pay("k1", `{"valor":100}`)
		wantUnknown(t, got)
		if got.header.Get(wire.RetryAfter) == "" {
			t.Errorf("the other sidecar does not say when to come again: %v", got)
		}
	}
	close(answer)
	wantPaid(t, <-first, "g-1", true)
	wantPaid(t, two.pay("k1", `{"valor":100}`), "g-1", true)
	if g.asked.Load() != 1 || g.mostAsking.Load() != 1 {
		t.Errorf("asked %d times, %d at once; want one", g.asked.Load(), g.mostAsking.Load())
	}
}

// TestReconcilerInTheBackground: no client comes back, and the key is known from
// the kept request alone.
func TestReconcilerInTheBackground(t *testing.T) {
	g := newGateway(t)
	api := newShop(t, g)
	s := newSidecarOver(t, newTimed(), umavez.Options{RecoverEvery: time.Millisecond}, api.url,
		askedBy(g, func(r *Reconcile) { r.After = time.Nanosecond }))
	api.diesAfter()
	wantUnknown(t, s.pay(`"a,b"`, `{"valor":100}`)) // a key that only quotes can spell
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.eng.Run(ctx) }()
	until(t, "settled", func() bool { return s.record("a,b").State == umavez.Done })
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	wantPaid(t, s.pay(`"a,b"`, `{"valor":100}`), "g-1", true)
}

// badGateway answers, or does not, and this is what the operator is told of it.
// Empty: it was an answer, without a verdict.
type badGateway struct {
	answers http.HandlerFunc
	want    string
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

const nothing = `{"data":[]}`

var badGateways = map[string]badGateway{
	"redirects for ever": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}, "redirected too often"},
	"redirects to nowhere": {say(http.StatusFound, nothing), "status 302 does not say"},
	"hangs":                {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	"hangs in the middle": {func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"data":[`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, "broke off"},
	"floods": {func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[`)
		for {
			if _, err := io.WriteString(w, strings.Repeat(" ", 4<<10)); err != nil {
				return
			}
		}
	}, "longer than 2000 bytes"},
	"floods within JSON": {say(200, nothing+strings.Repeat(" ", 2000)), "longer than 2000 bytes"},
	"breaks off": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, nothing)
	}, "broke off"},
	"dies":               {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "not answered"},
	"garbage":            {say(200, "<html>"), "no JSON document"},
	"nothing at all":     {say(200, ""), "no JSON document"},
	"two documents":      {say(200, nothing+nothing), "no JSON document"},
	"two members":        {say(200, `{"data":[],"data":[{"reference":"k1"}]}`), `two members "data"`},
	"500":                {say(500, nothing), "status 500 does not say"},
	"503":                {say(503, nothing), "status 503 does not say"},
	"401":                {say(401, nothing), "status 401 does not say"},
	"403":                {say(403, nothing), "status 403 does not say"},
	"429":                {say(429, nothing), "status 429 does not say"},
	"another's charge":   {say(200, `{"data":[{"reference":"k2","id":"x"}]}`), ""},
	"a number for a key": {say(200, `{"data":[{"reference":1,"id":"x"}]}`), ""},
	"404":                {say(404, nothing), ""},
	// None of these says that nothing was charged.
	"200 for an error":  {say(200, `{"error":"search is being rebuilt"}`), `"/data/0" is absent: there is no array at "/data"`},
	"null for a list":   {say(200, `{"data":null}`), `"/data/0" is absent: there is no array at "/data"`},
	"an object":         {say(200, `{"data":{}}`), `"/data/0" is absent: there is no array at "/data"`},
	"an empty object":   {say(200, `{}`), `"/data/0" is absent: there is no array at "/data"`},
	"a text":            {say(200, `"ok"`), `"/data/0" is absent: there is no array at "/data"`},
	"another document":  {say(200, `[]`), `"/data/0" is absent: there is no array at "/data"`},
	"null for a charge": {say(200, `{"data":[null]}`), ""},
	"no id":             {say(200, `{"data":[{"reference":"k1"}]}`), "the answer cannot be made: {{response \"/data/0/id\"}}: there is no such value"},
}

// TestBadGateways: whatever a gateway does but answer, the outcome stays unknown,
// nothing is run, and the operator is told why.
func TestBadGateways(t *testing.T) {
	var strayed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		strayed.Add(1)
		io.WriteString(w, nothing)
	}))
	defer elsewhere.Close()
	all := maps.Clone(badGateways)
	all["redirects elsewhere"] = badGateway{func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/charges?reference=k1", http.StatusFound)
	}, "redirected to another origin"}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			g, store, told := newGateway(t), newTimed(), new(askings)
			api := newShop(t, g)
			s := newSidecarOver(t, store, umavez.Options{Observe: told.observe}, api.url, askedBy(g, func(r *Reconcile) {
				r.MaxResponse = 2000
				if strings.HasPrefix(name, "hangs") {
					r.Timeout = 50 * time.Millisecond
				}
			}))
			api.diesAfter()
			wantUnknown(t, s.pay("k1", `{"valor":100}`))
			api.lives()
			g.answers = c.answers
			// Long after the quiet time, when CannotHappen would be believed.
			store.pass(time.Hour)
			wantUnknown(t, s.pay("k1", `{"valor":100}`))
			switch errs := told.all(); {
			case len(errs) != 1:
				t.Errorf("%d questions: %v", len(errs), errs)
			case c.want == "" && errs[0] != nil, c.want != "" && (errs[0] == nil || !strings.Contains(errs[0].Error(), c.want)):
				t.Errorf("told %v, want %q", errs[0], c.want)
			case errs[0] != nil && strings.Contains(errs[0].Error(), "reference=k1"):
				t.Errorf("the error tells what was asked for: %v", errs[0])
			}
			if rec := s.record("k1"); rec.State != umavez.Lost || len(s.trail("k1")) != 0 {
				t.Errorf("the record is %v, its trail %v", rec.State, s.trail("k1"))
			}
			if n := len(g.of("k1")); n != 1 || api.requests.Load() != 1 {
				t.Errorf("%d charges, %d requests", n, api.requests.Load())
			}
		})
	}
	if strayed.Load() != 0 {
		t.Errorf("another origin was asked %d times", strayed.Load())
	}
}

// TestRedirectWithinTheOrigin is followed.
func TestRedirectWithinTheOrigin(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g))
	api.diesAfter()
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	g.answers = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page") == "" {
			http.Redirect(w, r, r.URL.RequestURI()+"&page=1", http.StatusMovedPermanently)
			return
		}
		g.list(w, r)
	}
	store.pass(11 * time.Second)
	wantPaid(t, s.pay("k1", `{"valor":100}`), "g-1", true)
}

// TestHostileKeysAtTheGateway: each key asks about its own charge, and no key
// finds another one's.
func TestHostileKeysAtTheGateway(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g))
	api.diesAfter()
	keys := []string{"a/b", "a%2Fb", "a&reference=x", "x", "?", "#", "..", "{{.Key}}", "a=b", "+", "%", "<a>", "a'b", "a:b@c"}
	for _, key := range keys {
		wantUnknown(t, s.pay(key, `{"valor":100}`))
	}
	api.lives()
	store.pass(11 * time.Second)
	for i, key := range keys {
		wantPaid(t, s.pay(key, `{"valor":100}`), fmt.Sprintf("g-%d", i+1), true)
	}
}

// TestAnswerOfTheGateway: its body can be handed on as it is, and a route that
// keeps no bodies keeps none of these either.
func TestAnswerOfTheGateway(t *testing.T) {
	g, store := newGateway(t), newTimed()
	api := newShop(t, g)
	own := func(r *Reconcile) {
		r.Rules[0].Answer = &Answer{Status: 200, ResponseBody: true, Header: map[string]string{"Location": `/orders/{{response "/data/0/id"}}`}}
	}
	for _, bare := range []bool{false, true} {
		s := newSidecarOver(t, store, umavez.Options{}, api.url, askedBy(g, own), func(o *Options) {
			o.Routes[0].HTTP.NoBody = bare
			o.Routes[0].HTTP.Name = fmt.Sprint("bare ", bare)
		})
		key := fmt.Sprint("k", bare)
		api.diesAfter()
		wantUnknown(t, s.pay(key, `{"valor":100}`))
		store.pass(11 * time.Second)
		got := s.pay(key, `{"valor":100}`)
		id := g.of(key)[0].ID
		switch {
		case bare && (got.code() != wire.CodeReplayUnavailable || strings.Contains(got.body, `"reference"`) || !strings.Contains(got.body, "/orders/"+id)):
			t.Errorf("a route that keeps no body answers %v", got)
		case !bare && (got.status != 200 || !strings.Contains(got.body, `"reference":"`+key+`"`) ||
			got.header.Get("Location") != "/orders/"+id || got.header.Get("Content-Type") != "application/json"):
			t.Errorf("got %v, want the gateway's own answer", got)
		}
	}
}

var errNoQuestion = errors.New("no question")

// TestCancellationThatFails leaves the outcome unknown, also after the quiet time:
// what cannot be cancelled may still come.
func TestCancellationThatFails(t *testing.T) {
	g, store, told := newGateway(t), newTimed(), new(askings)
	api := newShop(t, g)
	var status atomic.Int64
	s := newSidecarOver(t, store, umavez.Options{Observe: told.observe}, api.url, askedBy(g, cancels, func(r *Reconcile) {
		r.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodDelete {
				if status.Load() == 0 {
					return nil, errNoQuestion
				}
				return &http.Response{StatusCode: int(status.Load()), Body: http.NoBody, Header: http.Header{}, Request: req}, nil
			}
			return http.DefaultTransport.RoundTrip(req)
		})
	}))
	api.diesBefore()
	wantUnknown(t, s.pay("k1", `{"valor":100}`))
	api.lives()
	for _, code := range []int64{0, 500, 202} {
		status.Store(code)
		store.pass(2 * time.Hour)
		wantUnknown(t, s.pay("k1", `{"valor":100}`))
	}
	errs := told.all()
	if len(errs) != 3 || !errors.Is(errs[0], errNoQuestion) || errs[1] == nil || errs[2] != nil {
		t.Errorf("told %v", errs)
	}
	if api.requests.Load() != 1 {
		t.Errorf("%d requests, want one", api.requests.Load())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

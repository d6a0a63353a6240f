package umavezhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// TestK1_OnlyWhatIsEnrolled: methods that are not enrolled pass, whatever their
// headers say, and nothing is stored.
func TestK1_OnlyWhatIsEnrolled(t *testing.T) {
	for _, c := range []struct {
		methods   []string
		protected string
	}{
		{nil, "POST PATCH"},
		{[]string{"PUT", "DELETE"}, "PUT DELETE"},
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "POST", "PATCH", "PUT", "DELETE"} {
			store := memstore.New(memstore.Options{})
			var runs atomic.Int64
			h := setup{store: store, route: umavezhttp.Route{Methods: c.methods}}.opaque(t, counted(&runs, pay))
			for range 2 {
				r := newRequest("k")
				r.Method = method
				serve(h, r)
			}
			once := strings.Contains(c.protected, method)
			if want := map[bool]int64{true: 1, false: 2}[once]; runs.Load() != want || (store.Len() > 0) != once {
				t.Errorf("%v, %s: ran %d times, %d records", c.methods, method, runs.Load(), store.Len())
			}
			if !once {
				r := newRequest(`"broken`)
				r.Method = method
				if got := serve(h, r); got.status != 201 {
					t.Errorf("%s with a malformed key: %v", method, got)
				}
			}
		}
	}
}

// TestK2_Required: without a key an operation runs unprotected, unless the route
// requires one; then the body is not even read (rule P8).
func TestK2_Required(t *testing.T) {
	var runs atomic.Int64
	h := setup{}.opaque(t, counted(&runs, pay))
	for range 2 {
		if got := post(h, ""); got.status != 201 || got.header["Idempotency-Key"] != nil {
			t.Errorf("optional: %v", got)
		}
	}
	if runs.Load() != 2 {
		t.Errorf("ran %d times", runs.Load())
	}
	h = setup{route: umavezhttp.Route{Required: true}}.opaque(t, counted(&runs, pay))
	for key, code := range map[string]string{"": "missing-key", `"`: "invalid-key"} {
		r := newRequest(key)
		r.Body = unreadable{t}
		serve(h, r).mustRefuse(t, 400, code)
	}
	if runs.Load() != 2 {
		t.Errorf("ran %d times", runs.Load())
	}
}

// unreadable is a body that nobody may read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (unreadable) Close() error { return nil }

// TestF1_NothingIsReadFromStrangers: whose key it is comes before everything.
func TestF1_NothingIsReadFromStrangers(t *testing.T) {
	for err, want := range map[error]struct {
		status int
		code   string
	}{
		umavezhttp.ErrUnauthenticated:   {401, "unauthenticated"},
		errors.New("secret: ldap down"): {503, "caller-unavailable"},
	} {
		store := memstore.New(memstore.Options{})
		stranger := func(*http.Request) (string, error) { return "", err }
		var runs atomic.Int64
		h := setup{store: store, http: umavezhttp.Options{Principal: stranger}}.opaque(t, counted(&runs, pay))
		r := newRequest("k")
		r.Body = unreadable{t}
		got := serve(h, r)
		got.mustRefuse(t, want.status, want.code)
		if runs.Load() != 0 || store.Len() != 0 || strings.Contains(got.body, "secret") {
			t.Errorf("ran %d times, %d records, %v", runs.Load(), store.Len(), got)
		}
	}
}

// TestF9_NothingRuns: a body over the cap, or one that breaks off, is refused,
// and leaves nothing behind.
func TestF9_NothingRuns(t *testing.T) {
	store := memstore.New(memstore.Options{})
	var runs atomic.Int64
	h := setup{store: store, http: umavezhttp.Options{MaxRequestBody: 10}}.opaque(t, counted(&runs, pay))
	post(h, "k").mustRefuse(t, 413, "request-too-large")
	r := newRequest("k")
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("{"), failingReader{})), -1
	serve(h, r).mustRefuse(t, 400, "request-incomplete")
	if runs.Load() != 0 || store.Len() != 0 {
		t.Errorf("ran %d times, %d records", runs.Load(), store.Len())
	}
}

// TestF9_ClientLeavesInTheBody: over a socket, a client that sends half a body
// leaves no key behind.
func TestF9_ClientLeavesInTheBody(t *testing.T) {
	store := memstore.New(memstore.Options{})
	var runs atomic.Int64
	done := make(chan struct{})
	h := setup{store: store}.opaque(t, counted(&runs, pay))
	server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		h.ServeHTTP(w, r)
	}), false)
	body, half := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	go func() {
		_, _ = half.Write([]byte(`{"valor":`)) // fails when the server has had enough
		half.CloseWithError(errors.New("the client crashes"))
	}()
	if resp, err := server.Client().Do(r); err == nil {
		resp.Body.Close()
		t.Error("the client sent its request whole")
	}
	<-done
	if runs.Load() != 0 || store.Len() != 0 {
		t.Errorf("ran %d times, %d records", runs.Load(), store.Len())
	}
}

// TestF10_WhileTheFirstRuns: another request under the key is refused at once,
// and the record, the first one and those who wait for it are untouched.
func TestF10_WhileTheFirstRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		h := setup{}.opaque(t, counted(&runs, taking(time.Second, pay)))
		first, waiter := make(chan reply, 1), make(chan reply, 1)
		go func() { first <- post(h, "k") }()
		synctest.Wait()
		go func() { waiter <- post(h, "k") }()
		synctest.Wait()
		began := time.Now()
		for _, edit := range []func(*http.Request){
			func(r *http.Request) { r.Method = http.MethodPatch },
			func(r *http.Request) { r.RequestURI = "/estornos" },
			func(r *http.Request) { r.RequestURI = "/pagamentos?moeda=EUR" },
			func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
			func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"valor":1}`)) },
		} {
			r := newRequest("k")
			edit(r)
			serve(h, r).mustRefuse(t, 422, "key-reused")
		}
		if time.Since(began) != 0 {
			t.Errorf("refused after %v", time.Since(began))
		}
		answer := <-first
		if (<-waiter).mustEqual(t, answer); answer.status != 201 || runs.Load() != 1 {
			t.Errorf("first: %v; ran %d times", answer, runs.Load())
		}
	})
}

// TestF3_RouteThatCompared: a record of a release that compared in another way
// is compared as it was then; without that way it is refused, and never run.
func TestF3_RouteThatComparedOtherwise(t *testing.T) {
	store := memstore.New(memstore.Options{})
	var runs atomic.Int64
	serveBy := func(rt umavezhttp.Route, key string) reply {
		return post(setup{store: store, route: rt}.opaque(t, counted(&runs, pay)), key)
	}
	before := umavezhttp.Route{Raw: true}
	first := serveBy(before, "k")
	serveBy(umavezhttp.Route{Formerly: []umavezhttp.Comparison{{Raw: true}}}, "k").mustEqual(t, first)
	got := serveBy(umavezhttp.Route{}, "k")
	got.mustRefuse(t, 409, "replay-unavailable")
	if runs.Load() != 1 {
		t.Errorf("ran %d times", runs.Load())
	}
}

// TestA5_LateOwner: a lost attempt of an opaque operation runs on, and its late
// answer counts.
func TestA5_LateOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		store := &faultyStore{Store: memstore.New(memstore.Options{}), before: func(op string) error {
			if op == "extend" && down.Load() {
				return errStoreDown
			}
			return nil
		}}
		down.Store(true)
		h := setup{store: store}.opaque(t, taking(time.Minute, pay))
		first := make(chan reply, 1)
		go func() { first <- post(h, "k") }()
		time.Sleep(30 * time.Second)
		post(h, "k").mustRefuse(t, 409, "outcome-unknown")
		answer := <-first
		if answer.status != 201 || answer.header["Idempotency-Status"] != nil {
			t.Errorf("first: %v", answer)
		}
		post(h, "k").mustEqual(t, answer)
	})
}

// TestWiring: nonsense is refused before any request meets it.
func TestWiring(t *testing.T) {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := umavezhttp.New(nil, umavezhttp.Options{Namespace: "n", Principal: umavezhttp.Anonymous}); err == nil {
		t.Error("took no engine")
	}
	if _, err := umavezhttp.New(eng, umavezhttp.Options{}); err == nil {
		t.Error("took no namespace")
	}
	once := setup{}.once(t)
	if _, err := once.With(umavezhttp.Route{Methods: []string{"GET"}}); err == nil {
		t.Error("took GET")
	}
	mustPanic(t, func() { once.Opaque(nil) })
	required, err := once.With(umavezhttp.Route{Required: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := required.With(umavezhttp.Route{})
	if err != nil {
		t.Fatal(err)
	}
	if got := post(again.Opaque(http.HandlerFunc(pay)), ""); got.status != 201 {
		t.Errorf("With took the route of the one it was called on: %v", got)
	}
	// What two of them made shares keys: the engine and namespace are one.
	w := httptest.NewRecorder()
	once.Opaque(http.HandlerFunc(pay)).ServeHTTP(w, newRequest("k"))
	if got := post(required.Opaque(http.HandlerFunc(pay)), "k"); !got.replayed() {
		t.Errorf("not the same key: %v", got)
	}
}

package umavezhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// The cases in which middlewares of this kind run an operation twice, answer one
// caller with another one's data, or lock a key for good. In each of them the
// operation here runs once.

// charges is an operation whose effect can be counted.
type charges struct{ n atomic.Int64 }

func (c *charges) handler(h http.HandlerFunc) http.HandlerFunc { return counted(&c.n, h) }

func (c *charges) mustBeOne(t *testing.T) {
	t.Helper()
	if n := c.n.Load(); n != 1 {
		t.Errorf("%d executions", n)
	}
}

func TestField_ConcurrentDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c charges
		h := setup{}.opaque(t, c.handler(taking(50*time.Millisecond, pay)))
		for _, r := range together(h, 100, "k") {
			if r.status != 201 {
				t.Errorf("got %v", r)
			}
		}
		c.mustBeOne(t)
	})
}

func TestField_PanicThenRetry(t *testing.T) {
	var c charges
	h := setup{}.opaque(t, c.handler(func(http.ResponseWriter, *http.Request) { panic("after the charge") }))
	mustPanic(t, func() { post(h, "k") })
	post(h, "k").mustRefuse(t, 409, "outcome-unknown")
	c.mustBeOne(t)
}

func TestField_OtherBody(t *testing.T) {
	var c charges
	h := setup{}.opaque(t, c.handler(pay))
	first := post(h, "k")
	r := newRequest("k")
	r.Body = io.NopCloser(strings.NewReader(`{"valor":9999}`))
	got := serve(h, r)
	got.mustRefuse(t, 422, "key-reused")
	if d := got.problem().Differs; len(d) != 1 || d[0] != "body" || strings.Contains(got.body, "1990") {
		t.Errorf("got %v", got)
	}
	post(h, "k").mustEqual(t, first)
	c.mustBeOne(t)
}

func TestField_OtherUser(t *testing.T) {
	var c charges
	user := func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	h := setup{http: umavezhttp.Options{Principal: user}}.opaque(t, c.handler(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: r.Header.Get("X-User")})
		io.WriteString(w, "for "+r.Header.Get("X-User"))
	}))
	for _, user := range []string{"ana", "bia"} {
		if got := post(h, "k", "X-User", user); got.body != "for "+user || got.replayed() {
			t.Errorf("%s: %v", user, got)
		}
		if got := post(h, "k", "X-User", user); got.body != "for "+user || !got.replayed() || got.header["Set-Cookie"] != nil {
			t.Errorf("%s again: %v", user, got)
		}
	}
	if c.n.Load() != 2 {
		t.Errorf("%d executions for two users", c.n.Load())
	}
}

func TestField_LargeAnswer(t *testing.T) {
	for _, size := range []int{2 << 20, 5 << 20} {
		var c charges
		server := listen(t, setup{}.opaque(t, c.handler(answers(200, strings.Repeat("x", size)))), false)
		if first := mustFetch(t, server, "k"); len(first.body) != size {
			t.Errorf("first: %d bytes", len(first.body))
		}
		mustFetch(t, server, "k").mustRefuse(t, 409, "replay-unavailable")
		c.mustBeOne(t)
	}
}

func TestField_ClientHangsUp(t *testing.T) {
	var c charges
	ctx, cancel := context.WithCancel(t.Context())
	noticed := make(chan struct{})
	done := make(chan struct{})
	h := setup{}.opaque(t, c.handler(func(w http.ResponseWriter, r *http.Request) {
		cancel() // after the effect
		<-noticed
		pay(w, r)
	}))
	server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.n.Load() == 0 {
			defer close(done)
			context.AfterFunc(r.Context(), func() { close(noticed) })
		}
		h.ServeHTTP(w, r)
	}), false)
	if resp, err := server.Client().Do(socketRequest(ctx, t, server.URL, "k")); err == nil {
		resp.Body.Close()
		t.Error("the client did not hang up")
	}
	<-done
	if got := mustFetch(t, server, "k"); got.status != 201 || !got.replayed() {
		t.Errorf("retry: %v", got)
	}
	c.mustBeOne(t)
}

func TestField_OutlivesItsLease(t *testing.T) {
	for name, extends := range map[string]bool{"heartbeat": true, "no heartbeat gets through": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c charges
				store := &faultyStore{Store: memstore.New(memstore.Options{}), before: func(op string) error {
					if op == "extend" && !extends {
						return errStoreDown
					}
					return nil
				}}
				h := setup{store: store, engine: umavez.Options{Lease: time.Second}}.opaque(t, c.handler(taking(10*time.Second, pay)))
				first := make(chan reply)
				go func() { first <- post(h, "k") }()
				for range 8 {
					time.Sleep(time.Second)
					if got := post(h, "k", "Prefer", "wait=0"); got.status != 409 {
						t.Errorf("meanwhile: %v", got)
					}
				}
				answer := <-first
				post(h, "k").mustEqual(t, answer)
				c.mustBeOne(t)
			})
		})
	}
}

func TestField_Flush(t *testing.T) {
	var c charges
	server := listen(t, setup{}.opaque(t, c.handler(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "part ")
		flush(w)
		io.WriteString(w, "by part")
	})), false)
	first := mustFetch(t, server, "k")
	again := mustFetch(t, server, "k")
	if again.status != first.status || again.body != first.body || !again.replayed() {
		t.Errorf("first %v\nagain %v", first, again)
	}
	c.mustBeOne(t)
}

// TestTimeoutHandler: http.TimeoutHandler answers 503 while the operation runs
// on. Whichever of the two is outside, there is one charge.
func TestTimeoutHandler(t *testing.T) {
	t.Run("inside", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var c charges
			charge := c.handler(taking(time.Second, pay))
			h := setup{}.once(t).Opaque(http.TimeoutHandler(charge, 100*time.Millisecond, "too slow"))
			first := post(h, "k")
			if first.status != 503 || first.body != "too slow" {
				t.Fatalf("first: %v", first)
			}
			for range 3 {
				time.Sleep(time.Second)
				again := post(h, "k")
				again.mustEqual(t, first)
				if !again.replayed() || again.header.Get("Idempotency-Status") != "unknown" {
					t.Errorf("retry: %v", again)
				}
			}
			c.mustBeOne(t)
		})
	})
	t.Run("outside", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var c charges
			once := setup{}.once(t)
			h := http.TimeoutHandler(once.Opaque(c.handler(taking(time.Second, pay))), 100*time.Millisecond, "too slow")
			if first := post(h, "k"); first.status != 503 {
				t.Fatalf("first: %v", first)
			}
			time.Sleep(2 * time.Second)
			if again := post(h, "k"); again.status != 201 || !again.replayed() {
				t.Errorf("retry: %v", again)
			}
			c.mustBeOne(t)
		})
	})
}

// recovering turns a panic into a plain 500, as frameworks do.
func recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				http.Error(w, fmt.Sprint("internal error: ", v), http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// TestRecoveryMiddleware: a panic after the charge that becomes a 500 is no
// permission to charge again, inside or outside.
func TestRecoveryMiddleware(t *testing.T) {
	crash := func(http.ResponseWriter, *http.Request) { panic("after the charge") }
	t.Run("inside", func(t *testing.T) {
		var c charges
		h := setup{}.once(t).Opaque(recovering(c.handler(crash)))
		first, again := post(h, "k"), post(h, "k")
		again.mustEqual(t, first)
		if first.status != 500 || !again.replayed() || again.header.Get("Idempotency-Status") != "unknown" {
			t.Errorf("first %v\nagain %v", first, again)
		}
		c.mustBeOne(t)
	})
	t.Run("outside", func(t *testing.T) {
		var c charges
		h := recovering(setup{}.opaque(t, c.handler(crash)))
		if first := post(h, "k"); first.status != 500 {
			t.Errorf("first: %v", first)
		}
		post(h, "k").mustRefuse(t, 409, "outcome-unknown")
		c.mustBeOne(t)
	})
}

// TestFramework: a handler outside that keeps its own note of status and length,
// as frameworks and access logs do, sees what went out.
func TestFramework(t *testing.T) {
	h := setup{}.opaque(t, pay)
	for range 2 {
		w := &thinWriter{header: make(http.Header)}
		h.ServeHTTP(w, newRequest("k"))
		if w.status != 201 || w.length != len(`{"id":"42","status":"aprovado"}`+"\n") {
			t.Errorf("status %d, %d bytes", w.status, w.length)
		}
	}
}

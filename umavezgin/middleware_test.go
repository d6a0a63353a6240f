package umavezgin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezgin"
	"github.com/umavez/umavez/umavezhttp"
)

// TestFirstAndReplay: the handler sees gin as ever, and runs once.
func TestFirstAndReplay(t *testing.T) {
	s := newService(t)
	loja := s.Group("/lojas/:loja", func(c *gin.Context) { c.Set("desconto", 10) })
	loja.POST("/pedidos/:id/pagar", umavezgin.Opaque(s.once), func(c *gin.Context) { c.Set("inner", true) },
		s.counted(func(c *gin.Context) {
			var in struct {
				Valor int `json:"valor" binding:"required"`
			}
			if err := c.ShouldBindJSON(&in); err != nil {
				t.Errorf("binding: %v", err)
			}
			if c.GetInt("desconto") != 10 || !c.GetBool("inner") || c.GetString("tenant") != "acme" {
				t.Errorf("values: %v", c.Keys)
			}
			if umavez.FromContext(c.Request.Context()) == nil {
				t.Error("the request's context belongs to no attempt")
			}
			if c.Request.Pattern != "POST /lojas/:loja/pedidos/:id/pagar" {
				t.Errorf("pattern %q", c.Request.Pattern)
			}
			if c.Writer.Written() || c.Writer.Size() != -1 || c.Writer.Status() != 200 {
				t.Errorf("before: %v %d %d", c.Writer.Written(), c.Writer.Size(), c.Writer.Status())
			}
			c.Header("Location", "/recibos/1")
			c.JSON(http.StatusCreated, gin.H{"loja": c.Param("loja"), "pedido": c.Param("id"), "valor": in.Valor})
			if !c.Writer.Written() || c.Writer.Size() <= 0 || c.Writer.Status() != 201 {
				t.Errorf("after: %v %d %d", c.Writer.Written(), c.Writer.Size(), c.Writer.Status())
			}
		}))
	first := s.post(t, "/lojas/7/pedidos/42/pagar", "k", payment)
	again := s.post(t, "/lojas/7/pedidos/42/pagar", "k", payment)
	if first.status != 201 || first.replayed() || first.body != `{"loja":"7","pedido":"42","valor":1990}` {
		t.Fatalf("first: %v", first)
	}
	again.mustReplay(t, first)
	if again.header.Get("Location") != "/recibos/1" {
		t.Errorf("replayed without its Location: %v", again)
	}
	if want := (seen{201, len(first.body), true, false}); first.seen != want {
		t.Errorf("the logger saw %+v of the first, want %+v", first.seen, want)
	}
	if want := (seen{201, len(first.body), true, true}); again.seen != want {
		t.Errorf("the logger saw %+v of the replay, want %+v", again.seen, want)
	}
	s.ran(t, 1)

	// Another order is another request.
	if r := s.post(t, "/lojas/7/pedidos/43/pagar", "k", payment); r.status != 422 || r.code() != "key-reused" {
		t.Errorf("the key for another path: %v", r)
	}
	if r := s.post(t, "/lojas/7/pedidos/42/pagar", "k", `{"valor":1}`); r.status != 422 || r.seen.status != 422 || !r.seen.written {
		t.Errorf("the key for another body: %v, seen %+v", r, r.seen)
	}
	s.ran(t, 1)
}

// TestHundredAtOnce: one execution, and one answer for all.
func TestHundredAtOnce(t *testing.T) {
	s := newService(t)
	start := make(chan struct{})
	s.POST("/pagar", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
		<-start
		c.JSON(http.StatusCreated, gin.H{"run": s.runs.Load()})
	}))
	const n = 100
	replies := make([]reply, n)
	var group sync.WaitGroup
	for i := range n {
		r := s.request(t, http.MethodPost, "/pagar", "k", payment)
		group.Go(func() { replies[i] = s.mustDo(t, r) })
	}
	close(start)
	group.Wait()
	firsts := 0
	for _, r := range replies {
		if r.status != http.StatusCreated || r.body != `{"run":1}` {
			t.Errorf("%v", r)
		}
		if !r.replayed() {
			firsts++
		}
	}
	if firsts != 1 {
		t.Errorf("%d answers that are no replays", firsts)
	}
	s.ran(t, 1)
}

// TestOthersKeys: two tenants' equal keys are two keys; a caller who is not
// known never comes to the middleware, and one without a name gets nothing.
func TestOthersKeys(t *testing.T) {
	s := newService(t)
	s.POST("/pagar", func(c *gin.Context) {
		if c.GetString("tenant") == "nobody" {
			c.Set("tenant", "")
		}
	}, umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) { c.String(200, c.GetString("tenant")) }))
	for i, tenant := range []string{"acme", "loja"} {
		r := s.request(t, http.MethodPost, "/pagar", "k", payment)
		r.Header.Set("X-Tenant", tenant)
		if got := s.mustDo(t, r); got.body != tenant || got.replayed() {
			t.Errorf("%s: %v", tenant, got)
		}
		s.ran(t, int64(i+1))
	}
	r := s.request(t, http.MethodPost, "/pagar", "k", payment)
	r.Header.Del("X-Tenant")
	if got := s.mustDo(t, r); got.status != 401 || got.code() != "" {
		t.Errorf("authentication aborts before: %v", got)
	}
	r = s.request(t, http.MethodPost, "/pagar", "k", payment)
	r.Header.Set("X-Tenant", "nobody")
	if got := s.mustDo(t, r); got.status != 401 || got.code() != "unauthenticated" {
		t.Errorf("no principal: %v", got)
	}
	s.ran(t, 2)
}

// TestPassing: what has no key, or is not enrolled, runs as if we were not there.
func TestPassing(t *testing.T) {
	s := newService(t)
	s.Use(umavezgin.Opaque(s.once))
	var writer, request any
	s.Any("/pagar", func(c *gin.Context) { writer, request = c.Writer, c.Request }, s.counted(func(c *gin.Context) {
		if c.Writer != writer || c.Request != request || umavez.FromContext(c.Request.Context()) != nil {
			t.Error("it does not pass as it came")
		}
		body, _ := c.GetRawData()
		c.String(200, string(body))
	}))
	for range 2 {
		if r := s.post(t, "/pagar", "", payment); r.status != 200 || r.replayed() || r.body != payment {
			t.Errorf("without a key: %v", r)
		}
		r := s.mustDo(t, s.request(t, http.MethodPut, "/pagar", "k", payment))
		if r.status != 200 || r.replayed() || r.body != payment {
			t.Errorf("another method: %v", r)
		}
	}
	s.ran(t, 4)

	required := newOnce(t, umavezhttp.Route{Required: true})
	s.POST("/required", umavezgin.Opaque(required), s.counted(func(c *gin.Context) { c.String(200, "ran") }))
	if r := s.post(t, "/required", "", payment); r.status != 400 || r.code() != "missing-key" {
		t.Errorf("%v", r)
	}
	s.ran(t, 4)
}

// TestNoRoute: where there is nothing to run, a key is not used up. What stands
// behind the middleware for paths without a route is protected.
func TestNoRoute(t *testing.T) {
	s := newService(t)
	s.Use(umavezgin.Opaque(s.once))
	for range 2 {
		r := s.post(t, "/new", "k", payment)
		if r.status != 404 || r.replayed() || r.body != "404 page not found" || r.header.Get("Idempotency-Key") != "" {
			t.Fatalf("no route: %v", r)
		}
	}
	s.POST("/new", s.counted(func(c *gin.Context) { c.Status(http.StatusNoContent) }))
	if r := s.post(t, "/new", "k", payment); r.status != 204 || r.seen != (seen{204, 0, true, false}) {
		t.Fatalf("the route is there now: %v, seen %+v", r, r.seen)
	}
	if r := s.post(t, "/new", "k", payment); r.status != 204 || !r.replayed() || r.seen != (seen{204, 0, true, true}) {
		t.Fatalf("replay: %v, seen %+v", r, r.seen)
	}
	s.ran(t, 1)

	s.NoRoute(s.counted(func(c *gin.Context) { c.String(200, "proxied") }))
	first := s.post(t, "/elsewhere", "k2", payment)
	if first.status != 200 || first.body != "proxied" {
		t.Fatalf("%v", first)
	}
	s.post(t, "/elsewhere", "k2", payment).mustReplay(t, first)
	s.ran(t, 2)
}

// TestSteps: a stepped operation goes on behind its kept step, given the
// request's context or gin's own with fallback.
func TestSteps(t *testing.T) {
	s := newService(t)
	s.ContextWithFallback = true
	var charges int
	for path, ctxOf := range map[string]func(*gin.Context) context.Context{
		"/request": func(c *gin.Context) context.Context { return c.Request.Context() },
		"/gin":     func(c *gin.Context) context.Context { return c },
	} {
		charges = 0
		s.POST(path, umavezgin.Stepped(s.once), s.counted(func(c *gin.Context) {
			id, err := umavez.Step(ctxOf(c), "charge", func(context.Context, string) (string, error) {
				charges++
				return "ch_1", nil
			})
			if err != nil {
				t.Errorf("step: %v", err)
			}
			if s.runs.Load()%2 == 1 {
				c.JSON(http.StatusInternalServerError, gin.H{"error": "after the charge"})
				return
			}
			c.JSON(http.StatusCreated, gin.H{"charge": id})
		}))
		first := s.post(t, path, "k"+path, payment)
		again := s.post(t, path, "k"+path, payment)
		if first.status != 500 || again.status != 201 || again.body != `{"charge":"ch_1"}` || charges != 1 {
			t.Errorf("%s: %v, then %v, %d charges", path, first, again, charges)
		}
	}
}

// TestClientLeaves: the operation goes on in a context that nobody else is
// given, and its answer is there for the retry.
func TestClientLeaves(t *testing.T) {
	s := newService(t)
	began, left := make(chan struct{}), make(chan struct{})
	s.POST("/pagar/:id", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
		close(began)
		<-left
		if err := c.Request.Context().Err(); err != nil {
			t.Errorf("the operation is told to stop: %v", err)
		}
		c.JSON(http.StatusCreated, gin.H{"id": c.Param("id"), "tenant": c.GetString("tenant")})
	}))
	s.GET("/other/:id", func(c *gin.Context) { c.Set("tenant", "mallory"); c.String(200, c.Param("id")) })
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	r := s.request(t, http.MethodPost, "/pagar/42", "k", payment).WithContext(ctx)
	go func() {
		_, err := s.Client().Do(r)
		gone <- err
	}()
	<-began
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	for range 20 { // others use gin's pool meanwhile
		s.mustDo(t, s.request(t, http.MethodGet, "/other/7", "", ""))
		<-s.logs
	}
	close(left)
	<-s.logs // of the one whose client has left
	again := s.post(t, "/pagar/42", "k", payment)
	if again.status != 201 || !again.replayed() || again.body != `{"id":"42","tenant":"acme"}` {
		t.Errorf("%v", again)
	}
	s.ran(t, 1)
}

// TestBodyReadOutside: a body that was bound with a copy counts; one that is
// gone is refused, since every body would pass for it.
func TestBodyReadOutside(t *testing.T) {
	s := newService(t)
	handler := s.counted(func(c *gin.Context) {
		body, _ := c.GetRawData()
		c.String(200, string(body))
	})
	s.POST("/copied", func(c *gin.Context) {
		var in map[string]any
		if err := c.ShouldBindBodyWithJSON(&in); err != nil {
			t.Error(err)
		}
	}, umavezgin.Opaque(s.once), handler)
	s.POST("/gone", func(c *gin.Context) { _, _ = c.GetRawData() }, umavezgin.Opaque(s.once), handler)
	if r := s.post(t, "/copied", "k", payment); r.body != payment {
		t.Errorf("%v", r)
	}
	if r := s.post(t, "/copied", "k", `{"valor":1}`); r.status != 422 {
		t.Errorf("another body: %v", r)
	}
	s.ran(t, 1)
	if r := s.post(t, "/gone", "k2", payment); r.status != 400 || r.code() != "request-incomplete" {
		t.Errorf("%v", r)
	}
	s.ran(t, 1)
}

// TestStatus: a caller sees its own keys, by gin's authentication.
func TestStatus(t *testing.T) {
	s := newService(t)
	s.POST("/pagar", umavezgin.Opaque(s.once), func(c *gin.Context) { c.Status(201) })
	s.GET("/.umavez/keys/:key", umavezgin.Status(s.once))
	s.post(t, "/pagar", "k", payment)
	r := s.request(t, http.MethodGet, "/.umavez/keys/k", "", "")
	if got := s.mustDo(t, r); got.status != 200 || !strings.Contains(got.body, `"state":"done"`) {
		t.Errorf("%v", got)
	}
	r.Header.Set("X-Tenant", "mallory")
	if got := s.mustDo(t, r); got.status != 404 {
		t.Errorf("somebody else's: %v", got)
	}
}

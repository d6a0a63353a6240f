package umavezecho_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezecho"
	"github.com/umavez/umavez/umavezhttp"
)

// set returns a middleware that puts a value into echo's context.
func set(key string, value any) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			c.Set(key, value)
			return next(c)
		}
	}
}

// response is what echo knows of an answer.
func response(t *testing.T, c *echo.Context) *echo.Response {
	t.Helper()
	r, err := echo.UnwrapResponse(c.Response())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFirstAndReplay: the handler sees echo as ever, and runs once.
func TestFirstAndReplay(t *testing.T) {
	s := newService(t)
	loja := s.Group("/lojas/:loja", set("desconto", 10))
	loja.POST("/pedidos/:id/pagar", s.counted(func(c *echo.Context) error {
		var in struct {
			Valor int `json:"valor"`
		}
		if err := c.Bind(&in); err != nil {
			t.Errorf("binding: %v", err)
		}
		if c.Get("desconto") != 10 || c.Get("inner") != true || c.Get("tenant") != "acme" {
			t.Errorf("values: %v %v %v", c.Get("desconto"), c.Get("inner"), c.Get("tenant"))
		}
		if umavez.FromContext(c.Request().Context()) == nil {
			t.Error("the request's context belongs to no attempt")
		}
		if c.Request().Pattern != "POST /lojas/:loja/pedidos/:id/pagar" {
			t.Errorf("pattern %q", c.Request().Pattern)
		}
		if r := response(t, c); r.Committed || r.Size != 0 || r.Status != 200 {
			t.Errorf("before: %v %d %d", r.Committed, r.Size, r.Status)
		}
		c.Response().Header().Set("Location", "/recibos/1")
		err := c.JSON(http.StatusCreated, map[string]any{"loja": c.Param("loja"), "pedido": c.Param("id"), "valor": in.Valor})
		if r := response(t, c); !r.Committed || r.Size <= 0 || r.Status != 201 {
			t.Errorf("after: %v %d %d", r.Committed, r.Size, r.Status)
		}
		return err
	}), umavezecho.Opaque(s.once), set("inner", true))
	first := s.post(t, "/lojas/7/pedidos/42/pagar", "k", payment)
	again := s.post(t, "/lojas/7/pedidos/42/pagar", "k", payment)
	if first.status != 201 || first.replayed() || strings.TrimSpace(first.body) != `{"loja":"7","pedido":"42","valor":1990}` {
		t.Fatalf("first: %v", first)
	}
	again.mustReplay(t, first)
	if again.header.Get("Location") != "/recibos/1" {
		t.Errorf("replayed without its Location: %v", again)
	}
	for _, r := range []reply{first, again} {
		if want := (seen{201, len(first.body), true, ""}); r.seen != want {
			t.Errorf("the logger saw %+v, want %+v", r.seen, want)
		}
	}
	s.ran(t, 1)

	// Another order is another request.
	if r := s.post(t, "/lojas/7/pedidos/43/pagar", "k", payment); r.status != 422 || r.code() != "key-reused" {
		t.Errorf("the key for another path: %v", r)
	}
	if r := s.post(t, "/lojas/7/pedidos/42/pagar", "k", `{"valor":1}`); r.status != 422 || r.seen.status != 422 || !r.seen.committed {
		t.Errorf("the key for another body: %v, seen %+v", r, r.seen)
	}
	s.ran(t, 1)
}

// TestHundredAtOnce: one execution, and one answer for all.
func TestHundredAtOnce(t *testing.T) {
	s := newService(t)
	start := make(chan struct{})
	s.POST("/pagar", s.counted(func(c *echo.Context) error {
		<-start
		return c.JSONBlob(http.StatusCreated, []byte(`{"run":1}`))
	}), umavezecho.Opaque(s.once))
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
	handler := s.counted(func(c *echo.Context) error { return c.String(200, c.Get("tenant").(string)) })
	s.POST("/pagar", handler, umavezecho.Opaque(s.once))
	s.POST("/nobody", handler, set("tenant", ""), umavezecho.Opaque(s.once))
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
		t.Errorf("authentication refuses before: %v", got)
	}
	if got := s.mustDo(t, s.request(t, http.MethodPost, "/nobody", "k", payment)); got.status != 401 || got.code() != "unauthenticated" {
		t.Errorf("no principal: %v", got)
	}
	s.ran(t, 2)
}

// TestPassing: what has no key, or is not enrolled, runs as if we were not there,
// and so does its error.
func TestPassing(t *testing.T) {
	s := newService(t)
	s.Use(umavezecho.Opaque(s.once))
	var writer, request any
	remember := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			writer, request = c.Response(), c.Request()
			return next(c)
		}
	}
	handler := s.counted(func(c *echo.Context) error {
		if c.Response() != writer || c.Request() != request || umavez.FromContext(c.Request().Context()) != nil {
			t.Error("it does not pass as it came")
		}
		body, _ := io.ReadAll(c.Request().Body)
		return echo.NewHTTPError(http.StatusConflict, string(body))
	})
	s.POST("/pagar", handler, remember)
	s.PUT("/pagar", handler, remember)
	for range 2 {
		for _, r := range []reply{
			s.post(t, "/pagar", "", payment),
			s.mustDo(t, s.request(t, http.MethodPut, "/pagar", "k", payment)),
		} {
			if r.status != 409 || r.replayed() || !strings.Contains(r.body, `{\"valor\":1990}`) {
				t.Errorf("%v", r)
			}
		}
	}
	s.ran(t, 4)

	required := newOnce(t, umavezhttp.Route{Required: true})
	other := newService(t)
	other.POST("/required", other.counted(func(c *echo.Context) error { return c.NoContent(204) }), umavezecho.Opaque(required))
	if r := other.post(t, "/required", "", payment); r.status != 400 || r.code() != "missing-key" {
		t.Errorf("%v", r)
	}
	other.ran(t, 0)
}

// TestNoRoute: where there is nothing to run, a key is not used up. What the
// service runs for paths without a route is protected.
func TestNoRoute(t *testing.T) {
	s := newService(t)
	s.Use(umavezecho.Opaque(s.once))
	s.GET("/get", func(c *echo.Context) error { return c.NoContent(204) })
	for range 2 {
		for path, want := range map[string]int{"/new": 404, "/get": 405} {
			r := s.post(t, path, "k", payment)
			if r.status != want || r.replayed() || r.header.Get("Idempotency-Key") != "" {
				t.Fatalf("%s: %v", path, r)
			}
		}
	}
	s.POST("/new", s.counted(func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) }))
	first := s.post(t, "/new", "k", payment)
	if first.status != 204 || first.seen != (seen{204, 0, true, ""}) {
		t.Fatalf("the route is there now: %v, seen %+v", first, first.seen)
	}
	again := s.post(t, "/new", "k", payment)
	if again.mustReplay(t, first); again.seen != first.seen {
		t.Errorf("seen %+v", again.seen)
	}
	s.ran(t, 1)

	s.RouteNotFound("/*", s.counted(func(c *echo.Context) error { return c.String(200, "proxied") }))
	first = s.post(t, "/elsewhere", "k2", payment)
	if first.status != 200 || first.body != "proxied" {
		t.Fatalf("%v", first)
	}
	s.post(t, "/elsewhere", "k2", payment).mustReplay(t, first)
	s.ran(t, 2)
}

// TestSteps: a stepped operation goes on behind its kept step.
func TestSteps(t *testing.T) {
	s := newService(t)
	charges := 0
	s.POST("/pagar", s.counted(func(c *echo.Context) error {
		id, err := umavez.Step(c.Request().Context(), "charge", func(context.Context, string) (string, error) {
			charges++
			return "ch_1", nil
		})
		if err != nil {
			t.Errorf("step: %v", err)
		}
		if s.runs.Load() == 1 {
			return errors.New("after the charge")
		}
		return c.String(http.StatusCreated, id)
	}), umavezecho.Stepped(s.once))
	first := s.post(t, "/pagar", "k", payment)
	again := s.post(t, "/pagar", "k", payment)
	if first.status != 500 || again.status != 201 || again.body != "ch_1" || charges != 1 {
		t.Errorf("%v, then %v, %d charges", first, again, charges)
	}
}

// TestRerunnable: an attempt that failed is run again.
func TestRerunnable(t *testing.T) {
	s := newService(t)
	s.POST("/pagar", s.counted(func(c *echo.Context) error {
		if s.runs.Load() == 1 {
			return errors.New("at first")
		}
		return c.String(http.StatusCreated, "at last")
	}), umavezecho.Rerunnable(s.once))
	first := s.post(t, "/pagar", "k", payment)
	again := s.post(t, "/pagar", "k", payment)
	if first.status != 500 || again.status != 201 || again.replayed() {
		t.Errorf("%v, then %v", first, again)
	}
	s.ran(t, 2)
}

// TestClientLeaves: the operation goes on in a context that nobody else is
// given, and its answer is there for the retry.
func TestClientLeaves(t *testing.T) {
	s := newService(t)
	began, left := make(chan struct{}), make(chan struct{})
	s.POST("/pagar/:id", s.counted(func(c *echo.Context) error {
		close(began)
		<-left
		if err := c.Request().Context().Err(); err != nil {
			t.Errorf("the operation is told to stop: %v", err)
		}
		return c.String(http.StatusCreated, c.Param("id")+" "+c.Get("tenant").(string))
	}), umavezecho.Opaque(s.once))
	s.GET("/other/:id", func(c *echo.Context) error {
		c.Set("tenant", "mallory")
		return c.String(200, c.Param("id"))
	})
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
	for range 20 { // others use echo's pool meanwhile
		s.mustDo(t, s.request(t, http.MethodGet, "/other/7", "", ""))
		<-s.logs
	}
	close(left)
	<-s.logs // of the one whose client has left
	again := s.post(t, "/pagar/42", "k", payment)
	if again.status != 201 || !again.replayed() || again.body != "42 acme" {
		t.Errorf("%v", again)
	}
	s.ran(t, 1)
}

// TestBodyReadOutside: a body that is gone is refused, since every body would
// pass for it.
func TestBodyReadOutside(t *testing.T) {
	s := newService(t)
	s.POST("/gone", s.counted(func(c *echo.Context) error { return c.NoContent(204) }),
		func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if err := c.Bind(&map[string]any{}); err != nil {
					t.Error(err)
				}
				return next(c)
			}
		}, umavezecho.Opaque(s.once))
	if r := s.post(t, "/gone", "k", payment); r.status != 400 || r.code() != "request-incomplete" {
		t.Errorf("%v", r)
	}
	s.ran(t, 0)
}

// TestStatus: a caller sees its own keys, by echo's authentication.
func TestStatus(t *testing.T) {
	s := newService(t)
	s.POST("/pagar", func(c *echo.Context) error { return c.NoContent(201) }, umavezecho.Opaque(s.once))
	s.GET("/.umavez/keys/:key", umavezecho.Status(s.once))
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

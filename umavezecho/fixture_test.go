package umavezecho_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezecho"
	"github.com/umavez/umavez/umavezhttp"
)

// tenant is the principal of tests: what authentication put into echo's context.
var tenant = umavezecho.Principal(func(c *echo.Context) (string, error) { return echo.ContextGetOr(c, "tenant", "") })

// authenticate takes a caller's word for who it is.
func authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if c.Request().Header.Get("X-Tenant") == "" {
			return echo.NewHTTPError(http.StatusUnauthorized, "who are you?")
		}
		c.Set("tenant", c.Request().Header.Get("X-Tenant"))
		return next(c)
	}
}

// newEngine makes an engine of ours over an empty store, which ends with the test.
func newEngine(t *testing.T) *umavez.Engine {
	t.Helper()
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := eng.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return eng
}

// newOnce makes a Once for tenants, for one kind of route.
func newOnce(t *testing.T, route umavezhttp.Route) *umavezhttp.Once {
	t.Helper()
	return onceOver(t, newEngine(t), route)
}

func onceOver(t *testing.T, eng *umavez.Engine, route umavezhttp.Route) *umavezhttp.Once {
	t.Helper()
	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "loja", Principal: tenant})
	if err != nil {
		t.Fatal(err)
	}
	if once, err = once.With(route); err != nil {
		t.Fatal(err)
	}
	return once
}

// seen is what a logger outside was told of one request.
type seen struct {
	status, size int
	committed    bool
	err          string
}

// service is an echo instance behind a socket.
type service struct {
	*echo.Echo
	*httptest.Server
	once *umavezhttp.Once
	runs atomic.Int64
	logs chan seen
}

// newService listens with the usual order of middleware: logger, recovery,
// authentication. Handlers are added to it by the test.
func newService(t *testing.T) *service {
	t.Helper()
	s := &service{Echo: echo.New(), once: newOnce(t, umavezhttp.Route{}), logs: make(chan seen, 1000)}
	s.Logger = slog.New(slog.DiscardHandler)
	s.Use(s.logger, middleware.Recover(), authenticate)
	s.Server = httptest.NewUnstartedServer(s.Echo)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Server.Start()
	t.Cleanup(s.Close)
	s.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// logger logs as echo's own loggers do: after the answer, and with its error.
func (s *service) logger(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		err := next(c)
		resp, status := echo.ResolveResponseStatus(c.Response(), err)
		entry := seen{status: status, size: int(resp.Size), committed: resp.Committed}
		if err != nil {
			entry.err = err.Error()
		}
		s.logs <- entry
		return err
	}
}

// counted counts how often a handler runs.
func (s *service) counted(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		s.runs.Add(1)
		return h(c)
	}
}

// ran checks how often the handler has run.
func (s *service) ran(t *testing.T, want int64) {
	t.Helper()
	if got := s.runs.Load(); got != want {
		t.Fatalf("%d runs, want %d", got, want)
	}
}

// reply is an answer as a client has it, and what the logger saw of it.
type reply struct {
	status int
	header http.Header
	body   string
	seen   seen
}

func (r reply) String() string { return fmt.Sprintf("%d %v %q", r.status, r.header, r.body) }

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// code is the code of a refusal, or empty.
func (r reply) code() string {
	var p umavezhttp.Problem
	if r.header.Get("Content-Type") == "application/problem+json" {
		_ = json.Unmarshal([]byte(r.body), &p)
	}
	return p.Code
}

// mustReplay checks that the answer is the first one, from the record.
func (r reply) mustReplay(t *testing.T, first reply) {
	t.Helper()
	if !r.replayed() || r.status != first.status || r.body != first.body ||
		r.header.Get("Content-Type") != first.header.Get("Content-Type") {
		t.Fatalf("replayed: %v\nfirst:    %v", r, first)
	}
}

const payment = `{"valor":1990}`

// post sends a payment with a key.
func (s *service) post(t *testing.T, path, key, body string) reply {
	t.Helper()
	r := s.mustDo(t, s.request(t, http.MethodPost, path, key, body))
	r.seen = <-s.logs
	return r
}

func (s *service) request(t *testing.T, method, path, key, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tenant", "acme")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

func (s *service) mustDo(t *testing.T, r *http.Request) reply {
	t.Helper()
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{status: res.StatusCode, header: res.Header, body: string(body)}
}

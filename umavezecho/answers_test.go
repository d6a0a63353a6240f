package umavezecho_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezecho"
	"github.com/umavez/umavez/umavezhttp"
)

// TestAnswers: however echo writes an answer, its replay is the same, and the
// logger is told the same status and size of both.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		handler echo.HandlerFunc
		status  int
		body    string
	}{
		"JSON":     {func(c *echo.Context) error { return c.JSON(201, map[string]bool{"ok": true}) }, 201, "{\"ok\":true}\n"},
		"String":   {func(c *echo.Context) error { return c.String(202, "id 1") }, 202, "id 1"},
		"Blob":     {func(c *echo.Context) error { return c.Blob(200, "application/pdf", []byte("%PDF")) }, 200, "%PDF"},
		"no body":  {func(c *echo.Context) error { return c.NoContent(204) }, 204, ""},
		"redirect": {func(c *echo.Context) error { return c.Redirect(303, "/recibos/1") }, 303, ""},
		"reader":   {func(c *echo.Context) error { return c.Stream(200, "text/plain", strings.NewReader("abcde")) }, 200, "abcde"},
		"flushed": {func(c *echo.Context) error {
			if err := c.String(200, "a"); err != nil {
				return err
			}
			c.Response().(http.Flusher).Flush()
			_, err := io.WriteString(c.Response(), "b")
			return err
		}, 200, "ab"},
		"status error":     {func(*echo.Context) error { return echo.NewHTTPError(422, "too much") }, 422, "{\"message\":\"too much\"}\n"},
		"plain echo error": {func(*echo.Context) error { return echo.ErrNotFound }, 404, "{\"message\":\"Not Found\"}\n"},
		"answer and error": {func(c *echo.Context) error { _ = c.String(201, "a"); return errors.New("late") }, 201, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.POST("/pagar", s.counted(tc.handler), umavezecho.Opaque(s.once))
			first := s.post(t, "/pagar", "k", payment)
			again := s.post(t, "/pagar", "k", payment)
			if first.status != tc.status || first.body != tc.body || first.replayed() {
				t.Fatalf("first: %v", first)
			}
			again.mustReplay(t, first)
			if again.header.Get("Location") != first.header.Get("Location") {
				t.Errorf("Location: %v, first %v", again, first)
			}
			for _, r := range []reply{first, again} {
				if r.seen.status != tc.status || r.seen.size != len(tc.body) || !r.seen.committed {
					t.Errorf("the logger saw %+v", r.seen)
				}
			}
			if (first.seen.err != "") != strings.Contains(name, "error") || again.seen.err != "" {
				t.Errorf("the logger was told %q, and of the replay %q", first.seen.err, again.seen.err)
			}
			s.ran(t, 1)
		})
	}
}

// TestErrors: an error is answered once, inside, whoever else would answer it.
func TestErrors(t *testing.T) {
	failing := func(*echo.Context) error { return errors.New("after the charge") }
	careless := func(c *echo.Context, err error) { // looks at nothing
		_ = c.JSON(http.StatusInternalServerError, map[string]string{"failed": err.Error()})
	}
	for name, tc := range map[string]struct {
		handler echo.HTTPErrorHandler
		outside echo.MiddlewareFunc
		body    string
	}{
		"echo's own":     {nil, nil, `{"message":"Internal Server Error"}`},
		"careless":       {careless, nil, `{"failed":"after the charge"}`},
		"says nothing":   {func(*echo.Context, error) {}, nil, ""},
		"twice, outside": {careless, handleErrors, `{"failed":"after the charge"}`},
		"behind gzip":    {careless, middleware.Gzip(), `{"failed":"after the charge"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			if tc.handler != nil {
				s.HTTPErrorHandler = tc.handler
			}
			chain := []echo.MiddlewareFunc{umavezecho.Opaque(s.once)}
			if tc.outside != nil {
				chain = []echo.MiddlewareFunc{tc.outside, chain[0]}
			}
			s.POST("/pagar", s.counted(failing), chain...)
			first := s.post(t, "/pagar", "k", payment)
			again := s.post(t, "/pagar", "k", payment)
			for _, r := range []reply{first, again} {
				if r.status != 500 || strings.TrimSpace(r.body) != tc.body || r.header.Get("Idempotency-Status") != "unknown" {
					t.Errorf("%v", r)
				}
			}
			if first.seen.err != "after the charge" || first.seen.status != 500 {
				t.Errorf("the logger saw %+v", first.seen)
			}
			s.ran(t, 1)
		})
	}
}

// handleErrors does what echo's loggers do with HandleError.
func handleErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		err := next(c)
		if err != nil {
			c.Echo().HTTPErrorHandler(c, err)
		}
		return err
	}
}

// TestR8_Panic: outside, recovery answers for a panic that goes on to it; inside,
// its 500 is an answer that says nothing (rule A5). Either way no retry runs.
func TestR8_Panic(t *testing.T) {
	for name, inside := range map[string][]echo.MiddlewareFunc{
		"recovery outside": nil,
		"recovery inside":  {middleware.Recover()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.POST("/pagar", s.counted(func(c *echo.Context) error {
				c.Response().Header().Set("X-Half", "1")
				if inside == nil {
					_ = c.String(201, "half an answer")
				}
				panic("after the charge")
			}), append([]echo.MiddlewareFunc{umavezecho.Opaque(s.once)}, inside...)...)
			first := s.post(t, "/pagar", "k", payment)
			again := s.post(t, "/pagar", "k", payment)
			if first.status != 500 || first.seen.status != 500 {
				t.Errorf("first: %v, seen %+v", first, first.seen)
			}
			if inside == nil {
				if strings.Contains(first.body, "half") || first.header.Get("X-Half") != "" {
					t.Errorf("a part of what was never stored has gone out: %v", first)
				}
				if again.status != 409 || again.code() != "outcome-unknown" {
					t.Errorf("again: %v", again)
				}
			} else if again.status != 500 || !again.replayed() || again.header.Get("Idempotency-Status") != "unknown" {
				t.Errorf("again: %v", again)
			}
			s.ran(t, 1)
		})
	}
}

// TestR9_Streams: an event stream goes out as it comes, and is not kept.
func TestR9_Streams(t *testing.T) {
	s := newService(t)
	next := make(chan struct{})
	s.POST("/eventos", s.counted(func(c *echo.Context) error {
		w := c.Response()
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: first\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-next
		io.WriteString(w, "data: second\n\n")
		return nil
	}), umavezecho.Opaque(s.once))
	s.POST("/long", s.counted(func(c *echo.Context) error {
		return c.String(200, strings.Repeat("x", 2<<20))
	}), umavezecho.Opaque(s.once))
	res, err := s.Client().Do(s.request(t, http.MethodPost, "/eventos", "k", payment))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body := bufio.NewReader(res.Body)
	if line, err := body.ReadString('\n'); err != nil || line != "data: first\n" {
		t.Fatalf("%q, %v", line, err)
	}
	close(next) // the first event was here before the second was written
	if rest, err := io.ReadAll(body); err != nil || !strings.Contains(string(rest), "second") {
		t.Fatalf("%q, %v", rest, err)
	}
	<-s.logs
	if r := s.post(t, "/eventos", "k", payment); r.status != 409 || r.code() != "replay-unavailable" {
		t.Errorf("%v", r)
	}
	if r := s.post(t, "/long", "k2", payment); r.status != 200 || len(r.body) != 2<<20 || r.seen.size != 2<<20 {
		t.Errorf("%d with %d bytes, seen %+v", r.status, len(r.body), r.seen)
	}
	if r := s.post(t, "/long", "k2", payment); r.status != 409 || r.code() != "replay-unavailable" {
		t.Errorf("%v", r)
	}
	s.ran(t, 2)
}

// TestHijack: whoever takes the connection has done the operation.
func TestHijack(t *testing.T) {
	for name, hijacker := range map[string]func(w http.ResponseWriter) http.Hijacker{
		"Hijack":     func(w http.ResponseWriter) http.Hijacker { return w.(http.Hijacker) },
		"controller": func(w http.ResponseWriter) http.Hijacker { return http.NewResponseController(w) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.POST("/ws", s.counted(func(c *echo.Context) error {
				conn, rw, err := hijacker(c.Response()).Hijack()
				if err != nil {
					return err
				}
				defer conn.Close()
				rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
				return rw.Flush()
			}), umavezecho.Opaque(s.once))
			if r := s.post(t, "/ws", "k", payment); r.status != 200 || r.body != "hi" {
				t.Errorf("%v", r)
			}
			if r := s.post(t, "/ws", "k", payment); r.status != 409 || r.code() != "replay-unavailable" {
				t.Errorf("%v", r)
			}
			s.ran(t, 1)
		})
	}
}

// TestR10_ToldToStop: a handler that is told to stop and says nothing has not
// answered 200.
func TestR10_ToldToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng, err := umavez.New(noHeartbeat{memstore.New(memstore.Options{})}, umavez.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer eng.Close(t.Context())
		service := echo.New()
		service.POST("/pagar", func(c *echo.Context) error {
			<-c.Request().Context().Done()
			return nil
		}, authenticate, umavezecho.Rerunnable(onceOver(t, eng, umavezhttp.Route{})))
		r := httptest.NewRequest(http.MethodPost, "/pagar", strings.NewReader(payment))
		r.Header.Set("X-Tenant", "acme")
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		service.ServeHTTP(w, r)
		if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), "outcome-unknown") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// noHeartbeat is a store that extends no lease: a rerunnable operation that takes too long
// is told to stop.
type noHeartbeat struct{ umavez.Store }

// Extend fails.
func (noHeartbeat) Extend(context.Context, umavez.Lease, time.Duration) error {
	return errors.New("the store is away")
}

// TestFormFiles: the files of a form that a handler parsed are removed.
func TestFormFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := newService(t)
	var parsed string
	s.POST("/upload", s.counted(func(c *echo.Context) error {
		if err := c.Request().ParseMultipartForm(1); err != nil {
			return err
		}
		header, err := c.FormFile("f")
		if err != nil {
			return err
		}
		f, err := header.Open()
		if err != nil {
			return err
		}
		defer f.Close()
		if file, ok := f.(*os.File); ok {
			parsed = file.Name()
		}
		return c.String(200, c.FormValue("id"))
	}), umavezecho.Opaque(s.once))
	body := "--b\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n42\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n" + strings.Repeat("x", 100_000) + "\r\n--b--\r\n"
	r := s.request(t, http.MethodPost, "/upload", "k", body)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	if got := s.mustDo(t, r); got.body != "42" {
		t.Errorf("%v", got)
	}
	s.Close() // waits for the request to be finished
	if parsed == "" {
		t.Fatal("the form has no file on disk")
	}
	if _, err := os.Stat(parsed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left behind: %v", err)
	}
}

// TestA6_Released: a handler that has done nothing gives the key back.
func TestA6_Released(t *testing.T) {
	s := newService(t)
	s.once = newOnce(t, umavezhttp.Route{Release: []int{503}})
	s.POST("/pagar", s.counted(func(*echo.Context) error {
		return echo.NewHTTPError(http.StatusServiceUnavailable, "closed")
	}), umavezecho.Opaque(s.once))
	for i := range 2 {
		if r := s.post(t, "/pagar", "k", payment); r.status != 503 || r.replayed() {
			t.Errorf("%v", r)
		}
		s.ran(t, int64(i+1))
	}
}

package umavezgin_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezgin"
	"github.com/umavez/umavez/umavezhttp"
)

// TestAnswers: however gin writes an answer, its replay is the same, and the
// logger is told the same status and size of both.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		handler gin.HandlerFunc
		status  int
		body    string
	}{
		"JSON":          {func(c *gin.Context) { c.JSON(201, gin.H{"ok": true}) }, 201, `{"ok":true}`},
		"String":        {func(c *gin.Context) { c.String(202, "id %d", 1) }, 202, "id 1"},
		"Data":          {func(c *gin.Context) { c.Data(200, "application/pdf", []byte("%PDF")) }, 200, "%PDF"},
		"status alone":  {func(c *gin.Context) { c.Status(204) }, 204, ""},
		"nothing":       {func(*gin.Context) {}, 200, ""},
		"redirect":      {func(c *gin.Context) { c.Redirect(303, "/recibos/1") }, 303, ""},
		"abort, JSON":   {func(c *gin.Context) { c.AbortWithStatusJSON(422, gin.H{"e": 1}) }, 422, `{"e":1}`},
		"abort, status": {func(c *gin.Context) { c.AbortWithStatus(402) }, 402, ""},
		"abort, error":  {func(c *gin.Context) { _ = c.AbortWithError(409, errors.New("sold")) }, 409, ""},
		"last status":   {func(c *gin.Context) { c.Status(500); c.Status(201) }, 201, ""},
		"error, status": {func(c *gin.Context) { _ = c.Error(errors.New("noted")); c.Status(201) }, 201, ""},
		"WriteString":   {func(c *gin.Context) { c.Writer.WriteString("a"); c.Writer.WriteString("b") }, 200, "ab"},
		"reader": {func(c *gin.Context) {
			c.DataFromReader(200, 5, "text/plain", strings.NewReader("abcde"), map[string]string{"X-Sum": "1"})
		}, 200, "abcde"},
		"flushed": {func(c *gin.Context) { c.Writer.WriteString("a"); c.Writer.Flush(); c.Writer.WriteString("b") }, 200, "ab"},
		"stream": {func(c *gin.Context) {
			n := 0
			c.Stream(func(w io.Writer) bool { n++; io.WriteString(w, "x"); return n < 3 })
		}, 200, "xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.POST("/pagar", umavezgin.Opaque(s.once), s.counted(tc.handler), func(c *gin.Context) {
				if strings.HasPrefix(name, "abort") {
					t.Error("the handler has aborted, and the next one runs")
				}
			})
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
				if r.seen.status != tc.status || r.seen.size != len(tc.body) || !r.seen.written {
					t.Errorf("the logger saw %+v", r.seen)
				}
			}
			s.ran(t, 1)
		})
	}
}

// TestR8_Panic: outside, recovery answers for a panic that goes on to it; inside,
// its 500 is an answer that says nothing. Either way the retry does not run.
func TestR8_Panic(t *testing.T) {
	for name, inside := range map[string][]gin.HandlerFunc{
		"recovery outside": nil,
		"recovery inside":  {gin.RecoveryWithWriter(io.Discard)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			chain := append([]gin.HandlerFunc{umavezgin.Opaque(s.once)}, inside...)
			s.POST("/pagar", append(chain, s.counted(func(c *gin.Context) {
				c.Header("X-Half", "1")
				c.String(201, "half an answer")
				if inside != nil {
					panic(errors.New("after the charge")) // gin leaves what is written
				}
				panic("after the charge")
			}))...)
			first := s.post(t, "/pagar", "k", payment)
			again := s.post(t, "/pagar", "k", payment)
			if inside == nil {
				if first.status != 500 || first.body != "" || first.seen.status != 500 || first.header.Get("X-Half") != "" {
					t.Errorf("first: %v, seen %+v", first, first.seen)
				}
				if again.status != 409 || again.code() != "outcome-unknown" {
					t.Errorf("again: %v", again)
				}
			} else if again.status != first.status || again.body != first.body {
				t.Errorf("first: %v\nagain: %v", first, again)
			}
			s.ran(t, 1)
		})
	}
}

// TestR8_PanicInside: with nothing written, recovery inside makes a 500 of it,
// which is kept as the last word of an unknown outcome (rule A5).
func TestR8_PanicInside(t *testing.T) {
	s := newService(t)
	s.POST("/pagar", umavezgin.Opaque(s.once), gin.RecoveryWithWriter(io.Discard),
		s.counted(func(*gin.Context) { panic("after the charge") }))
	first := s.post(t, "/pagar", "k", payment)
	again := s.post(t, "/pagar", "k", payment)
	if first.status != 500 || first.header.Get("Idempotency-Status") != "unknown" ||
		again.status != 500 || !again.replayed() || again.header.Get("Idempotency-Status") != "unknown" {
		t.Errorf("first: %v\nagain: %v", first, again)
	}
	s.ran(t, 1)
}

// TestErrors: what makes answers of c.Errors stands inside. Outside it comes too
// late, and changes nothing that is stored.
func TestErrors(t *testing.T) {
	answer := func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 && !c.Writer.Written() {
			c.JSON(http.StatusConflict, gin.H{"error": c.Errors.Last().Error()})
		}
	}
	s := newService(t)
	fail := s.counted(func(c *gin.Context) { _ = c.Error(errors.New("sold out")) })
	s.POST("/inside", umavezgin.Opaque(s.once), answer, fail)
	first := s.post(t, "/inside", "k", payment)
	if first.status != 409 || first.body != `{"error":"sold out"}` {
		t.Errorf("inside: %v", first)
	}
	s.post(t, "/inside", "k", payment).mustReplay(t, first)

	s.POST("/outside", answer, umavezgin.Opaque(s.once), fail)
	first = s.post(t, "/outside", "k2", payment)
	again := s.post(t, "/outside", "k2", payment)
	for _, r := range []reply{first, again} {
		if r.status != 500 || r.body != "" || r.header.Get("Idempotency-Status") != "unknown" {
			t.Errorf("outside: %v", r)
		}
	}
	s.ran(t, 2)
}

// TestR9_Streams: an event stream goes out as it comes, and is not kept.
func TestR9_Streams(t *testing.T) {
	s := newService(t)
	next := make(chan struct{})
	s.POST("/eventos", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
		c.SSEvent("status", "first")
		c.Writer.Flush()
		<-next
		c.SSEvent("status", "second")
	}))
	s.POST("/long", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
		c.String(200, strings.Repeat("x", 2<<20))
	}))
	res, err := s.Client().Do(s.request(t, http.MethodPost, "/eventos", "k", payment))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body := bufio.NewReader(res.Body)
	if line, err := body.ReadString('\n'); err != nil || line != "event:status\n" {
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
	for name, hijack := range map[string]func(*gin.Context) (net.Conn, *bufio.ReadWriter, error){
		"Hijack": func(c *gin.Context) (net.Conn, *bufio.ReadWriter, error) { return c.Writer.Hijack() },
		"controller": func(c *gin.Context) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(c.Writer).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.POST("/ws", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
				conn, rw, err := hijack(c)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
				rw.Flush()
			}))
			if r := s.post(t, "/ws", "k", payment); r.status != 200 || r.body != "hi" || r.seen.aborted || !r.seen.written {
				t.Errorf("%v, seen %+v", r, r.seen)
			}
			if r := s.post(t, "/ws", "k", payment); r.status != 409 || r.code() != "replay-unavailable" {
				t.Errorf("%v", r)
			}
			s.ran(t, 1)
		})
	}
}

// TestHandleContext: an answer that goes past the middleware would be stored as
// an empty one. It is none.
func TestHandleContext(t *testing.T) {
	s := newService(t)
	s.POST("/pagar", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
		c.Request.URL.Path = "/elsewhere"
		s.HandleContext(c)
	}))
	s.POST("/elsewhere", func(c *gin.Context) { c.String(201, "paid") })
	r := s.mustDo(t, s.request(t, http.MethodPost, "/pagar", "k", payment))
	again := s.mustDo(t, s.request(t, http.MethodPost, "/pagar", "k", payment))
	if r.status != 201 || again.status != 409 || again.code() != "outcome-unknown" {
		t.Errorf("%v, then %v", r, again)
	}
	s.ran(t, 1)
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
		service := gin.New()
		service.POST("/pagar", authenticate, umavezgin.Rerunnable(onceOver(t, eng, umavezhttp.Route{})),
			func(c *gin.Context) { <-c.Request.Context().Done() })
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
	s.MaxMultipartMemory = 1
	var parsed string
	s.POST("/upload", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
		header, err := c.FormFile("f")
		if err != nil {
			t.Error(err)
			return
		}
		f, err := header.Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if file, ok := f.(*os.File); ok {
			parsed = file.Name()
		}
		c.String(200, c.PostForm("id"))
	}))
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
	s.POST("/pagar", umavezgin.Opaque(s.once), s.counted(func(c *gin.Context) {
		c.AbortWithStatusJSON(http.StatusServiceUnavailable, gin.H{"error": "closed"})
	}))
	for i := range 2 {
		if r := s.post(t, "/pagar", "k", payment); r.status != 503 || r.replayed() {
			t.Errorf("%v", r)
		}
		s.ran(t, int64(i+1))
	}
}

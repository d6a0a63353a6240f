package interop

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

func newOnce(t *testing.T) *umavezhttp.Once {
	t.Helper()
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "loja", Principal: umavezhttp.Anonymous})
	if err != nil {
		t.Fatal(err)
	}
	return once
}

func post(t *testing.T, url string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url+"/pagamentos", strings.NewReader(`{"valor":12.5}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "pedido-42")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

// TestGinRecovery: a handler charges and then panics. gin's recovery, inside
// the protection, turns the panic into a plain 500, which looks like an answer
// that says it failed; outside, it sees a panic that the middleware passed on.
// Either way the card is charged once, and the retry is told that the outcome
// is unknown.
func TestGinRecovery(t *testing.T) {
	gin.SetMode(gin.TestMode)
	for name, nest := range map[string]func(*testing.T, gin.HandlerFunc) http.Handler{
		"recovery inside": func(t *testing.T, pay gin.HandlerFunc) http.Handler {
			r := gin.New()
			r.Use(gin.RecoveryWithWriter(io.Discard))
			r.POST("/pagamentos", pay)
			return newOnce(t).Opaque(r)
		},
		"recovery outside": func(t *testing.T, pay gin.HandlerFunc) http.Handler {
			inner := gin.New()
			inner.POST("/pagamentos", pay)
			outer := gin.New()
			outer.Use(gin.RecoveryWithWriter(io.Discard))
			outer.Any("/*path", gin.WrapH(newOnce(t).Opaque(inner)))
			return outer
		},
	} {
		t.Run(name, func(t *testing.T) {
			var charges atomic.Int32
			h := nest(t, func(*gin.Context) {
				charges.Add(1)
				panic("after the charge")
			})
			srv := httptest.NewServer(h)
			t.Cleanup(srv.Close)
			if status, _, _ := post(t, srv.URL); status != http.StatusInternalServerError {
				t.Errorf("first attempt: %d, want 500", status)
			}
			for range 3 {
				status, header, body := post(t, srv.URL)
				unknown := header.Get("Idempotency-Status") == "unknown" || strings.Contains(body, "outcome-unknown")
				if !unknown {
					t.Errorf("retry: %d %v %s; want an answer that says unknown", status, header, body)
				}
			}
			if n := charges.Load(); n != 1 {
				t.Errorf("%d charges", n)
			}
		})
	}
}

// TestGinAnswers: what gin's context writes is replayed byte for byte.
func TestGinAnswers(t *testing.T) {
	gin.SetMode(gin.TestMode)
	var runs atomic.Int32
	r := gin.New()
	r.POST("/pagamentos", func(c *gin.Context) {
		runs.Add(1)
		var in struct{ Valor float64 }
		if err := c.ShouldBindJSON(&in); err != nil {
			t.Errorf("the handler's body: %v", err)
		}
		c.Header("Location", "/pagamentos/1")
		c.JSON(http.StatusCreated, gin.H{"id": runs.Load(), "status": "aprovado", "valor": in.Valor})
	})
	srv := httptest.NewServer(newOnce(t).Opaque(r))
	t.Cleanup(srv.Close)
	s1, h1, b1 := post(t, srv.URL)
	s2, h2, b2 := post(t, srv.URL)
	if s1 != http.StatusCreated || s2 != s1 || !bytes.Equal([]byte(b1), []byte(b2)) || h2.Get("Location") != h1.Get("Location") {
		t.Errorf("first %d %s, then %d %s", s1, b1, s2, b2)
	}
	if h1.Get("Idempotent-Replayed") != "" || h2.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replay marks %q and %q", h1.Get("Idempotent-Replayed"), h2.Get("Idempotent-Replayed"))
	}
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

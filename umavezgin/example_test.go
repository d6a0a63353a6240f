package umavezgin_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezgin"
	"github.com/umavez/umavez/umavezhttp"
)

// account is the authentication of the examples.
func account(c *gin.Context) {
	user, password, ok := c.Request.BasicAuth()
	if !ok || password != "secret" {
		c.AbortWithStatus(http.StatusUnauthorized)
		return
	}
	c.Set("account", user)
}

// pay sends a payment with a key, and returns the answer.
func pay(h http.Handler, path, body string) string {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.SetBasicAuth("acme", "secret")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "3e4bdc5a-6f2c-4c9e-9a57-41d1a3e8f0b2")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := fmt.Sprint(w.Code, " ", w.Body)
	if w.Header().Get("Idempotent-Replayed") == "true" {
		answer += " (replayed)"
	}
	return strings.TrimSpace(answer)
}

// Logger and recovery stand outside of the middleware, authentication before it,
// and the operation behind it.
func Example() {
	gin.SetMode(gin.ReleaseMode)
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	defer eng.Close(context.Background())
	once, err := umavezhttp.New(eng, umavezhttp.Options{
		Namespace: "loja",
		Principal: umavezgin.Principal(func(c *gin.Context) (string, error) { return c.GetString("account"), nil }),
	})
	if err != nil {
		panic(err)
	}

	charges := 0
	r := gin.New()
	r.Use(gin.LoggerWithWriter(io.Discard), gin.Recovery(), account)
	r.POST("/pedidos/:id/pagar", umavezgin.Opaque(once), func(c *gin.Context) {
		charges++
		c.JSON(http.StatusCreated, gin.H{"pedido": c.Param("id"), "cobranca": charges})
	})

	fmt.Println(pay(r, "/pedidos/42/pagar", `{"valor":1990}`))
	fmt.Println(pay(r, "/pedidos/42/pagar", `{"valor":1990}`))
	fmt.Println(charges)
	// Output:
	// 201 {"cobranca":1,"pedido":"42"}
	// 201 {"cobranca":1,"pedido":"42"} (replayed)
	// 1
}

// A stepped operation goes on where the attempt before was lost: it panicked
// after the charge, and the retry does not charge again.
func ExampleStepped() {
	gin.SetMode(gin.ReleaseMode)
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	defer eng.Close(context.Background())
	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "loja", Principal: umavezhttp.BasicUser})
	if err != nil {
		panic(err)
	}

	attempts, charges := 0, 0
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard), account)
	r.POST("/pagar", umavezgin.Stepped(once), func(c *gin.Context) {
		attempts++
		id, err := umavez.Step(c.Request.Context(), "charge", func(_ context.Context, key string) (string, error) {
			charges++ // the gateway is sent key as its own Idempotency-Key
			return "ch_1", nil
		})
		if err != nil {
			c.AbortWithStatus(http.StatusBadGateway)
			return
		}
		if attempts == 1 {
			panic("after the charge")
		}
		c.JSON(http.StatusCreated, gin.H{"charge": id})
	})

	fmt.Println(pay(r, "/pagar", `{"valor":1990}`))
	fmt.Println(pay(r, "/pagar", `{"valor":1990}`))
	fmt.Println(attempts, charges)
	// Output:
	// 500
	// 201 {"charge":"ch_1"}
	// 2 1
}

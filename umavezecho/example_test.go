package umavezecho_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezecho"
	"github.com/umavez/umavez/umavezhttp"
)

// account is the authentication of the examples.
var account = middleware.BasicAuth(func(c *echo.Context, user, password string) (bool, error) {
	c.Set("account", user)
	return password == "secret", nil
})

// pay sends a payment with a key, and returns the answer.
func pay(h http.Handler, path, body string) string {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.SetBasicAuth("acme", "secret")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "3e4bdc5a-6f2c-4c9e-9a57-41d1a3e8f0b2")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
	if w.Header().Get("Idempotent-Replayed") == "true" {
		answer += " (replayed)"
	}
	return answer
}

// Recovery and authentication stand outside of the middleware, and the operation
// inside.
func Example() {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	defer eng.Close(context.Background())
	once, err := umavezhttp.New(eng, umavezhttp.Options{
		Namespace: "loja",
		Principal: umavezecho.Principal(func(c *echo.Context) (string, error) { return echo.ContextGetOr(c, "account", "") }),
	})
	if err != nil {
		panic(err)
	}

	charges := 0
	e := echo.New()
	e.Use(middleware.Recover(), account)
	e.POST("/pedidos/:id/pagar", func(c *echo.Context) error {
		charges++
		return c.JSON(http.StatusCreated, map[string]any{"pedido": c.Param("id"), "cobranca": charges})
	}, umavezecho.Opaque(once))

	fmt.Println(pay(e, "/pedidos/42/pagar", `{"valor":1990}`))
	fmt.Println(pay(e, "/pedidos/42/pagar", `{"valor":1990}`))
	fmt.Println(charges)
	// Output:
	// 201 {"cobranca":1,"pedido":"42"}
	// 201 {"cobranca":1,"pedido":"42"} (replayed)
	// 1
}

// A stepped operation goes on where the attempt before was lost: it failed after
// the charge, and the retry does not charge again.
func ExampleStepped() {
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
	e := echo.New()
	e.Use(middleware.Recover(), account)
	e.POST("/pagar", func(c *echo.Context) error {
		attempts++
		id, err := umavez.Step(c.Request().Context(), "charge", func(_ context.Context, key string) (string, error) {
			charges++ // the gateway is sent key as its own Idempotency-Key
			return "ch_1", nil
		})
		if err != nil {
			return err
		}
		if attempts == 1 {
			return errors.New("after the charge")
		}
		return c.JSON(http.StatusCreated, map[string]any{"charge": id})
	}, umavezecho.Stepped(once))

	fmt.Println(pay(e, "/pagar", `{"valor":1990}`))
	fmt.Println(pay(e, "/pagar", `{"valor":1990}`))
	fmt.Println(attempts, charges)
	// Output:
	// 500 {"message":"Internal Server Error"}
	// 201 {"charge":"ch_1"}
	// 2 1
}

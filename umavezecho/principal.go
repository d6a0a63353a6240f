package umavezecho

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/umavez/umavez/umavezhttp"
)

// errNotInEcho is the mistake of a Once with [Principal] around a handler that
// echo did not call.
var errNotInEcho = errors.New("umavez: umavezecho.Principal is for middleware and handlers of this package")

// Principal returns the umavezhttp.Principal of a service whose authentication
// puts the caller into echo's context:
//
//	umavezecho.Principal(func(c *echo.Context) (string, error) { return echo.ContextGetOr(c, "conta", "") })
//
// The same rules hold: the caller must have been verified by a middleware
// outside, the string must be the same on every attempt, the empty one or
// umavezhttp.ErrUnauthenticated is refused with 401, and any other error with 503.
//
// It panics without a function.
func Principal(caller func(c *echo.Context) (string, error)) umavezhttp.Principal {
	if caller == nil {
		panic("umavez: umavezecho.Principal: without a function")
	}
	return func(r *http.Request) (string, error) {
		p, ok := r.Context().Value(passageKey{}).(*passage)
		if !ok {
			return "", errNotInEcho
		}
		return caller(p.c)
	}
}

// Status is umavezhttp.Once.Status: it tells callers where their keys stand, as
// JSON, inside the same authentication as the operations. The key is the last
// segment of the path:
//
//	e.GET("/.umavez/keys/:key", umavezecho.Status(once), authenticate)
func Status(once *umavezhttp.Once) echo.HandlerFunc {
	if once == nil {
		panic("umavez: umavezecho.Status needs a Once")
	}
	status := once.Status()
	return func(c *echo.Context) error {
		ctx := c.Request().Context()
		p := &passage{ResponseWriter: c.Response(), c: c}
		status.ServeHTTP(c.Response(), c.Request().WithContext(context.WithValue(ctx, passageKey{}, p)))
		return nil
	}
}

package umavezgin

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/umavez/umavez/umavezhttp"
)

// errNotInGin is the mistake of a Once with [Principal] around a handler that
// gin did not call.
var errNotInGin = errors.New("umavez: umavezgin.Principal is for middleware and handlers of this package")

// Principal returns the umavezhttp.Principal of a service whose authentication
// puts the caller into gin's context:
//
//	umavezgin.Principal(func(c *gin.Context) (string, error) { return c.GetString("conta"), nil })
//
// The same rules hold: the caller must have been verified by a handler before
// the middleware, the string must be the same on every attempt, the empty one or
// umavezhttp.ErrUnauthenticated is refused with 401, and any other error with 503.
//
// It panics without a function.
func Principal(caller func(c *gin.Context) (string, error)) umavezhttp.Principal {
	if caller == nil {
		panic("umavez: umavezgin.Principal: without a function")
	}
	return func(r *http.Request) (string, error) {
		p, ok := r.Context().Value(passageKey{}).(*passage)
		if !ok {
			return "", errNotInGin
		}
		return caller(p.c)
	}
}

// Status is umavezhttp.Once.Status: it tells callers where their keys stand, as
// JSON, inside the same authentication as the operations. The key is the last
// segment of the path:
//
//	r.GET("/.umavez/keys/:key", authenticate, umavezgin.Status(once))
//
// A key with a slash in it needs an engine with UseRawPath or UseEscapedPath.
func Status(once *umavezhttp.Once) gin.HandlerFunc {
	if once == nil {
		panic("umavez: umavezgin.Status needs a Once")
	}
	status := once.Status()
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		p := &passage{ResponseWriter: c.Writer, c: c}
		status.ServeHTTP(c.Writer, c.Request.WithContext(context.WithValue(ctx, passageKey{}, p)))
	}
}

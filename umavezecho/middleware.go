package umavezecho

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// Opaque protects the handler inside as umavezhttp.Once.Opaque does: nothing is
// known of it, so an attempt that is lost in the middle leaves the outcome
// unknown. At most once.
//
// A reconciler, if there is one, looks after the lost operations, as with
// umavezhttp.Once.Reconcile; the route needs a Name then. Without a Name,
// records are named for method and template: "POST /pedidos/:id/pagar".
//
// Opaque panics for what is wrong with its arguments, as http.ServeMux.Handle
// does: no Once, more than one reconciler, or one that cannot be registered.
func Opaque(once *umavezhttp.Once, reconciler ...umavez.Reconciler) echo.MiddlewareFunc {
	return protect("Opaque", once, (*umavezhttp.Once).Opaque, reconciler)
}

// Stepped protects a handler whose foreign calls are steps (see [umavez.Step]):
// after an attempt that was lost, the next one resumes after the last kept step.
// See umavezhttp.Once.Stepped for what that promises, and Opaque for the
// reconciler. It panics, too, for a route with KeepRequest.
func Stepped(once *umavezhttp.Once, reconciler ...umavez.Reconciler) echo.MiddlewareFunc {
	return protect("Stepped", once, (*umavezhttp.Once).Stepped, reconciler)
}

// Rerunnable protects a handler whose author declares that running it again is
// safe: after an attempt that was lost, the next one runs. At least once. See
// Opaque for the reconciler. It panics, too, for a route with KeepRequest.
func Rerunnable(once *umavezhttp.Once, reconciler ...umavez.Reconciler) echo.MiddlewareFunc {
	return protect("Rerunnable", once, (*umavezhttp.Once).Rerunnable, reconciler)
}

// protect checks what it can at wiring, and makes the middleware.
func protect(
	name string, once *umavezhttp.Once,
	policy func(*umavezhttp.Once, http.Handler) http.Handler, reconciler []umavez.Reconciler,
) echo.MiddlewareFunc {
	switch {
	case once == nil:
		panic("umavez: umavezecho." + name + " needs a Once")
	case len(reconciler) > 1:
		panic("umavez: umavezecho." + name + ": a route has one reconciler at most")
	case name != "Opaque" && once.KeepsRequests():
		panic("umavez: umavezecho." + name + ": Route.KeepRequest is for a completer, which cannot run echo's handlers " +
			"outside of echo; leave it out, or enrol a net/http handler by umavezhttp.Once." + name)
	}
	protected := policy(once, http.HandlerFunc(inside))
	for _, r := range reconciler {
		var err error
		if protected, err = once.Reconcile(protected, r); err != nil {
			panic(err.Error())
		}
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			if unrouted(c) {
				return next(c)
			}
			return serve(protected, next, c)
		}
	}
}

// unrouted reports whether the router has found nothing, as when the middleware
// is used for all routes and a path does not exist or takes another method:
// there is nothing to run once.
func unrouted(c *echo.Context) bool {
	name := c.RouteInfo().Name
	return name == echo.NotFoundRouteName || name == echo.MethodNotAllowedRouteName
}

// serve is the middleware for one request.
func serve(protected http.Handler, next echo.HandlerFunc, c *echo.Context) error {
	before := c.Request()
	if umavez.FromContext(before.Context()) != nil {
		panic("umavez: " + c.Path() + " is protected twice: " +
			"the inner one would wait for the outer one, which runs it")
	}
	p := &passage{ResponseWriter: c.Response(), c: c, next: next}
	r := before.WithContext(context.WithValue(before.Context(), passageKey{}, p))
	if c.Path() != "" {
		r.Pattern = r.Method + " " + c.Path()
	}
	defer func() {
		// net/http removes the files of a form that a handler has parsed, but
		// looks for them in the request that it made.
		if r.MultipartForm != nil {
			before.MultipartForm = r.MultipartForm
		}
	}()
	protected.ServeHTTP(p, r)
	if p.err != nil && !p.bare {
		c.SetResponse(&answered{c.Response()})
	}
	return p.err
}

// passage is a request on its way through the middleware: echo's context travels
// in the request's own, and the writer of whoever is outside is written through it.
type passage struct {
	http.ResponseWriter
	c    *echo.Context
	next echo.HandlerFunc
	bare bool  // without a key: nothing of it is ours
	err  error // the handler's
}

type passageKey struct{}

// Unwrap is for http.ResponseController.
func (p *passage) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// inside is the handler that the middleware protects: the rest of echo's chain.
// w is the passage itself when the request has no key, or is not enrolled.
func inside(w http.ResponseWriter, r *http.Request) {
	p := r.Context().Value(passageKey{}).(*passage)
	c := p.c
	if w == http.ResponseWriter(p) {
		p.bare = true
		p.err = p.next(c)
		return
	}
	outside, request := c.Response(), c.Request()
	own := echo.NewResponse(w, c.Logger())
	own.Status = http.StatusOK // as echo's own begins
	c.SetResponse(own)
	c.SetRequest(r)
	defer func() {
		c.SetResponse(outside)
		c.SetRequest(request)
	}()
	if p.err = p.next(c); p.err == nil {
		return
	}
	c.Echo().HTTPErrorHandler(c, p.err)
	if !own.Committed {
		// Nobody knows what it should have said, and silence reads as 200.
		own.WriteHeader(http.StatusInternalServerError)
	}
}

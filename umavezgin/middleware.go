package umavezgin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// Opaque protects the handlers behind it as umavezhttp.Once.Opaque does: nothing
// is known of them, so an attempt that is lost in the middle leaves the outcome
// unknown. At most once.
//
// A reconciler, if there is one, looks after the lost operations, as with
// umavezhttp.Once.Reconcile; the route needs a Name then. Without a Name,
// records are named for method and template: "POST /pedidos/:id/pagar".
//
// Opaque panics for what is wrong with its arguments, as http.ServeMux.Handle
// does: no Once, more than one reconciler, or one that cannot be registered.
func Opaque(once *umavezhttp.Once, reconciler ...umavez.Reconciler) gin.HandlerFunc {
	return protect("Opaque", once, (*umavezhttp.Once).Opaque, reconciler)
}

// Stepped protects handlers whose foreign calls are steps (see [umavez.Step]):
// after an attempt that was lost, the next one resumes after the last kept step.
// See umavezhttp.Once.Stepped for what that promises, and Opaque for the
// reconciler. It panics, too, for a route with KeepRequest.
func Stepped(once *umavezhttp.Once, reconciler ...umavez.Reconciler) gin.HandlerFunc {
	return protect("Stepped", once, (*umavezhttp.Once).Stepped, reconciler)
}

// Rerunnable protects handlers whose author declares that running them again is
// safe: after an attempt that was lost, the next one runs. At least once. See
// Opaque for the reconciler. It panics, too, for a route with KeepRequest.
func Rerunnable(once *umavezhttp.Once, reconciler ...umavez.Reconciler) gin.HandlerFunc {
	return protect("Rerunnable", once, (*umavezhttp.Once).Rerunnable, reconciler)
}

// protect checks what it can at wiring, and makes the middleware.
func protect(
	name string, once *umavezhttp.Once,
	policy func(*umavezhttp.Once, http.Handler) http.Handler, reconciler []umavez.Reconciler,
) gin.HandlerFunc {
	switch {
	case once == nil:
		panic("umavez: umavezgin." + name + " needs a Once")
	case len(reconciler) > 1:
		panic("umavez: umavezgin." + name + ": a route has one reconciler at most")
	case name != "Opaque" && once.KeepsRequests():
		panic("umavez: umavezgin." + name + ": Route.KeepRequest is for a completer, which cannot run gin's handlers " +
			"outside of gin; leave it out, or enrol a net/http handler by umavezhttp.Once." + name)
	}
	next := policy(once, http.HandlerFunc(inside))
	for _, r := range reconciler {
		var err error
		if next, err = once.Reconcile(next, r); err != nil {
			panic(err.Error())
		}
	}
	return (&middleware{next}).serve
}

// middleware is a gin.HandlerFunc by its method.
type middleware struct {
	next http.Handler // inside, protected
}

func (m *middleware) serve(c *gin.Context) {
	if c.FullPath() == "" && m.isLast(c) {
		return // no route, and nobody behind us
	}
	before := c.Request
	if umavez.FromContext(before.Context()) != nil {
		panic("umavez: " + c.FullPath() + " is protected twice: " +
			"the inner one would wait for the outer one, which runs it")
	}
	p := &passage{ResponseWriter: c.Writer, c: c}
	r := before.WithContext(context.WithValue(before.Context(), passageKey{}, p))
	if c.FullPath() != "" {
		r.Pattern = r.Method + " " + c.FullPath()
	}
	putBack(c, r)
	defer func() {
		// net/http removes the files of a form that a handler has parsed, but
		// looks for them in the request that it made.
		if r.MultipartForm != nil {
			before.MultipartForm = r.MultipartForm
		}
	}()
	m.next.ServeHTTP(p, r)
	if !p.bare {
		// gin keeps back a header without a body. Nobody outside may change an
		// answer that is stored.
		c.Writer.WriteHeaderNow()
	}
	if !p.entered {
		c.Abort() // it is answered, from the record or by a refusal
	}
}

// isLast reports whether nothing stands behind the middleware, as when it is used
// for a whole engine and a path does not exist: there is nothing to run once, and
// gin answers 404 by itself. Functions compare by where their code is.
func (m *middleware) isLast(c *gin.Context) bool {
	return reflect.ValueOf(c.Handler()).Pointer() == reflect.ValueOf(m.serve).Pointer()
}

// putBack gives r the body that somebody outside has read by
// c.ShouldBindBodyWith, which keeps a copy. Without it the key would stand for
// any body.
func putBack(c *gin.Context, r *http.Request) {
	if kept, ok := c.Get(gin.BodyBytesKey); ok {
		if body, ok := kept.([]byte); ok {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
	}
}

// passage is a request on its way through the middleware: gin's context travels
// in the request's own, and the writer of whoever is outside is written through it.
type passage struct {
	gin.ResponseWriter
	c       *gin.Context
	entered bool // the handlers behind the middleware were run
	bare    bool // without a key: nothing of it is ours
	begun   bool // the answer has begun to go out
}

type passageKey struct{}

// Unwrap is for http.ResponseController.
func (p *passage) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader is the beginning of what goes out.
func (p *passage) WriteHeader(code int) {
	p.begun = true
	p.ResponseWriter.WriteHeader(code)
}

// inside is the handler that the middleware protects: the rest of gin's chain.
// w is the passage itself when the request has no key, or is not enrolled.
func inside(w http.ResponseWriter, r *http.Request) {
	p := r.Context().Value(passageKey{}).(*passage)
	c := p.c
	p.entered = true
	if w == http.ResponseWriter(p) {
		p.bare = true
		c.Next()
		return
	}
	outside, request, errs := c.Writer, c.Request, len(c.Errors)
	answered := outside.Written()
	own := &writer{ResponseWriter: w, outside: outside, status: outside.Status(), size: unwritten}
	c.Writer, c.Request = own, r
	defer func() { c.Writer, c.Request = outside, request }()
	c.Next()
	if outside.Written() && !answered && !p.begun && !own.hijacked {
		panic("umavez: a handler has answered past the middleware, by Engine.HandleContext or a writer kept from outside")
	}
	own.finish(len(c.Errors) > errs)
}

// Package umavezecho is umavez for echo: the middleware of umavezhttp as an
// echo.MiddlewareFunc. It runs the handler behind it once for an Idempotency-Key,
// keeps its answer, and gives that answer to every other attempt.
//
//	once, err := umavezhttp.New(eng, umavezhttp.Options{
//		Namespace: "loja", Principal: umavezecho.Principal(conta),
//	})
//	e := echo.New()
//	e.Use(middleware.RequestLogger(), middleware.Recover())
//	e.POST("/pedidos/:id/pagar", pagar, authenticate, umavezecho.Opaque(once))
//
// The policy is the function that makes the middleware, so that the route table
// shows what is promised: [Opaque], [Stepped] or [Rerunnable].
//
// # Where it stands
//
// Inside of the logger, recovery, CORS, compression and authentication; outside
// of everything that belongs to the operation: binding, validation, the handler.
// echo runs a route's middleware in the order in which they are given. A replay
// or a refusal runs nothing inside.
//
// It belongs on routes, groups or Use, and not on Pre, where neither the route
// nor the caller is known yet.
//
// Recovery stands outside: a panic leaves the outcome unknown, recovery answers
// it, and that 500 is not kept. It may stand inside, too; then the 500 is an
// answer that does not say whether it happened, which comes to the same.
//
// Nothing outside may have read the request's body without putting it back: such
// a request is refused. A timeout belongs inside.
//
// # Errors
//
// An error that the handler returns is answered by echo's HTTPErrorHandler at
// once, inside, so that what is stored is what the client sees. It is returned
// to who is outside all the same, for loggers and tracers; nothing that they, or
// an HTTPErrorHandler that does not look at Response.Committed, write then gets
// into the answer. If the HTTPErrorHandler writes nothing, the answer is a 500.
//
// # What handlers see
//
// c.Request() and c.Response() are the operation's for as long as the handler
// runs, and echo.UnwrapResponse finds an *echo.Response; params, c.Get and c.Set
// are echo's own, as ever. [umavez.Step] and the like take c.Request().Context().
// That context does not end when the client leaves, and echo's is not given to
// another request before the handler has returned.
//
// Outside, Status, Size and Committed of the *echo.Response tell what has been
// answered, on replays and refusals, too.
//
// # What it does not do
//
// A completer cannot run echo's handlers without echo, so [Stepped] and
// [Rerunnable] panic for a route with KeepRequest. [Opaque] takes one with a
// reconciler, which needs no handler. umavezhttp.TakeBack does not work on
// c.Response().
//
// This package imports echo v5, umavez and umavezhttp. Start reading at
// middleware.go.
package umavezecho

// Package umavezgin is umavez for gin: the middleware of umavezhttp as a
// gin.HandlerFunc. It runs the handlers behind it once for an Idempotency-Key,
// keeps their answer, and gives that answer to every other attempt.
//
//	once, err := umavezhttp.New(eng, umavezhttp.Options{
//		Namespace: "loja", Principal: umavezgin.Principal(conta),
//	})
//	r := gin.New()
//	r.Use(gin.Logger(), gin.Recovery())
//	r.POST("/pedidos/:id/pagar", authenticate, umavezgin.Opaque(once), pagar)
//
// The policy is the function that makes the middleware, so that the route table
// shows what is promised: [Opaque], [Stepped] or [Rerunnable].
//
// # Where it stands
//
// Behind (inside of) the logger, recovery, CORS, compression and authentication;
// before everything that belongs to the operation: binding, validation, the
// handler, and whatever makes an answer of c.Errors. A replay or a refusal runs
// nothing behind it and aborts the chain.
//
// Recovery stands outside: a panic leaves the outcome unknown, recovery answers
// it, and that 500 is not kept. It may stand inside, too; then the 500 is an
// answer that does not say whether it happened, which comes to the same.
//
// Nothing outside may have read the request's body without putting it back,
// except by c.ShouldBindBodyWith, whose copy is used. Such a request is refused.
//
// A timeout belongs inside. Outside, a middleware that answers while the
// handlers go on in another goroutine would give gin's context to the next
// request under their hands, with umavez or without.
//
// # What handlers see
//
// c.Request and c.Writer are the operation's for as long as the handlers behind
// the middleware run; params, c.Get, c.Set and c.Errors are gin's own, as ever.
// [umavez.Step] and the like take c.Request.Context(). They take c itself, too, if
// the engine has ContextWithFallback; without it they return umavez.ErrNoAttempt.
// That context does not end when the client leaves, and gin's is not given to
// another request before the handlers have returned.
//
// A handler that reports by c.Error and writes nothing leaves its answer to a
// middleware. If that one stands outside, the answer is complete before it comes
// to speak: it is a 500 then, which an opaque operation calls unknown. What
// writes answers of c.Errors belongs inside.
//
// Outside, c.Writer.Status, Size and Written tell what has been answered, on
// replays and refusals, too, and whatever is outside can add nothing to it.
//
// # What it does not do
//
// A completer cannot run gin's handlers without gin, so [Stepped] and
// [Rerunnable] panic for a route with KeepRequest. [Opaque] takes one with a
// reconciler, which needs no handler. A handler must not use
// Engine.HandleContext, which answers past the middleware: it panics then, and
// the outcome is unknown. umavezhttp.TakeBack does not work on c.Writer.
//
// This package imports gin, umavez and umavezhttp. Start reading at middleware.go.
package umavezgin

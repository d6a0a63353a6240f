// Package umavezhttp is umavez for net/http: a middleware that runs a handler
// once for an Idempotency-Key, keeps its answer, and gives that answer to every
// other attempt.
//
//	eng, err := umavez.New(store, umavez.Options{})
//	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "loja", Principal: tenant})
//	mux.Handle("POST /pagamentos", auth(once.Opaque(pagar)))
//
// It stands inside of what knows the caller (authentication, CORS) and of what
// changes bytes on their way out (compression), and outside of everything that
// belongs to the operation: a retry that is answered from the record reaches
// nothing inside of it.
//
// A request goes one way, and the files go with it:
//
//   - middleware.go: is the request enrolled, and under which key? key.go,
//     principal.go, body.go and fingerprint.go read it;
//   - run.go: the engine has granted the key, so the handler runs, and recorder.go
//     holds back what it writes;
//   - classify.go and stored.go: what its answer proves, and what of it is kept
//     (answer.go, answer_codec.go). Then the attempt ends, and only then does the
//     answer go out (first.go), unless it had to go out live (stream.go);
//   - replay.go: another attempt is answered from the record. problem.go is for
//     what is refused.
//
// Lost operations have a way of their own: keeprequest.go takes the request down
// with its claim (request.go, request_codec.go), complete.go runs the handler with it when the client does not
// come back, and reconcile.go is for those of which nobody may run anything again.
// status.go tells a caller where its key stands.
//
// The rules that the comments name (K1 to P11) are those of docs/http.md.
//
// This package imports the engine and nothing else of this module outside
// internal; it knows no store.
package umavezhttp

// Package proxy is the sidecar as a library: an http.Handler that stands in
// front of an API in any language and protects the routes that are enrolled.
// Everything else passes through.
//
// Where to start reading:
//
//   - proxy.go is the way of a request: CORS, route, caller, key, upstream;
//   - routes.go and disguise.go say which requests are enrolled, and which only
//     look as if they were not;
//   - forward.go and outcome.go send a protected request, and say what came of it;
//   - transport.go, send.go, pool.go and warmth.go see to it that it is sent once,
//     that it is known whether it was, and on which connection; poolwatch.go is
//     what becomes of connections that nobody uses;
//   - principals.go and its neighbours find out who is calling.
//
// It imports the standard library, umavez, umavezhttp and internal/wire.
package proxy

// Package bench measures umavez beside a peer: the CPU time that the middleware
// adds to a request, over a store in memory, beside what fiber's idempotency
// middleware adds to one, each over a harness of its own.
//
// It has nothing but benchmarks. Start at speed_test.go; interleave_test.go says
// how it is measured, and umavez_test.go and fiber_test.go what. README.md says
// how to run it and what came out. What a store costs beside its bare driver is
// measured in the store's own package, since that needs its statements.
//
// The package may import everything; nothing imports it.
package bench

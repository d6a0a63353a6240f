// Package bench measures umavez beside a peer and beside the bare limits of what
// it stands on. It has nothing but benchmarks:
//
//   - speed_test.go: CPU time of the middleware over a store in memory, beside
//     fiber's idempotency middleware, each over a harness of its own;
//   - sqlite_test.go: keys a second over SQLite, beside the same statements
//     through the driver alone.
//
// README.md says how to run them, what is compared with what, and what was
// measured. The package may import everything; nothing imports it.
package bench

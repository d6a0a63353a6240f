// Package serve is the sidecar as a process: settings from flags, environment
// and file, the store, the listeners, the admin address, and the drain.
//
// Where to start reading:
//
//   - settings.go lists every setting, and merge.go says which source wins;
//   - config.go turns settings into a checked [Config], or an error that names
//     the option and the value;
//   - run.go is the life of the process, and drain.go its end.
//
// What happens to a request is decided by package proxy; this package only
// builds it, verifies tokens for it (jwt.go) and counts what it does
// (metrics.go).
package serve

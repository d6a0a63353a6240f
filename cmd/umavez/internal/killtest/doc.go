// Package killtest holds tests alone: they kill `umavez serve` with SIGKILL
// under load, in every phase of an operation, start it again on the same file,
// and then audit the ledger of the upstream.
//
// Where to start reading: phase_test.go lists the places of death, kill_test.go
// is the course of a test, and audit_test.go says what must hold afterwards.
package killtest

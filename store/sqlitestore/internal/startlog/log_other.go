//go:build !linux

package startlog

import "github.com/umavez/umavez"

// Owner names a process's log. A claim keeps it in its record.
type Owner [16]byte

// Log is the log of this process. Here it remembers nothing.
type Log struct{}

// Open returns a log that remembers nothing.
func Open(string) (*Log, error) { return &Log{}, nil }

// Owner is zero: no owner.
func (*Log) Owner() Owner { return Owner{} }

// Started does nothing.
func (*Log) Started(umavez.AttemptID) error { return nil }

// Ended does nothing.
func (*Log) Ended(umavez.AttemptID) {}

// Close does nothing.
func (*Log) Close() error { return nil }

// Dead is the log of an owner that is dead.
type Dead struct{ Owner Owner }

// NeverStarted knows of no attempt.
func (*Dead) NeverStarted(umavez.AttemptID) bool { return false }

// Sweep finds no logs.
func Sweep(string, func(*Dead) error) error { return nil }

package serve

import "fmt"

// UsageError is a setting that cannot be: the process does not start, and exits
// with status 2. Its text names the option and the value.
type UsageError struct{ err error }

// Error begins with "umavez: ".
func (e *UsageError) Error() string { return "umavez: " + e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &UsageError{err: fmt.Errorf(format, args...)}
}

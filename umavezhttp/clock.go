package umavezhttp

import "time"

// wallClock is the one clock of this package. It tells since when a duplicate
// has waited, and dates Idempotency-Expires. No record depends on it.
func wallClock() time.Time {
	return time.Now() //nolint:forbidigo // this is the clock that everything else here is handed
}

package umavezhttp

import "time"

// wallClock is the one clock of this package. It measures how much of a
// duplicate's patience went by before its claim, and dates Idempotency-Expires.
// No record depends on it.
func wallClock() time.Time {
	return time.Now() //nolint:forbidigo // this is the clock that everything else here is handed
}

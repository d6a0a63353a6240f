package umavez

import "time"

// A reading is what the process's two clocks say. The wall clock can be set
// back; the monotonic clock stands still while a machine is suspended. Time
// that has passed is what the clock says that saw more of it.
type reading struct {
	wall time.Time
	mono time.Duration
}

// clock reads the process's clocks. Deadlines inside the engine are kept by it;
// leases are decided by the store's clock alone.
type clock func() reading

// systemClock reads the operating system's clocks, monotonic time from now on.
func systemClock() clock {
	start := time.Now()
	return func() reading {
		now := time.Now()
		return reading{wall: now.Round(0), mono: now.Sub(start)}
	}
}

// since returns the time from then to r, by the clock that saw more of it.
func (r reading) since(then reading) time.Duration {
	return max(r.wall.Sub(then.wall), r.mono-then.mono)
}

// plus returns the reading at which both clocks have moved on by d.
func (r reading) plus(d time.Duration) reading {
	return reading{wall: r.wall.Add(d), mono: r.mono + d}
}

// left returns the time from now to r, by the clock that sees less of it.
func (r reading) left(now reading) time.Duration {
	return min(r.wall.Sub(now.wall), r.mono-now.mono)
}

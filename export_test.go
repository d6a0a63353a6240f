package umavez

import "time"

// SealedStore is what an engine with this sealer calls instead of the store.
func SealedStore(base Store, sealer Sealer) Store { return &sealedStore{base: base, sealer: sealer} }

// SetClock gives the engine a clock of the test's: wall and monotonic time
// since the test began.
func (o *Options) SetClock(read func() (wall, mono time.Duration)) {
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o.clock = func() reading {
		wall, mono := read()
		return reading{wall: epoch.Add(wall), mono: mono}
	}
}

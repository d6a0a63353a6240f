package sqlitestore

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// untilNotBusy repeats f while another process has the lock, for as long as
// patience lasts and done is open.
//
// SQLite can wait by itself, but with pauses that grow to a tenth of a second:
// beside a process that commits all the time and leaves the lock free for a few
// microseconds only, it goes away empty-handed. Short pauses of random length
// cost little, and find a gap.
func untilNotBusy(done <-chan struct{}, patience time.Duration, f func() error) error {
	err := f()
	if !isBusy(err) {
		return err
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	for isBusy(err) {
		pause := time.NewTimer(pauseLeast + rand.N(pauseSpread))
		select {
		case <-pause.C:
		case <-over.C:
			pause.Stop()
			return fmt.Errorf("another process has held the file's lock for %v: %w", patience, err)
		case <-done:
			pause.Stop()
			return fmt.Errorf("another process holds the file's lock: %w", err)
		}
		err = f()
	}
	return err
}

// A transaction of another process takes about as long as a sync of the disk:
// some hundred microseconds to some milliseconds.
const (
	pauseLeast  = 200 * time.Microsecond
	pauseSpread = 800 * time.Microsecond
)

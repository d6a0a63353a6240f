package memstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/store/storetest"
)

// TestContract runs by the machine's clock, as programs do.
func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Config{Open: func(*testing.T) storetest.Opened {
		return storetest.Opened{Store: memstore.New(memstore.Options{})}
	}})
}

// TestContractOverLongTimes runs by a clock that the suite moves, so that hours
// and months pass.
func TestContractOverLongTimes(t *testing.T) {
	storetest.Run(t, storetest.Config{Open: func(*testing.T) storetest.Opened {
		c := newClock()
		return storetest.Opened{Store: memstore.New(memstore.Options{Now: c.Now}), Advance: c.Advance}
	}})
}

// clock is a clock that stands still until it is moved.
type clock struct{ passed atomic.Int64 }

func newClock() *clock { return &clock{} }

func (c *clock) Now() time.Time {
	return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC).Add(time.Duration(c.passed.Load()))
}

func (c *clock) Advance(d time.Duration) { c.passed.Add(int64(d)) }

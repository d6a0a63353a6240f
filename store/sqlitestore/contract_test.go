package sqlitestore

import (
	"context"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/storetest"
)

// By a clock that the suite moves: leases and retentions of hours.
func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Config{Open: func(t *testing.T) storetest.Opened {
		c := newClock()
		return opened(t, Options{Now: c.Now}, c.advance)
	}})
}

// By the machine's own clock: leases of milliseconds that really run out.
func TestContractByTheWallClock(t *testing.T) {
	storetest.Run(t, storetest.Config{Sequences: 10, Open: func(t *testing.T) storetest.Opened {
		return opened(t, Options{}, nil)
	}})
}

// starting is a store whose claims all start, as the suite's do: it ends stores
// and looks for what was running. What had not started would be released.
type starting struct{ *Store }

func (s starting) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	rec, acquired, err := s.Store.Claim(ctx, id, req)
	if acquired {
		err = s.Started(umavez.Lease{ID: id, Attempt: req.Attempt, Fence: rec.Fence})
	}
	return rec, acquired, err
}

// opened is a store on a file of its own, with what else the suite asks for.
func opened(t *testing.T, o Options, advance func(time.Duration)) storetest.Opened {
	path := file(t)
	s := open(t, path, o)
	return storetest.Opened{
		Store: starting{s},
		Peer:  func(t *testing.T) umavez.Store { return starting{open(t, path, o)} },
		Reopen: func(t *testing.T) umavez.Store {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			return starting{open(t, path, o)}
		},
		Advance: advance,
	}
}

package sqlitestore

import (
	"database/sql/driver"
	"sync/atomic"
	"time"

	"github.com/umavez/umavez"
)

// unsettled estimates how many records of a scope are running or lost, so that
// not every claim has to count them: by the last count, and what this process
// has granted since. That is never less than there are, but for what other
// processes have granted since the count. It is more when something has ended
// meanwhile; so a claim is never refused by the estimate alone.
type unsettled struct {
	scopes    map[umavez.ScopeID]counted
	recounted atomic.Uint64
}

type counted struct {
	n  int
	at umavez.Instant
}

// recountAfter is how old a count may be: the contract's second, within which
// processes may overshoot by what they do not know of each other.
const recountAfter = time.Second

// countedScopes bounds the estimates; with more they start over. At 64 bytes
// each they take a quarter of a megabyte.
const countedScopes = 4096

// count returns how many records of the scope are unsettled, as far as it
// matters for the bound: at or over it the number is a count of this moment.
func (u *unsettled) count(t *tx, scope umavez.ScopeID, bound int) (int, error) {
	c, ok := u.scopes[scope]
	age := t.now.Sub(c.at)
	if ok && c.n < bound && age >= 0 && age < recountAfter {
		return c.n, nil
	}
	c = counted{at: t.now}
	t.c.bind(0, zeroIsNull((*[16]byte)(&scope)), int64(bound))
	err := t.c.query(stCount, 2, func(v []driver.Value) error {
		s := scanner{values: v}
		c.n = int(s.integer())
		return s.err
	})
	if err != nil {
		return 0, err
	}
	u.recounted.Add(1)
	if c.n >= bound {
		// Counted no further than to this request's bound; another one's may be
		// higher. At the bound every claim counts anyway.
		delete(u.scopes, scope)
		return c.n, nil
	}
	if u.scopes == nil || len(u.scopes) >= countedScopes {
		u.scopes = make(map[umavez.ScopeID]counted)
	}
	u.scopes[scope] = c
	return c.n, nil
}

// granted is called when a vacant key was claimed.
func (u *unsettled) granted(scope umavez.ScopeID) {
	if c, ok := u.scopes[scope]; ok {
		c.n++
		u.scopes[scope] = c
	}
}

// forget is called when a transaction was not committed: what it counted may not
// be so.
func (u *unsettled) forget() { clear(u.scopes) }

package memstore

import (
	"sync"

	"github.com/umavez/umavez"
)

// unsettledList holds the running and lost rows of a shard, in no order: few among
// many done ones, and what operators, reconcilers and completers ask for. Rows
// know their place in it.
type unsettledList []*resident

// place puts a row where it belongs after a change, in or out.
func (l *unsettledList) place(r *resident) {
	switch unsettled := r.unsettled(); {
	case unsettled && r.listed == notListed:
		r.listed = int32(len(*l)) // a shard never holds 2³¹ rows
		*l = append(*l, r)
	case !unsettled && r.listed != notListed:
		last := len(*l) - 1
		moved := (*l)[last]
		(*l)[r.listed], moved.listed = moved, r.listed
		(*l)[last] = nil
		*l, r.listed = (*l)[:last], notListed
	}
}

// notListed is the place of a row that is neither running nor lost.
const notListed = -1

// scopeCounts tells how many running and lost records each scope has. Scopes
// without any take no room. The stripes' mutexes are taken with a shard's held,
// never the other way round.
type scopeCounts [shardCount]scopeStripe

type scopeStripe struct {
	mu     sync.Mutex
	counts map[umavez.ScopeID]int
}

func (c *scopeCounts) stripe(scope umavez.ScopeID) *scopeStripe { return &c[scope[0]%shardCount] }

// add counts a record of the scope that has become unsettled, or one less. The
// caller holds the stripe's mutex.
func (s *scopeStripe) add(scope umavez.ScopeID, d int) {
	if n := s.counts[scope] + d; n > 0 {
		s.counts[scope] = n
	} else {
		delete(s.counts, scope)
	}
}

// move keeps the count of a row's scope when the row was written.
func (c *scopeCounts) move(scope umavez.ScopeID, was, is bool) {
	if was == is {
		return
	}
	s := c.stripe(scope)
	s.mu.Lock()
	defer s.mu.Unlock()
	if is {
		s.add(scope, 1)
	} else {
		s.add(scope, -1)
	}
}

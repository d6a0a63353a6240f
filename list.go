package umavez

import (
	"context"
	"slices"
	"time"
)

// Query says which records are wanted. Zero fields want everything; a record
// must fit all that are set.
type Query struct {
	// States are the states wanted; empty: all but Vacant, which is never listed.
	States []State
	// Unknown wants only records that stay unknown until they are settled: see
	// [Record.Unknown].
	Unknown   bool
	Reason    Reason
	Namespace string
	Scope     ScopeID
	Route     string
	// MinAge is the least time since the record's first claim.
	MinAge time.Duration
	// After is the last ID of the page before. Zero: from the beginning.
	After ID
	// Limit is the most that one page has: 1 to MaxPage.
	Limit int
}

// MaxPage is the most that one page of a list has.
const MaxPage = 1000

// Fits reports whether the query wants this record. Stores may look at less
// than all records, but answer with those that fit.
func (q *Query) Fits(rec *Record) bool {
	switch {
	case rec.State == Vacant,
		q.Unknown && !rec.Unknown(),
		q.Reason != "" && rec.Reason != q.Reason,
		q.Namespace != "" && rec.Namespace != q.Namespace,
		q.Scope != ScopeID{} && rec.Scope != q.Scope,
		q.Route != "" && rec.Route != q.Route,
		rec.Age < q.MinAge:
		return false
	}
	return len(q.States) == 0 || slices.Contains(q.States, rec.State)
}

// Unsettled reports whether the query wants nothing but running and lost
// records, of which a store has few, and an index.
func (q *Query) Unsettled() bool {
	if q.Unknown || q.Reason != "" {
		return true
	}
	settled := func(s State) bool { return s != Running && s != Lost }
	return len(q.States) > 0 && !slices.ContainsFunc(q.States, settled)
}

// Listed is a record as a list has it: without its answer, last word, request
// and the results of its steps, which may be large.
type Listed struct {
	ID ID
	Record
}

// Lister is implemented by stores that can list their records.
type Lister interface {
	// List returns the records that fit the query, in the order of their IDs,
	// from after q.After on, at most q.Limit of them; fewer mean that there are
	// no more. A record that changes while a list is paged through is on it as
	// it was or as it is, and none is on it twice.
	List(ctx context.Context, q Query) ([]Listed, error)
}

// Brief returns the record without what a list leaves out.
func (r Record) Brief() Record {
	r.Answer, r.Last, r.Request = nil, nil, nil
	if len(r.Steps) > 0 {
		names := make([]KeptStep, len(r.Steps))
		for i, s := range r.Steps {
			names[i].Name = s.Name
		}
		r.Steps = names
	}
	return r
}

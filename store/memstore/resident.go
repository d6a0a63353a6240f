package memstore

import (
	"unique"

	"github.com/umavez/umavez"
)

// resident is a row as it lies in memory. A [umavez.Row] takes 360 bytes, and
// nearly all rows of a store are done ones, in which a third of the fields say
// nothing; so those stand behind a pointer that is nil for most rows.
type resident struct {
	id      umavez.ID
	attempt umavez.AttemptID
	fence   umavez.Fence
	claimed umavez.Instant
	since   umavez.Instant
	until   umavez.Instant
	gone    umavez.Instant
	route   string
	answer  []byte
	rare    *rare
	// space is the namespace, which all its rows share. Zero: the empty one.
	space unique.Handle[string]

	scope       umavez.ScopeID
	fingerprint umavez.Fingerprint
	tries       int32
	// at is the row's place in its shard's dueHeap, or notDue; listed, that in
	// its unsettledList, or notListed.
	at, listed   int32
	phase        umavez.Phase
	policy       umavez.Policy
	settled      bool
	contradicted bool
}

func newResident(id umavez.ID) *resident { return &resident{id: id, at: notDue, listed: notListed} }

// unsettled reports whether the row is running or lost. Of nil it is not.
func (r *resident) unsettled() bool { return r != nil && r.phase == umavez.PhaseRunning }

func (r *resident) namespace() string {
	if r.space == (unique.Handle[string]{}) {
		return ""
	}
	return r.space.Value()
}

func (r *resident) setNamespace(name string) {
	switch {
	case name == "":
		r.space = unique.Handle[string]{}
	case name != r.namespace():
		r.space = unique.Make(name)
	}
}

// rare is what few rows have: unfinished ones, of those only some, settled ones,
// and those of services that keep their keys in words.
type rare struct {
	label     string
	ended     umavez.Reason
	steps     []umavez.KeptStep
	last      []byte
	request   []byte
	holder    umavez.AttemptID
	heldUntil umavez.Instant
	overruled umavez.AttemptID
}

// row returns the row in full. Of nil it is the zero row: a key never seen.
func (r *resident) row() umavez.Row {
	if r == nil {
		return umavez.Row{}
	}
	row := umavez.Row{
		Phase: r.phase, Policy: r.policy, Settled: r.settled, Tries: r.tries,
		Attempt: r.attempt, Fingerprint: r.fingerprint, Fence: r.fence, Route: r.route,
		Claimed: r.claimed, Since: r.since, Until: r.until, Gone: r.gone,
		Answer: r.answer, Namespace: r.namespace(), Scope: r.scope, Contradicted: r.contradicted,
	}
	if x := r.rare; x != nil {
		row.Ended, row.Steps, row.Last, row.Request = x.ended, x.steps, x.last, x.request
		row.Holder, row.HeldUntil = x.holder, x.heldUntil
		row.Label, row.Overruled = x.label, x.overruled
	}
	return row
}

// set replaces the row. The id and the places in heap and list stay.
func (r *resident) set(row umavez.Row) {
	r.phase, r.policy, r.settled, r.tries = row.Phase, row.Policy, row.Settled, row.Tries
	r.attempt, r.fingerprint, r.fence, r.route = row.Attempt, row.Fingerprint, row.Fence, row.Route
	r.claimed, r.since, r.until, r.gone = row.Claimed, row.Since, row.Until, row.Gone
	r.answer, r.scope, r.contradicted = row.Answer, row.Scope, row.Contradicted
	r.setNamespace(row.Namespace)

	plain := row.Ended == "" && row.Steps == nil && row.Last == nil && row.Request == nil &&
		row.Holder == umavez.AttemptID{} && row.HeldUntil == 0 && row.Label == "" && row.Overruled == umavez.AttemptID{}
	switch {
	case plain:
		r.rare = nil
		return
	case r.rare == nil:
		r.rare = new(rare)
	}
	*r.rare = rare{
		ended: row.Ended, steps: row.Steps, last: row.Last, request: row.Request,
		holder: row.Holder, heldUntil: row.HeldUntil, label: row.Label, overruled: row.Overruled,
	}
}

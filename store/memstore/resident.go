package memstore

import "github.com/umavez/umavez"

// resident is a row as it lies in memory. A [umavez.Row] takes 288 bytes, and
// nearly all rows of a store are done, of which a third of its fields say
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

	fingerprint umavez.Fingerprint
	tries       int32
	// at is the row's place in its shard's dueHeap, or notDue.
	at      int32
	phase   umavez.Phase
	policy  umavez.Policy
	settled bool
}

// rare is what only unfinished rows have, and of those only some.
type rare struct {
	ended     umavez.Reason
	steps     []umavez.KeptStep
	last      []byte
	request   []byte
	holder    umavez.AttemptID
	heldUntil umavez.Instant
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
		Answer: r.answer,
	}
	if x := r.rare; x != nil {
		row.Ended, row.Steps, row.Last, row.Request = x.ended, x.steps, x.last, x.request
		row.Holder, row.HeldUntil = x.holder, x.heldUntil
	}
	return row
}

// set replaces the row. The id and the place in the heap stay.
func (r *resident) set(row umavez.Row) {
	r.phase, r.policy, r.settled, r.tries = row.Phase, row.Policy, row.Settled, row.Tries
	r.attempt, r.fingerprint, r.fence, r.route = row.Attempt, row.Fingerprint, row.Fence, row.Route
	r.claimed, r.since, r.until, r.gone = row.Claimed, row.Since, row.Until, row.Gone
	r.answer = row.Answer

	plain := row.Ended == "" && row.Steps == nil && row.Last == nil && row.Request == nil &&
		row.Holder == umavez.AttemptID{} && row.HeldUntil == 0
	switch {
	case plain:
		r.rare = nil
		return
	case r.rare == nil:
		r.rare = new(rare)
	}
	*r.rare = rare{
		ended: row.Ended, steps: row.Steps, last: row.Last, request: row.Request,
		holder: row.Holder, heldUntil: row.HeldUntil,
	}
}

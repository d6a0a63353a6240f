package umavez

import "time"

// NextTurn is how long it takes until the reconciler of a record's route is asked
// about it next: zero or less when the next attempt asks. ok is false when nobody
// will be: the record is not unknown, is parked, or its route has no reconciler.
func (e *Engine) NextTurn(rec *Record) (in time.Duration, ok bool) {
	if !rec.Unknown() || rec.Reason == ReasonParked {
		return 0, false
	}
	r := e.recoveries.reconciler(rec)
	if r == nil {
		return 0, false
	}
	return max(rec.HeldLeft, r.After-rec.Since), true
}

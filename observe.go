package umavez

import "time"

// Moment names a point in an attempt's course. Moments come in the order in
// which they happen, on the goroutine that made them happen, between the store
// calls: what [Options.Observe] does there happens exactly there.
type Moment uint8

// The moments.
const (
	// MomentClaimed: the store confirmed the claim; the operation has not started.
	MomentClaimed Moment = iota
	// MomentStarted: the operation starts now.
	MomentStarted
	// MomentCompleting: the operation returned; its answer is about to be saved.
	MomentCompleting
	// MomentCompleted: the store acknowledged the answer; the client has not got it.
	MomentCompleted
	// MomentReleasing: nothing happened; the key is about to be released.
	MomentReleasing
	// MomentReleased: the store acknowledged the release.
	MomentReleased
	// MomentAbandoned: the attempt ended and its outcome is not known.
	MomentAbandoned
	// MomentLeaseLost: the record no longer carries the attempt.
	MomentLeaseLost
	// MomentExtended: a heartbeat extended the lease.
	MomentExtended
	// MomentExtendFailed: a heartbeat got no answer from the store.
	MomentExtendFailed
	// MomentRunTooLong: the attempt ran past MaxRun; its heartbeat has ended.
	MomentRunTooLong
	// MomentUnsaved: the store did not take the answer in time; the engine goes
	// on trying in the background.
	MomentUnsaved
	// MomentUnstarted: a claim was won whose caller had left; it is released.
	MomentUnstarted
	// MomentReplayed: a duplicate was answered from a done record.
	MomentReplayed
	// MomentWaiting: a duplicate starts to wait for a running attempt.
	MomentWaiting
	// MomentInProgress: a duplicate was turned away, the attempt still running.
	MomentInProgress
	// MomentUnknown: a duplicate met a lost record that may not be taken over.
	MomentUnknown
	// MomentExpired: a late retry met a tombstone.
	MomentExpired
	// MomentKeyReused: the key was used for another request.
	MomentKeyReused
	// MomentUnavailable: a claim was not confirmed; nothing was run.
	MomentUnavailable
	// MomentTakenOver: the claim took over a lost record.
	MomentTakenOver
	// MomentTooManyUnsettled: a claim was refused, since too many records of its
	// caller are running or lost.
	MomentTooManyUnsettled
	// MomentContradicted: an attempt whose outcome was settled came back and says
	// otherwise. Must stay at zero.
	MomentContradicted
	// MomentSettled: a record was settled here, parked or forgotten.
	MomentSettled
	// MomentAsked: a reconciler was asked about a lost record. Err is what went wrong.
	MomentAsked
	// MomentCompleter: the completer takes up a lost record.
	MomentCompleter
	// MomentRecoveryFailed: a completer failed with a record, or the lost records
	// could not be listed (then ID is zero). It is tried again.
	MomentRecoveryFailed

	momentCount
)

var momentNames = [momentCount]string{
	"claimed", "started", "completing", "completed", "releasing", "released", "abandoned",
	"lease_lost", "extended", "extend_failed", "run_too_long", "unsaved", "unstarted",
	"replayed", "waiting", "in_progress", "unknown", "expired", "key_reused", "unavailable",
	"taken_over", "too_many_unsettled", "contradicted", "settled", "asked", "completer", "recovery_failed",
}

// String returns the moment's name in snake case, as metrics use it.
func (m Moment) String() string {
	if m < momentCount {
		return momentNames[m]
	}
	return "invalid"
}

// Moments returns every moment, for those who make a counter of each.
func Moments() []Moment {
	all := make([]Moment, momentCount)
	for i := range all {
		all[i] = Moment(i)
	}
	return all
}

// Observation is one moment of one key's life. It holds no secret: neither key
// nor principal, only the record's ID.
type Observation struct {
	Moment  Moment
	ID      ID
	Route   string
	Policy  Policy
	Attempt AttemptID
	Fence   Fence
	Reason  Reason        // Abandoned, Unknown; of the lost record: Settled, Asked, Completer, RecoveryFailed
	Took    time.Duration // Completed, Released, Abandoned: since the start
	// Err is what went wrong: *Failed, Unavailable, KeyReused, TooManyUnsettled,
	// Unsaved, LeaseLost, Contradicted, Settled, Asked. Of Replayed and Unknown it
	// is what of the record could not be opened.
	Err error
}

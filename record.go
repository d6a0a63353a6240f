package umavez

import "time"

// State is where a key stands in its life, by the store's clock.
type State uint8

const (
	// Vacant: nobody holds the key. It was never claimed, was released, or is
	// gone: past retention and tombstone.
	Vacant State = iota
	// Running: an attempt holds the key under a lease.
	Running
	// Lost: an attempt holds the key, but its lease ran out or it was
	// abandoned. Not a stored state: time makes it out of Running. For an
	// opaque operation it means that the outcome is unknown.
	Lost
	// Done: the record holds the answer, within its retention.
	Done
	// Expired: the answer's retention is over and a tombstone stands in its
	// place, so that a late retry is refused and not run again.
	Expired
)

var stateNames = [...]string{"vacant", "running", "lost", "done", "expired"}

// String returns the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "invalid"
}

// Reason says why an attempt's outcome is not known.
type Reason string

// The reasons that the engine and the HTTP layer give.
const (
	// ReasonKilled is what a lost record shows when its owner said nothing:
	// the process died, was cut off from the store, or ran for too long.
	ReasonKilled Reason = "killed"
	// ReasonPanic: the operation panicked, or its goroutine exited.
	ReasonPanic Reason = "panic"
	// ReasonBroken: the answer broke off, or never came.
	ReasonBroken Reason = "broken-off"
	// ReasonReset: the connection to the operation failed after bytes of the
	// request were written.
	ReasonReset Reason = "reset"
	// ReasonTimeout: the operation did not answer in time.
	ReasonTimeout Reason = "timeout"
	// ReasonStatus: the answer does not say whether it happened (408, 5xx).
	ReasonStatus Reason = "5xx"
	// ReasonError: the function given to [Do] returned an error.
	ReasonError Reason = "error"
	// ReasonStepInDoubt: a step may have been sent, and must not be sent again.
	ReasonStepInDoubt Reason = "step-in-doubt"
	// ReasonCodeChanged: the steps that are kept are not those of the code that
	// was to go on with them.
	ReasonCodeChanged Reason = "code-changed"
	// ReasonParked: a completer or reconciler gave up on it.
	ReasonParked Reason = "parked"
	// ReasonUnreadable: what the record holds could not be opened by the process
	// that took it over, which has given it up again.
	ReasonUnreadable Reason = "unreadable"
	// ReasonSettled: what was in doubt cannot happen any more, and the next
	// attempt resumes after the kept steps.
	ReasonSettled Reason = "settled"
)

// Parks reports whether an attempt that ended for this reason is not taken over,
// whatever its policy: the next one would do what this one must not, or somebody
// has set the record aside.
func (r Reason) Parks() bool {
	return r == ReasonStepInDoubt || r == ReasonCodeChanged || r == ReasonParked
}

// KeptStep is a kept result of a named part of an operation.
type KeptStep struct {
	Name   string
	Result []byte
}

// Fence is a number that the store raises on every claim of a key. It names
// which attempt was looked at. It licenses no rerun.
type Fence int64

// Record is what a store tells of a key. All times in it are durations by the
// store's clock, so that no reader compares its own clock with them. The byte
// slices are shared: do not change them.
type Record struct {
	State     State
	Policy    Policy
	Namespace string
	Scope     ScopeID
	Route     string
	// Label is the key in words, if the service keeps it.
	Label       string
	Fingerprint Fingerprint
	// Attempt holds the key now, or held it when it was completed.
	Attempt AttemptID
	Fence   Fence
	// Tries counts the attempts since the key was last vacant.
	Tries int
	// Reason is set when State is Lost.
	Reason Reason
	// Settled: a reconciler or a person gave the answer, not the operation.
	Settled bool
	// Contradicted: an attempt whose outcome was settled said otherwise.
	Contradicted bool

	Steps []KeptStep
	// Answer is what every other attempt gets. Set when State is Done.
	Answer []byte
	// Last is the last answer, or the beginning of one, that was seen of an
	// attempt whose outcome is not known.
	Last []byte
	// Request is what the first claim kept of the request.
	Request []byte
	// Unreadable is set when some of these could not be opened: see
	// ErrUnreadable. Those are nil, of steps the results. Such a record is not
	// what it seems: a Done one has an answer that cannot be given.
	Unreadable error

	// Age is the time since the key was first claimed.
	Age time.Duration
	// Since is the time since the record entered its present state.
	Since time.Duration
	// LeaseLeft is set when State is Running.
	LeaseLeft time.Duration
	// RetainLeft is how long the answer is still kept. Set when State is Done.
	RetainLeft time.Duration
	// HeldLeft is for how long somebody looks into the record, alone. Set when
	// State is Lost.
	HeldLeft time.Duration
}

// Unknown reports whether the record is one that nobody's next attempt takes
// over: it is lost, and its outcome stays unknown until it is settled.
func (r *Record) Unknown() bool {
	return r.State == Lost && (!r.Policy.TakesOver() || r.Reason.Parks())
}

package umavez

import (
	"context"
	"time"
)

// LastWord is the step name under which [Store.Checkpoint] notes an attempt's
// last word instead of a step: what is known of an answer that goes out live
// before it is complete. It becomes the record's Last.
const LastWord = ""

// Store keeps one record for each key. It is what backends implement; users
// hold an [Engine]. Package storetest tests every sentence of this contract.
//
// Every method may be called again with the same arguments after a reply was
// lost, at any time later, and then gives the same answer and changes nothing
// more. The engine does repeat. Every method is atomic with respect to every
// other on the same ID, across processes, and safe for concurrent use.
//
// Only durations cross this interface. The store's own clock decides about
// leases and retention; durations are kept with microsecond precision.
//
// A method that fails, as opposed to answering, returns a [*StoreError] that
// says whether the write may have happened; any other error counts as Maybe. A
// cancelled context may leave the write happening later.
//
// The store keeps the byte slices it is given and hands out its own: neither
// side changes them.
type Store interface {
	// Claim makes id run under req.Attempt and reports acquired, when
	//   - the key is vacant, req.Attempt is not the attempt that was released
	//     last (its release bars it), and the request is none to Resume; or
	//   - the record runs under req.Attempt already and was not abandoned: the
	//     lease is set anew, never shortened, and nothing else changes; or
	//   - the record is lost, its fence is req.TakeOver, its own policy allows a
	//     takeover, its reason is none that Parks, and its fingerprint is
	//     req.Fingerprint: policy, route, fingerprint, request and steps stay as
	//     the first claim kept them.
	// In every other case it changes nothing. A vacant key that would be granted
	// is ErrTooManyUnsettled when req.MaxUnsettled or more records of its scope
	// are running or lost. The record is returned as it is after the call,
	// acquired or not. The fence of an acquired record is
	// max(its fence before + 1, the store's clock in microseconds), so that it
	// rises over the key's whole life, also through release and retention.
	Claim(ctx context.Context, id ID, req ClaimRequest) (rec Record, acquired bool, err error)

	// Checkpoint keeps the result of a step of a record that carries the
	// lease's attempt, even when the lease has run out. Keeping the same result
	// again is a no-op; another one is ErrStepKept. The step LastWord is noted
	// instead: the latest note stands, and after Abandon it is ErrLeaseLost. A
	// record that does not carry the attempt gives ErrLeaseLost.
	Checkpoint(ctx context.Context, l Lease, step string, result []byte) error

	// Complete makes the record done with this answer, if it carries the
	// attempt: also late, after the lease has run out or was abandoned. Once
	// done, the answer never changes: the same attempt with the same answer is
	// a no-op, everything else is ErrLeaseLost.
	Complete(ctx context.Context, l Lease, answer []byte, keep Retention) error

	// Release makes the key vacant: nothing happened. It bars the attempt: once
	// Release has answered nil, a claim of that attempt that arrives later is
	// not granted, also when the release found no record. (The record has room
	// for one barred attempt: the bar stands until another attempt claims or
	// releases the key.) With a step kept, or an earlier attempt lost, of which
	// the record alone knows, it is ErrHasSteps; when another attempt holds the
	// key, or it is done or abandoned, ErrLeaseLost.
	Release(ctx context.Context, l Lease) error

	// Abandon ends the lease now: the attempt has ended, and its outcome is not
	// known. The record is lost from now on, also when its lease was over before:
	// until now its owner was at work. A late Complete still counts; a later Extend or Claim of the same
	// attempt does not revive the lease. A non-nil last becomes the record's
	// Last. Abandoning again is a no-op: the first reason and word stand.
	Abandon(ctx context.Context, l Lease, reason Reason, last []byte) error

	// Extend moves the end of the lease to at least d from now, if the record
	// carries the attempt and was not abandoned; else ErrLeaseLost. A lease
	// that has run out but was not taken over is extended.
	Extend(ctx context.Context, l Lease, d time.Duration) error

	// Get returns the record as it is; of a key that nobody holds, one whose
	// state is Vacant.
	Get(ctx context.Context, id ID) (Record, error)
}

// ClaimRequest is what a claim asks for, and what the first claim of a key
// keeps in the record.
type ClaimRequest struct {
	Attempt     AttemptID
	Fingerprint Fingerprint
	Policy      Policy
	// Namespace and Scope say whose key it is. Both zero: nobody's in particular.
	Namespace string
	Scope     ScopeID
	// Route names the operation for operators; at most MaxRoute bytes.
	Route string
	// Label is the key in words, for operators of services that keep it; at
	// most MaxLabel bytes.
	Label string
	// Lease is the attempt's right to finish, for a time.
	Lease time.Duration
	// TakeOver is the fence of the lost record that the claimer has seen and
	// wants to take over. Zero: none.
	TakeOver Fence
	// Resume: nothing but the takeover is wanted; a key that has become vacant
	// meanwhile is not claimed.
	Resume bool
	// MaxUnsettled bounds how many records of the scope may be running or lost
	// for a vacant key to be granted. Zero: no bound. A store that several
	// processes share may overshoot by what the others have claimed within the
	// last second.
	MaxUnsettled int
	// Request is kept for a completer that finishes what its client gave up.
	Request []byte
}

// MaxLabel is the longest label of a record, in bytes: room for a namespace, a
// principal and a key.
const MaxLabel = 1024

// MaxRoute is the longest route name, in bytes: it is stored with every record.
const MaxRoute = 255

// Lease names an attempt's hold on a record, as its claim was answered.
type Lease struct {
	ID      ID
	Attempt AttemptID
	Fence   Fence
}

// Retention says how long an answer stands.
type Retention struct {
	// Retain is how long the answer is given, from the completion, not sliding.
	Retain time.Duration
	// Tombstone is how long after that a late retry is still refused.
	Tombstone time.Duration
}

// Prompt is implemented by stores whose calls never wait for anything, such as
// one in memory. The engine calls those on the caller's own goroutine.
type Prompt interface {
	Store
	// Prompt does nothing; having it is the statement.
	Prompt()
}

// Purger is implemented by stores that need to be told to drop what is over.
type Purger interface {
	// Purge drops released rows after ReleasedKept, answers after their
	// retention, rows after their tombstone, and entries of the audit trail
	// after AuditKept: at most limit of them all, and never a running or lost
	// row. It returns how many rows and entries it dropped or shortened; fewer
	// than limit means that nothing more is due.
	Purge(ctx context.Context, limit int) (int, error)
}

// StartMarker is implemented by stores that can tell, after a process has died,
// which of its attempts had started. Only what was started can become unknown:
// such a store releases a record whose dead owner never got that far.
type StartMarker interface {
	// Started notes that the operation under the lease is about to start. The
	// note outlives the process (a machine that loses power may lose it, and
	// the store then concludes nothing). It is the engine's last call before
	// the operation; on an error the engine releases the key instead.
	Started(l Lease) error
}

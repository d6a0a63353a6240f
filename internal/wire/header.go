package wire

// Header names, in the canonical form of net/http, so that they can index a
// header map directly.
const (
	// IdempotencyKey carries the key: a request's own spelling, echoed as it came.
	IdempotencyKey = "Idempotency-Key"
	// IdempotentReplayed is "true" on an answer that comes from the record, and
	// absent on the first one.
	IdempotentReplayed = "Idempotent-Replayed"
	// IdempotencyStatus says of an answer what else must be known: StatusUnsaved
	// or StatusUnknown.
	IdempotencyStatus = "Idempotency-Status"
	// IdempotencyExpires says until when the answer is kept (rule A10).
	IdempotencyExpires = "Idempotency-Expires"
	// IdempotencyOutcome is what an application behind the sidecar says of its
	// own answer (rule A6). It never reaches the client.
	IdempotencyOutcome = "Idempotency-Outcome"
	// ShouldRetry tells the client libraries that know it whether a retry can
	// make a difference. Without it they spend all their retries on every 409.
	ShouldRetry = "Stripe-Should-Retry"
	// RetryAfter is in whole seconds here.
	RetryAfter = "Retry-After"
	// Prefer and PreferenceApplied let a client choose how long it waits for an
	// attempt that is still running (RFC 7240; rule R2).
	Prefer            = "Prefer"
	PreferenceApplied = "Preference-Applied"
)

// Values of IdempotencyStatus.
const (
	// StatusUnsaved: it happened, and this is its answer, but the store has not
	// taken the answer yet (rule R6).
	StatusUnsaved = "unsaved"
	// StatusUnknown: this is the last word of an attempt whose outcome is not
	// known (rule A5).
	StatusUnknown = "unknown"
)

// Values of IdempotencyOutcome.
const (
	OutcomeReleased = "released"
	OutcomeKept     = "kept"
	OutcomeNoBody   = "no-body"
)

// ProblemMediaType is the media type of a problem document (RFC 9457).
const ProblemMediaType = "application/problem+json"

// ReplayedTrue is the one value of IdempotentReplayed.
const ReplayedTrue = "true"

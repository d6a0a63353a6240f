package wire

// Codes of our own problem documents. A client tells our 409 from the
// application's own one by the code, so a code never changes its meaning.
const (
	// CodeMissingKey: the route requires a key (rule K2).
	CodeMissingKey = "missing-key"
	// CodeInvalidKey: the key is malformed, too long, or there are two (rules K4, K5, K6, K8).
	CodeInvalidKey = "invalid-key"
	// CodeKeyReused: the key belongs to another request (rule F10).
	CodeKeyReused = "key-reused"
	// CodeInProgress: another attempt is still running (rule R2).
	CodeInProgress = "in-progress"
	// CodeOutcomeUnknown: an attempt was lost, and whether it happened is not known (rule R4).
	CodeOutcomeUnknown = "outcome-unknown"
	// CodeReplayUnavailable: it happened, and its answer was not kept (rules R9, F3).
	CodeReplayUnavailable = "replay-unavailable"
	// CodeKeyExpired: the answer's retention is over (rule A10).
	CodeKeyExpired = "key-expired"
	// CodeTooManyUnsettled: the caller has too many keys whose outcome is open (rule R14).
	CodeTooManyUnsettled = "too-many-unsettled"
	// CodeAnswerTooLarge: the answer does not fit, and was rolled back.
	CodeAnswerTooLarge = "answer-too-large"
	// CodeStoreUnavailable: nothing was run, since no claim was confirmed (rule R5).
	CodeStoreUnavailable = "store-unavailable"
	// CodeRequestTooLarge: the request, or its body, is over the cap (rules F9, R12).
	CodeRequestTooLarge = "request-too-large"
	// CodeRequestIncomplete: the request's body broke off.
	CodeRequestIncomplete = "request-incomplete"
	// CodeUnauthenticated: it is not known whose key it is (rule F1).
	CodeUnauthenticated = "unauthenticated"
	// CodeCallerUnavailable: whose key it is could not be found out just now.
	CodeCallerUnavailable = "caller-unavailable"
	// CodeUpstreamUnreachable: the sidecar did not reach the application, and
	// nothing was sent to it (rule P2).
	CodeUpstreamUnreachable = "upstream-unreachable"
	// CodeAmbiguousPath: the sidecar and the application could read the
	// request's path or method as two different ones (rule P10).
	CodeAmbiguousPath = "ambiguous-path"
)

// Retry says whether sending the same request again can make a difference.
type Retry uint8

const (
	// RetryUnsaid leaves it to the status and to Retry-After.
	RetryUnsaid Retry = iota
	// RetryUseful: the same request may get another answer soon.
	RetryUseful
	// RetryUseless: the same request gets the same refusal.
	RetryUseless
)

// ProblemType is a kind of refusal.
type ProblemType struct {
	Code   string
	Status int
	// Title is the same in every language and at every occurrence. The first
	// three of the table are those of draft-ietf-httpapi-idempotency-key-header-07.
	Title string
	Retry Retry
}

var problemTypes = [...]ProblemType{
	{CodeMissingKey, 400, "Idempotency-Key is missing", RetryUseless},
	{CodeKeyReused, 422, "Idempotency-Key is already used", RetryUseless},
	{CodeInProgress, 409, "A request is outstanding for this Idempotency-Key", RetryUseful},

	{CodeInvalidKey, 400, "Idempotency-Key is invalid", RetryUseless},
	{CodeOutcomeUnknown, 409, "The outcome of the request with this Idempotency-Key is unknown", RetryUseless},
	{CodeReplayUnavailable, 409, "The answer for this Idempotency-Key cannot be replayed", RetryUseless},
	{CodeKeyExpired, 409, "Idempotency-Key has expired", RetryUseless},
	{CodeTooManyUnsettled, 429, "Too many requests with unknown outcomes", RetryUnsaid},
	{CodeAnswerTooLarge, 500, "The answer is too large to be kept", RetryUseless},
	{CodeStoreUnavailable, 503, "Idempotency cannot be guaranteed at the moment", RetryUnsaid},
	{CodeRequestTooLarge, 413, "The request is too large", RetryUseless},
	{CodeRequestIncomplete, 400, "The request body is incomplete", RetryUnsaid},
	{CodeUnauthenticated, 401, "The caller is not authenticated", RetryUnsaid},
	{CodeCallerUnavailable, 503, "The caller cannot be identified at the moment", RetryUnsaid},
	{CodeUpstreamUnreachable, 502, "The application could not be reached", RetryUseful},
	{CodeAmbiguousPath, 400, "The path or method can be read in more than one way", RetryUseless},
}

// ProblemTypes returns every kind of refusal, for those who list them.
func ProblemTypes() []ProblemType { return append([]ProblemType(nil), problemTypes[:]...) }

// ProblemTypeOf returns the kind of refusal with this code.
func ProblemTypeOf(code string) (ProblemType, bool) {
	for _, t := range problemTypes {
		if t.Code == code {
			return t, true
		}
	}
	return ProblemType{}, false
}

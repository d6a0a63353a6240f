package proxy

import (
	"net/http"
	"time"
)

// Reconcile finds out what became of lost operations by asking the system behind
// the upstream: a gateway, a bank, a ledger. It is declared and not programmed, so
// that a sidecar can do it; a program of its own uses [umavez.Reconciler].
//
// The texts of a [Question], of an [Answer] and of conditions are forms: they may
// hold values in double braces, as text/template writes them, and nothing else of
// it.
//
//	{{.Key}}                the client's key
//	{{.SentKey}}            the same as the upstream got it in its header: in
//	                        quotes where it has to be
//	{{.Principal}}          the caller, as the sidecar's [Source] names it
//	{{field "/order/id"}}   what stands in the JSON body of the request, by its
//	                        JSON pointer (RFC 6901)
//	{{.ID}} {{.Route}}      the record's name, and the route's
//	{{derivedKey "STEP"}}   the key of a step: see [umavez.DerivedKey]
//	{{env "NAME"}}          a variable of the process; in headers of questions alone
//	{{response "/id"}}      what stands in the JSON answer to the question; in
//	                        answers alone
//
// The first four need the request itself, which a record holds only where the
// route says KeepRequest: in the background nobody knows the key otherwise, since
// records have but its hash.
//
// A value is spelled for the place where it stands: as a part of a path segment,
// as a parameter's value, in a header, as JSON or within a text of JSON. It can
// never change anything else: a form in which it could is refused by [New], and a
// value that cannot stand in its place makes the question fail, which leaves the
// outcome unknown. So does a value that is missing.
type Reconcile struct {
	Inquiry
	// Cancel is sent when the rules of the inquiry say CannotHappen without a
	// proof: it asks the foreign system to refuse the key from now on. Its own
	// rules then decide; theirs is the only CannotHappen that needs no quiet
	// time, and each must say why. An answer that fits none leaves the outcome
	// unknown. Nil: nothing is cancelled, and the quiet time holds.
	Cancel *Inquiry
	// UniqueKeys says that no two callers can use the same key: the API hands keys
	// out, say, or refuses those that do not begin with the caller's name. That keys
	// are random is not enough, since a caller chooses its own, and may have seen
	// another's. Without it, and where the sidecar tells callers apart, a question
	// and a cancellation must name what is the operation's or the caller's own:
	// .Principal, .ID, derivedKey or a field of the request. By the key alone they
	// would find, or cancel, what another caller's equal key has done.
	UniqueKeys bool

	// After, Every, Park, Quiet and Timeout are those of [umavez.Reconciler].
	// Timeout is for the question and the cancellation together.
	After, Every, Park, Quiet, Timeout time.Duration
	// MaxResponse is the largest answer to a question, in bytes. A larger one
	// counts as none. Default 1 MiB, as for the answers that are kept.
	MaxResponse int64
	// Transport carries the questions. Default: one of its own, without a proxy.
	Transport http.RoundTripper
	// Env finds the variables of {{env "NAME"}}, when the sidecar is made. Nil:
	// there are none.
	Env func(name string) (value string, ok bool)
}

// Inquiry is a question, and what its answers mean.
type Inquiry struct {
	Ask Question
	// Rules are tried in order, and the first one that fits decides. When none
	// does, the outcome stays unknown.
	Rules []Rule
}

// Question is an HTTP request with values in it.
//
// A redirect is followed within its origin, when the method is GET or HEAD. All
// others, what takes too long or is too large, and answers that speak of the
// question instead of the operation (401, 403, 407, 408, 421, 425, 429 and 5xx)
// are failures: the outcome stays unknown, whatever the rules say.
type Question struct {
	// Method defaults to GET, or to POST when there is a body.
	Method string
	// URL is absolute. Scheme and host are written out.
	URL string
	// Header are the fields to send.
	Header map[string]string
	// Body is JSON, unless Header names another Content-Type. Values may stand
	// in JSON, in application/x-www-form-urlencoded and in text/plain.
	Body string
}

// Rule says what an answer to a question means.
type Rule struct {
	// Status are those that the rule is about: 200, a range such as 400-499, or a
	// class such as 2xx. Empty: any.
	Status []string
	// When are conditions on the answer's JSON, tried in order; all must hold. An
	// answer that is looked into and is no JSON is a failure.
	When []Condition
	// Verdict is what follows.
	Verdict Verdict
	// Proven says why a CannotHappen holds at once, without the quiet time: the
	// foreign system has cancelled the key, or runs it only once. It goes into
	// the audit trail.
	Proven string
	// Answer is what every attempt gets from then on. For Happened, and required
	// there.
	Answer *Answer
}

// Verdict is what a rule concludes.
type Verdict string

// The verdicts: see [umavez.Verdict].
const (
	VerdictHappened     Verdict = "happened"
	VerdictCannotHappen Verdict = "cannot-happen"
	VerdictUnknown      Verdict = "unknown"
)

// Condition is about one value in the JSON of an answer. Exactly one of its other
// fields is set.
type Condition struct {
	// At is the value's JSON pointer. Empty: the whole document.
	At string
	// OneOf are texts, numbers, booleans and nil, of which the value must be one.
	// Kinds differ: "1" is not 1. A text may be a form; one that is a single
	// value, such as {{field "/amount"}}, keeps that value's kind.
	OneOf []any
	// Exists: there is such a value, null included.
	Exists bool
	// Absent: there is none in the object that could hold it, or in the array where
	// At ends with an index. An answer without that object or array says nothing:
	// it is a failure, as one that is no JSON.
	Absent bool
}

// Answer is what clients get of an operation that has happened.
type Answer struct {
	// Status is what the upstream would have answered, 200 to 599. 206, 304 and
	// what says that nothing was done (401, 429, …) are none.
	Status int
	// Header are the fields to answer with. Location is spelled as an address.
	Header map[string]string
	// Body is JSON, unless Header names another Content-Type.
	Body string
	// ResponseBody takes the body of the foreign system's answer instead, and
	// its Content-Type.
	ResponseBody bool
}

package umavezhttp

import (
	"net/http"
	"slices"

	"github.com/umavez/umavez"
)

// outcome is what an answer says of the operation behind it.
type outcome uint8

const (
	// keepWhole: it is done, and this is its answer.
	keepWhole outcome = iota
	// keepBare: it is done, and the body of its answer is not kept.
	keepBare
	// releaseKey: nothing happened, and nothing will.
	releaseKey
	// leaveUnknown: whether it happened is not known.
	leaveUnknown
)

// proves is what an answer with this status proves on this route, when the
// operation itself says nothing more (rules A1 to A5). A status code is not
// knowledge: a 503 may come from a wrapper that gave up on an operation which
// is still running.
func (rt *Route) proves(status int) outcome {
	out := proves(status)
	switch {
	case slices.Contains(rt.Release, status):
		return releaseKey
	case rt.Preset == Everything && out != keepBare:
		out = keepWhole
	case rt.Preset == SuccessOnly && out == keepWhole && 400 <= status && status <= 499:
		out = releaseKey
	case rt.ReleaseNone && out == releaseKey:
		out = keepWhole
	}
	if rt.NoBody && out == keepWhole {
		out = keepBare
	}
	return out
}

// proves is the table of HTTP itself.
func proves(status int) outcome {
	switch status {
	case http.StatusSwitchingProtocols, http.StatusPartialContent, http.StatusNotModified:
		return keepBare
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return releaseKey // the request was sent elsewhere
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusLengthRequired,
		http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusRequestedRangeNotSatisfiable,
		http.StatusExpectationFailed, http.StatusMisdirectedRequest, http.StatusTooEarly,
		http.StatusUpgradeRequired, http.StatusPreconditionRequired, http.StatusTooManyRequests,
		http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented,
		http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		return releaseKey // by definition, these come before the operation
	case http.StatusRequestTimeout:
		return leaveUnknown
	}
	if status >= 500 {
		return leaveUnknown
	}
	return keepWhole
}

// decide is the outcome of an answer that ended: what the operation said
// outranks what its status seems to say (rule A6), and an answer that broke off
// is no answer (rule R10), so that no body of it is kept.
func (rt *Route) decide(status int, broken bool, mark umavez.Mark, why umavez.Reason) (outcome, umavez.Reason) {
	switch {
	case mark == umavez.MarkRelease:
		return releaseKey, ""
	case mark == umavez.MarkUnknown:
		return leaveUnknown, why
	case mark == umavez.MarkKeepWithoutBody, mark == umavez.MarkKeep && (broken || rt.NoBody):
		return keepBare, ""
	case mark == umavez.MarkKeep:
		return keepWhole, ""
	case broken:
		return leaveUnknown, umavez.ReasonBroken
	}
	return rt.proves(status), umavez.ReasonStatus
}

package umavezhttp

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// Preset is a ready-made answer to the question what an answer proves.
type Preset uint8

const (
	// Standard goes by rules A1 to A5.
	Standard Preset = iota
	// SuccessOnly keeps answers that say it was done, and releases the key after
	// every 4xx but 408. That one and a 5xx say no more than they do elsewhere.
	SuccessOnly
	// Everything keeps every answer that was given in full, whatever its status.
	Everything
)

// String returns the preset's name in configuration files.
func (p Preset) String() string {
	switch p {
	case Standard:
		return "standard"
	case SuccessOnly:
		return "success-only"
	case Everything:
		return "everything"
	}
	return "invalid"
}

// Route says what is particular to the operations behind one handler. The zero
// value means the defaults of HTTP idempotency, and [Once.With] refuses nonsense.
type Route struct {
	// Name stands for the operation in records, logs and metrics; at most
	// umavez.MaxRoute bytes. Default: the pattern that matched. Where records must
	// be found again by it, for a completer or a reconciler, it is required.
	Name string
	// Methods are those that are protected; others pass, and their keys are
	// ignored. Default POST and PATCH. Safe methods and CONNECT cannot be named.
	Methods []string
	// Required refuses requests without a key. By default they run unprotected.
	Required bool

	// Release names statuses, 400 to 599, of which the author of the route
	// knows that nothing was done: the key is released.
	Release []int
	// ReleaseNone releases after no answer at all, not even after a 401 or 429:
	// the author cannot vouch for the operation being untouched.
	ReleaseNone bool
	// Preset says what an answer proves, where Release does not.
	Preset Preset

	// Raw compares bodies byte by byte, without looking into them (rule F4).
	Raw bool
	// Exclude are JSON pointers (RFC 6901) of what may differ between attempts,
	// such as a client's timestamp or a card's CVV (rule F8). An excluded
	// member may also be missing; an excluded array element still counts.
	Exclude []string
	// Headers are names of request headers that must be the same on every attempt.
	Headers []string
	// Host compares the request's host too. It is for patterns that name one;
	// elsewhere a client that fails over to another address must get its replay.
	Host bool

	// Formerly are the ways in which earlier releases of the service compared
	// the requests of this route. A record of then is compared as it was then;
	// without its way, a retry gets 409 replay-unavailable (rule F3). Each has to
	// stay for one retention.
	Formerly []Comparison

	// KeepCookies keeps Set-Cookie in the stored answer. By default a replay
	// sets no cookies.
	KeepCookies bool
	// Echo are names of headers that a replay takes from the present request
	// instead of the stored answer, such as X-Fapi-Interaction-Id.
	Echo []string
	// NoBody never keeps the body of an answer: a retry learns only that it was
	// done, by 409 replay-unavailable.
	NoBody bool

	// KeepRequest keeps the whole request with the claim of its key, until the
	// operation is done. A lost operation of Stepped and Rerunnable handlers is
	// then finished by a completer, in the engine's Run, though its client never
	// comes back; a reconciler finds the request in the record. It needs a Name,
	// and an engine with a Sealer or else PlainRequests. See [Request] for what
	// is kept, and Withhold and Restore for what is not.
	KeepRequest bool
	// PlainRequests says that requests of this route hold no secret, and may lie
	// in the store as they came, with their principal and key. Authorization,
	// Cookie and Proxy-Authorization are withheld then.
	PlainRequests bool
	// Withhold are names of request headers that the handler is shown on no
	// attempt, so that they need not be kept. What is about one connection, such
	// as Connection and Upgrade, is always withheld where requests are kept.
	Withhold []string
	// Restore returns the context for an operation that is completed: that of r,
	// with what handlers outside, authentication above all, put into it for a
	// request of this principal. They do not run then, and without Restore their
	// values are missing. On an error nothing is run, and the completer comes again.
	Restore func(r *http.Request, principal string) (context.Context, error)
	// CompleteAfter, CompleteUntil and CompleteTries are the After, Until and
	// Tries of the route's [umavez.Completer].
	CompleteAfter, CompleteUntil time.Duration
	CompleteTries                int

	// Wait overrides Options.Wait when not zero; negative: not at all.
	Wait time.Duration
	// Retain overrides how long answers are given, when not zero.
	Retain time.Duration
	// Tombstone overrides how long after that a late retry is refused, when not
	// zero; negative: not at all.
	Tombstone time.Duration
}

// Comparison is how the requests of a route were compared: the fields of [Route]
// with the same names, as they were.
type Comparison struct {
	Raw     bool
	Exclude []string
	Headers []string
	Host    bool
}

// neverProtected are methods that change nothing, or are no operations: they
// always pass, whatever their headers say (rule K1).
var neverProtected = []string{
	http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect,
}

// check fills in the defaults, copies what the caller could change later, and
// refuses nonsense, naming the field.
func (rt Route) check() (Route, error) {
	if len(rt.Name) > umavez.MaxRoute {
		return rt, errorf("Route.Name has %d bytes; at most %d", len(rt.Name), umavez.MaxRoute)
	}
	rt, err := rt.checkMethods()
	if err != nil {
		return rt, err
	}
	if rt, err = rt.checkRelease(); err != nil {
		return rt, err
	}
	if rt.Headers, err = headerNames("Route.Headers", rt.Headers); err != nil {
		return rt, err
	}
	if rt.Echo, err = headerNames("Route.Echo", rt.Echo); err != nil {
		return rt, err
	}
	if rt.Retain < 0 {
		return rt, errorf("Route.Retain is negative: %v", rt.Retain)
	}
	rt.Exclude = slices.Clone(rt.Exclude)
	rt.Formerly = slices.Clone(rt.Formerly)
	for i, c := range rt.Formerly {
		c.Exclude = slices.Clone(c.Exclude)
		if c.Headers, err = headerNames("Route.Formerly", c.Headers); err != nil {
			return rt, err
		}
		rt.Formerly[i] = c
	}
	_, err = rt.fingerprinter(&Options{MaxDecoded: defaultMaxBody, MaxRatio: defaultMaxRatio})
	return rt, err
}

func (rt Route) checkMethods() (Route, error) {
	if rt.Methods == nil {
		rt.Methods = []string{http.MethodPost, http.MethodPatch}
		return rt, nil
	}
	if len(rt.Methods) == 0 {
		return rt, errorf("Route.Methods is empty: nothing would be protected")
	}
	rt.Methods = slices.Clone(rt.Methods)
	for _, m := range rt.Methods {
		switch {
		case !wire.IsToken(m) || m != strings.ToUpper(m):
			return rt, errorf("Route.Methods: %q is no method; case matters", m)
		case slices.Contains(neverProtected, m):
			return rt, errorf("Route.Methods: %s is never protected, it always passes", m)
		}
	}
	return rt, nil
}

func (rt Route) checkRelease() (Route, error) {
	rt.Release = slices.Clone(rt.Release)
	for _, status := range rt.Release {
		if status < 400 || status > 599 {
			return rt, errorf("Route.Release: %d does not say that nothing was done; only 400 to 599 can", status)
		}
	}
	switch {
	case rt.Preset > Everything:
		return rt, errorf("Route.Preset is unknown: %d", rt.Preset)
	case rt.ReleaseNone && len(rt.Release) > 0:
		return rt, errorf("Route.Release and Route.ReleaseNone contradict each other")
	case rt.ReleaseNone && rt.Preset == SuccessOnly:
		return rt, errorf("Route.ReleaseNone and the preset success-only contradict each other")
	}
	return rt, nil
}

// fingerprinter makes what compares the requests of the route, within the limits
// of checked options.
func (rt Route) fingerprinter(o *Options) (*fingerprinter, error) {
	within := func(c Comparison) fingerprintOptions {
		return fingerprintOptions{
			Raw: c.Raw, Exclude: c.Exclude, Headers: c.Headers, Host: c.Host,
			MaxDecoded: o.MaxDecoded, MaxRatio: o.MaxRatio,
		}
	}
	formerly := make([]fingerprintOptions, len(rt.Formerly))
	for i, c := range rt.Formerly {
		formerly[i] = within(c)
	}
	f, err := newFingerprinter(within(Comparison{rt.Raw, rt.Exclude, rt.Headers, rt.Host}), formerly...)
	if err != nil {
		return nil, errorf("Route %q: how requests are compared: %w", rt.Name, err)
	}
	return f, nil
}

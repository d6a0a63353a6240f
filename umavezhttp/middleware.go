package umavezhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// protected is a handler that runs once for a key.
type protected struct {
	once   *Once
	policy umavez.Policy
	next   http.Handler
	keeps  bool // claims keep the request
}

// ServeHTTP lets pass what is not enrolled (rule K1) and what has no key and
// needs none (rule K2). A malformed key is never taken for no key.
func (p *protected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := p.once
	if !slices.Contains(o.route.Methods, r.Method) {
		p.next.ServeHTTP(w, r)
		return
	}
	name, found, err := readKey(r.Header, o.names)
	switch {
	case err != nil:
		problem := problemFor(wire.CodeInvalidKey)
		if invalid, ok := errors.AsType[*invalidKey](err); ok {
			problem = invalid.problem()
		}
		o.opt.refuse(w, r, problem)
	case found:
		p.serveOnce(w, r, name)
	case o.route.Required:
		o.opt.refuse(w, r, problemFor(wire.CodeMissingKey))
	default:
		p.next.ServeHTTP(w, r)
	}
}

// serveOnce is the whole way of a request with a key: whose it is, what it asks
// for, the claim, and then the operation or an answer from the record.
func (p *protected) serveOnce(w http.ResponseWriter, r *http.Request, name string) {
	c := newCall(p, w, r)
	c.key.Name = name
	if refusal, ok := c.prepare(); !ok { //nolint:contextcheck // the call has the request, and with it the context
		c.refuse(refusal)
		c.free(false)
		return
	}
	attempt, rec, err := p.once.eng.Claim(r.Context(), c.operation())
	switch {
	case err != nil:
		c.refuse(c.claimProblem(err, &rec))
		if r.Context().Err() != nil {
			return // the claim may still look at what is c's
		}
	case attempt != nil:
		c.run(attempt)
	default:
		c.answer(&rec)
	}
	c.free(attempt != nil)
}

// prepare finds out what a claim must say. Whose key it is comes first: nothing
// is read from a caller who is not known.
func (c *call) prepare() (refusal Problem, ok bool) {
	o := c.once
	principal, refusal, ok := o.opt.caller(c.r)
	if !ok {
		return refusal, false
	}
	c.key.Scope = umavez.Scope{Namespace: o.opt.Namespace, Principal: principal}
	body, err := readBody(c.r, o.opt.MaxRequestBody)
	if err != nil {
		if errors.Is(err, errBodyTaken) {
			c.logf("%v", err)
		}
		return bodyProblem(err), false
	}
	settings, err := o.space.settings(c.r.Context())
	if err != nil {
		c.logf("umavez: settings of namespace %q: %v", o.opt.Namespace, err)
		return unavailable(), false
	}
	c.body, c.settings = body, settings
	c.key.Secret = settings.secret
	c.fingerprint = o.prints.sum(&settings.hashKey, c.r, body)
	if c.keeps {
		return c.keepRequest()
	}
	return Problem{}, true
}

// operation is what the engine is asked to run once.
func (c *call) operation() umavez.Operation {
	rt := &c.once.route
	name := rt.Name
	if name == "" {
		name = c.r.Pattern
	}
	op := umavez.Operation{
		Key: c.key, Policy: c.policy, Route: name, Wait: c.wait(), Asked: c.received,
		Fingerprint: c.fingerprint, Refingerprint: c.refingerprint,
		Retain: rt.Retain, Tombstone: rt.Tombstone, Request: c.kept,
	}
	if c.once.opt.KeepNames {
		op.Label = label(&c.key)
	}
	return op
}

// wait is how long this request may wait for a running attempt, from its
// receipt on: what the client prefers, else what the route says (rule R2).
func (c *call) wait() time.Duration {
	o := c.once
	wait := o.opt.Wait
	if o.route.Wait != 0 {
		wait = o.route.Wait
	}
	if preferred, ok := preferredWait(c.r.Header, o.opt.WaitMax); ok {
		wait, c.preferred, c.prefers = preferred, preferred, true
	}
	return wait
}

// claimProblem is the refusal of a request whose claim was not answered by a
// record. Nothing was run.
func (c *call) claimProblem(err error, rec *umavez.Record) Problem {
	switch {
	case errors.Is(err, umavez.ErrKeyReused):
		p := problemFor(wire.CodeKeyReused)
		p.Differs = c.differs(rec)
		return p
	case errors.Is(err, umavez.ErrRecipeUnknown):
		p := problemFor(wire.CodeReplayUnavailable)
		p.recipeUnknown = true
		return p
	case errors.Is(err, umavez.ErrTooManyUnsettled):
		p := problemFor(wire.CodeTooManyUnsettled)
		p.RetryAfter = unsettledRetryAfter
		return p
	case errors.Is(err, umavez.ErrUnavailable), errors.Is(err, umavez.ErrClosed):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), c.r.Context().Err() != nil:
		// The caller has left, or a handler outside has given up on it. If
		// somebody still listens, nothing at all would read as 200.
	default:
		c.logf("umavez: claim: %v", err)
	}
	return unavailable()
}

// differs names what in this request is not as it was in the record's (rule F10).
func (c *call) differs(rec *umavez.Record) []string {
	mine := c.fingerprint
	if mine.Recipe != rec.Fingerprint.Recipe {
		mine, _ = c.refingerprint(rec.Fingerprint.Recipe)
	}
	return differs(rec.Fingerprint, mine)
}

// storeRetryAfter is when a client may ask again after a 503 (rule R5): about
// as long as a store takes to fail over to its standby is too long for one
// payment, and at once is too soon for all of them.
const storeRetryAfter = 2 * time.Second

// unsettledRetryAfter is when a caller may come again who has too many records
// that are running or lost: by then what is running has ended or lost its lease,
// and a reconciler has had a turn. Sooner, the answer would be the same.
const unsettledRetryAfter = 30 * time.Second

// unavailable is the refusal while the store does not confirm claims.
func unavailable() Problem {
	p := problemFor(wire.CodeStoreUnavailable)
	p.RetryAfter = storeRetryAfter
	return p
}

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// Options sets a sidecar up. Upstream, HTTP.Namespace and Principal are
// required; the zero value of every other field means its default.
type Options struct {
	// Upstream is where requests go: http://HOST[:PORT], https://… or, for
	// HTTP/2 without TLS, h2c://…
	Upstream string
	// UpstreamTLS is for https: authorities, a client certificate. Default: the
	// system's authorities.
	UpstreamTLS *tls.Config
	// RewriteHost sends the upstream its own name in Host, instead of the one
	// that the client asked for. X-Forwarded-Host has the client's either way.
	RewriteHost bool

	// Routes are enrolled. What matches none passes through, its keys ignored.
	Routes []Route
	// IgnoreCase matches paths without regard to case, for an upstream that does.
	IgnoreCase bool

	// HTTP is how keys are read, compared and answered for. Principal, Recipe
	// and KeepCORS in it are set here.
	HTTP umavezhttp.Options
	// Principal finds out who is calling. To tell nobody apart is a decision
	// and has a name: [NoPrincipal].
	Principal Source
	// TrustedProxies are the networks from which X-Forwarded-* and Forwarded are
	// believed. From everywhere else they are replaced. Default: none.
	TrustedProxies []netip.Prefix
	// CORS is for browsers that call enrolled routes from pages of other origins.
	CORS CORS
	// Status answers callers on GET /.umavez/keys/{key}, who ask what became of a
	// key of theirs: see umavezhttp.Once.Status. Nothing under that path goes to
	// the upstream then. Default: it is a path like any other.
	Status bool

	// Limits bounds waiting and sizes.
	Limits Limits
	// Logger gets what an operator must see. Default slog.Default().
	Logger *slog.Logger
}

// Proxy is a sidecar. Make one with [New]; it is an http.Handler, and ends with
// Close.
type Proxy struct {
	routes    *routes
	source    Source
	trusted   []netip.Prefix
	keys      []string // headers that may hold a key
	cors      CORS
	limits    Limits
	now       func() time.Time
	once      *umavezhttp.Once
	pass      http.Handler
	status    http.Handler // nil: off
	tunnels   http.Handler
	transport *transport
	askers    []*asker
	unmatched *unmatched
	log       *slog.Logger
}

// New checks the options and makes the routes. It connects to nothing.
func New(eng *umavez.Engine, o Options) (*Proxy, error) {
	to, err := parseTarget(o.Upstream)
	if err != nil {
		return nil, err
	}
	if o.Principal == nil {
		return nil, errors.New("umavez: Options.Principal is missing: it says whose keys they are; " +
			"a service that tells nobody apart says so with proxy.NoPrincipal")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	p := &Proxy{
		routes: newRoutes(o.IgnoreCase), source: o.Principal, trusted: slices.Clone(o.TrustedProxies),
		limits: o.Limits.withDefaults(), now: wallClock, log: o.Logger,
		unmatched: &unmatched{log: o.Logger},
	}
	if p.cors, err = o.CORS.check(); err != nil {
		return nil, err
	}
	o.HTTP.Principal = identified
	o.HTTP.Recipe = o.Principal.Recipe()
	o.HTTP.KeepCORS = true
	if p.once, err = umavezhttp.New(eng, o.HTTP); err != nil {
		return nil, err
	}
	for _, name := range append([]string{wire.IdempotencyKey}, o.HTTP.Headers...) {
		p.keys = append(p.keys, http.CanonicalHeaderKey(name))
	}
	if o.Status {
		p.status = p.once.Status()
	}
	to.rewriteHost = o.RewriteHost
	p.transport = newTransport(to, p.limits, o.UpstreamTLS, p.now)
	p.pass = passThrough(p.transport, p.log)
	p.tunnels = &tunneller{transport: p.transport, log: p.log}
	return p, p.enrol(o)
}

// enrol makes the routes.
func (p *Proxy) enrol(o Options) error {
	operation := &forwarder{
		transport: p.transport, keyHeaders: p.keys,
		pass: p.pass, refuse: p.once.RefuseUntil, log: p.log,
	}
	patterns, settings := make([]pattern, len(o.Routes)), make([]umavezhttp.Route, len(o.Routes))
	for i, rt := range o.Routes {
		pat, err := p.routes.parsePattern(rt)
		if err != nil {
			return err
		}
		rt.HTTP.Methods = pat.methods
		rt.HTTP.Host = rt.HTTP.Host || pat.host != ""
		if rt.HTTP.Name == "" {
			rt.HTTP.Name = rt.Pattern
		}
		patterns[i], settings[i] = pat, rt.HTTP
	}
	known := comparisons(settings)
	table := make([]*enrolled, len(o.Routes))
	for i, rt := range settings {
		written := o.Routes[i].Pattern
		rt.Formerly = slices.Concat(rt.Formerly, known)
		once, err := p.once.With(rt)
		if err != nil {
			return fmt.Errorf("umavez: the route %q: %w", written, err)
		}
		ofRoute := *operation
		ofRoute.again = o.Routes[i].again()
		handler, err := p.protect(once, o.Routes[i], &rt, &ofRoute)
		if err != nil {
			return fmt.Errorf("umavez: the route %q: %w", written, err)
		}
		table[i] = &enrolled{pattern: written, handler: handler}
		if err := p.routes.add(patterns[i], table[i]); err != nil {
			return err
		}
	}
	// Last, since a route that says "/pay" has it before one that says "/pay/".
	for i, e := range table {
		if err := p.routes.addAlong(patterns[i], e); err != nil {
			return err
		}
	}
	return nil
}

// protect puts an operation under its route's policy, and its lost records into
// the care of its reconciler.
func (p *Proxy) protect(once *umavezhttp.Once, rt Route, settings *umavezhttp.Route, operation http.Handler) (http.Handler, error) {
	var handler http.Handler
	var err error
	switch rt.Policy {
	case umavez.Opaque:
		if settings.KeepRequest && rt.Reconcile == nil {
			return nil, errors.New("it keeps its requests, and nobody would read them: " +
				"an opaque operation is never completed, and it has no reconciler")
		}
		handler = once.Opaque(operation)
	case umavez.Rerunnable:
		if handler, err = rerunnable(once, operation); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("the policy %v needs code in the operation; the sidecar knows %v and %v",
			rt.Policy, umavez.Opaque, umavez.Rerunnable)
	}
	if rt.Reconcile == nil {
		return handler, nil
	}
	asker, reconciler, err := rt.Reconcile.reconciler(settings, tellsApart(p.source))
	if err != nil {
		return nil, placed("reconcile", err)
	}
	p.askers = append(p.askers, asker)
	return once.Reconcile(handler, reconciler)
}

// rerunnable is Once.Rerunnable, which panics where the completer cannot be
// registered: it is written for route tables in code.
func rerunnable(once *umavezhttp.Once, operation http.Handler) (h http.Handler, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return once.Rerunnable(operation), nil
}

// Open reads what the namespace's processes share, so that a sidecar whose store
// is away, or whose callers are found by another recipe, need not start.
func (p *Proxy) Open(ctx context.Context) error { return p.once.Open(ctx) }

// Unmatched counts the requests with a key that matched no route so far. They
// were not protected.
func (p *Proxy) Unmatched() int64 { return p.unmatched.total.Load() }

// Close closes the idle connections to the upstream, and to those whom reconcilers
// ask. Requests under way go on; waiting for them is for the http.Server and the
// engine.
func (p *Proxy) Close() {
	p.unmatched.close()
	p.transport.close()
	for _, a := range p.askers {
		a.close()
	}
}

// ServeHTTP takes a request through what stands before its operation: CORS, the
// route, the caller (rule P7). The key comes after that, in umavezhttp.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.tunnels.ServeHTTP(w, r)
		return
	}
	if origin := p.cors.origin(r); origin != "" && isPreflight(r) && (p.asksStatus(r) || p.mayBecomeEnrolled(r)) {
		p.cors.preflight(w, r, origin)
		return
	}
	if p.asksStatus(r) {
		p.serveStatus(w, r)
		return
	}
	route, disguised := p.routes.find(r)
	if route == nil && !disguised {
		p.noteUnmatched(r)
		p.pass.ServeHTTP(w, p.arrive(w, r))
		return
	}
	if origin := p.cors.origin(r); origin != "" {
		w = &corsWriter{ResponseWriter: w, cors: &p.cors, origin: origin}
	}
	if disguised {
		p.once.Refuse(w, r, wire.CodeAmbiguousPath, http.StatusBadRequest)
		return
	}
	r, ok := p.identify(w, p.arrive(w, r))
	if ok {
		route.handler.ServeHTTP(w, r)
	}
}

// arrive returns the request as the rest of the sidecar and the upstream may see
// it: without what only the sidecar says, with what is true of where it came
// from, and with a body that cannot stall for ever.
func (p *Proxy) arrive(w http.ResponseWriter, in *http.Request) *http.Request {
	r := in.WithContext(in.Context())
	r.Header = in.Header.Clone()
	for _, name := range ownAnswerHeaders {
		delete(r.Header, name)
	}
	endToEnd(r.Header, func(name string) bool { return isForwarding(name) || slices.Contains(p.keys, name) })
	if s, ok := p.source.(Scrubber); ok {
		s.Scrub(r)
	}
	setForwarded(r.Header, in, p.trusted)
	if r.Body != nil && r.Body != http.NoBody && p.limits.ReadBody > 0 {
		r.Body = &patientBody{
			ReadCloser: r.Body, rc: http.NewResponseController(w), pause: p.limits.ReadBody, now: p.now,
		}
	}
	return r
}

// mayBecomeEnrolled reports whether the request that a preflight is about would
// be one of an enrolled route.
func (p *Proxy) mayBecomeEnrolled(r *http.Request) bool {
	next := *r
	next.Method = r.Header.Get("Access-Control-Request-Method")
	route, disguised := p.routes.find(&next)
	return route != nil && !disguised
}

// noteUnmatched counts a request whose key is ignored. Methods that change
// nothing have no use for one, and are no sign of a mistyped route.
func (p *Proxy) noteUnmatched(r *http.Request) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		if p.hasKey(r) {
			p.unmatched.note(r.Method, r.URL.Path)
		}
	}
}

func (p *Proxy) hasKey(r *http.Request) bool {
	return slices.ContainsFunc(p.keys, func(name string) bool { return len(r.Header[name]) > 0 })
}

// wallClock is the one clock of this package: it bounds waiting, and says how
// long a connection was idle. No record depends on it.
func wallClock() time.Time {
	return time.Now() //nolint:forbidigo // this is the clock that everything else here is handed
}

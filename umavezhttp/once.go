package umavezhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/umavez/umavez"
)

// Once protects handlers: it runs each of them once for a key. Make one for an
// application with [New]; [Once.With] makes others for particular routes. The
// policy under which a handler is protected is the method that wraps it, so that
// the route table shows what is promised:
//
//	mux.Handle("POST /pagamentos", auth(once.Opaque(pagar)))
//
// It is safe for concurrent use.
type Once struct {
	eng    *umavez.Engine
	opt    Options
	route  Route
	names  []string // of the headers that may hold a key
	prints *fingerprinter
	space  *namespace // shared by all that With made
	now    func() time.Time
}

// New checks the options, and does no I/O: what the namespace's processes share
// is read by Open, or else by the first request with a key. While the store is
// away, requests with a key are refused and nothing is run.
func New(eng *umavez.Engine, o Options) (*Once, error) {
	if eng == nil {
		return nil, errorf("New needs an engine")
	}
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	once := &Once{
		eng: eng, opt: o, names: o.keyNames(), now: wallClock,
		space: newNamespace(eng, o.Namespace, o.Recipe),
	}
	return once.With(Route{})
}

// With returns a Once for the operations behind one handler. It shares engine,
// options and namespace with o, and takes nothing over from o's own route.
func (o *Once) With(rt Route) (*Once, error) {
	rt, err := rt.check()
	if err != nil {
		return nil, err
	}
	if rt, err = rt.checkRecovery(o.eng); err != nil {
		return nil, err
	}
	routed := *o
	routed.route = rt
	routed.prints, err = rt.fingerprinter(&o.opt)
	return &routed, err
}

// Open reads what the namespace's processes share, so that a service whose store
// is away, or whose keys are scoped by another recipe (a [*umavez.RecipeError]),
// need not start. It is an error, too, when a route keeps requests that nobody
// would ever read. Calling it again after a success does nothing.
func (o *Once) Open(ctx context.Context) error {
	if err := o.space.nobodyReads(); err != nil {
		return err
	}
	_, err := o.space.settings(ctx)
	return err
}

// KeepsRequests reports whether the route keeps its requests (Route.KeepRequest).
// An adapter to a framework asks it where a handler can only run inside that
// framework, and so cannot be run by a completer.
func (o *Once) KeepsRequests() bool { return o.route.KeepRequest }

// Opaque protects a handler of which nothing is known: an attempt that is lost
// in the middle leaves the outcome unknown, and the key is never run again by
// itself. At most once. With Route.KeepRequest it needs a reconciler, which alone
// may read what is kept; without one nothing is kept, and Open fails.
func (o *Once) Opaque(next http.Handler) http.Handler { return o.protect(umavez.Opaque, next) }

// Rerunnable protects a handler whose author declares that running it again is
// safe: after an attempt that was lost, the next one runs. At least once. With
// Route.KeepRequest the completer runs it, too.
//
// Like Stepped it panics, as http.ServeMux.Handle does for two handlers of one
// pattern, when it cannot register the completer: another handler has the
// route's name, or the store cannot list its records.
func (o *Once) Rerunnable(next http.Handler) http.Handler { return o.protect(umavez.Rerunnable, next) }

// Stepped protects a handler whose foreign calls are steps (see [umavez.Step]):
// after an attempt that was lost, the next one resumes after the last kept step.
// Exactly once, if each foreign system honours the step's key for longer than
// the step may stay in doubt. With Route.KeepRequest the completer resumes it,
// too; see Rerunnable.
func (o *Once) Stepped(next http.Handler) http.Handler { return o.protect(umavez.Stepped, next) }

func (o *Once) protect(policy umavez.Policy, next http.Handler) http.Handler {
	if next == nil {
		panic("umavez: nil handler") // as http.ServeMux.Handle does
	}
	p := &protected{once: o, policy: policy, next: next}
	rt := &o.route
	switch {
	case !rt.KeepRequest:
	case policy == umavez.Opaque:
		o.space.unread(rt.Name, true)
	default:
		p.keeps = true
		err := o.eng.Recover(umavez.Recovery{
			Namespace: o.opt.Namespace, Route: rt.Name, Completer: p.completer(),
			Retain: rt.Retain, Tombstone: rt.Tombstone,
		})
		if err != nil {
			panic(err.Error()) // at wiring, as above
		}
	}
	return p
}

package umavez

import (
	"fmt"
	"sync"
	"time"
)

// recoveries is what was registered by [Engine.Recover]: who looks after the
// lost records of which route.
type recoveries struct {
	mu          sync.RWMutex
	reconcilers map[routeName]*reconciler
	completers  map[routeName]*Completer
}

// routeName is a route as records name it.
type routeName struct{ namespace, route string }

// reconciler is a Reconciler with what it needs to keep an answer.
type reconciler struct {
	Reconciler
	retain, tombstone time.Duration
}

// Recover registers who looks after the lost records of a route, at wiring time.
// A reconciler is asked from then on by the next attempt with a lost key, and by
// [Engine.Run]; a completer works in Run alone. What is zero gets its default.
//
// It refuses what makes no sense, and a second registration of the same part for
// the same namespace and route. [ErrNotOffered]: a reconciler needs a store that
// is a [Settler], and a completer one that is a [Lister], too.
func (e *Engine) Recover(r Recovery) error {
	at := routeName{r.Namespace, r.Route[:min(len(r.Route), MaxRoute)]}
	switch {
	case r.Route == "":
		return errorf("Recovery.Route is missing: records are looked after by route")
	case r.Reconciler == nil && r.Completer == nil:
		return errorf("Recovery for route %q has neither a reconciler nor a completer", r.Route)
	case r.Retain < 0:
		return errorf("Recovery.Retain is negative: %v", r.Retain)
	}
	if err := e.offersRecovery(&r); err != nil {
		return err
	}
	var asked *reconciler
	if r.Reconciler != nil {
		asked = &reconciler{Reconciler: *r.Reconciler, retain: r.Retain, tombstone: r.Tombstone}
		if err := asked.fill(e.Quiet()); err != nil {
			return err
		}
	}
	var completer *Completer
	if r.Completer != nil {
		kept := *r.Completer
		completer = &kept
		if err := completer.fill(); err != nil {
			return err
		}
	}
	return e.recoveries.add(at, asked, completer)
}

// offersRecovery: the store can do what the recovery needs.
func (e *Engine) offersRecovery(r *Recovery) error {
	if _, ok := e.base.(Settler); !ok {
		return fmt.Errorf("%w: settling the lost records of route %q", ErrNotOffered, r.Route)
	}
	if _, ok := e.base.(Lister); !ok && r.Completer != nil {
		return fmt.Errorf("%w: listing the lost records of route %q", ErrNotOffered, r.Route)
	}
	return nil
}

// add keeps both parts, or neither.
func (rs *recoveries) add(at routeName, asked *reconciler, completer *Completer) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case asked != nil && rs.reconcilers[at] != nil:
		return errorf("route %q in namespace %q has a reconciler already", at.route, at.namespace)
	case completer != nil && rs.completers[at] != nil:
		return errorf("route %q in namespace %q has a completer already", at.route, at.namespace)
	}
	if rs.reconcilers == nil {
		rs.reconcilers, rs.completers = make(map[routeName]*reconciler), make(map[routeName]*Completer)
	}
	if asked != nil {
		rs.reconcilers[at] = asked
	}
	if completer != nil {
		rs.completers[at] = completer
	}
	return nil
}

// reconciler returns the one of a record's route, or nil.
func (rs *recoveries) reconciler(rec *Record) *reconciler {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.reconcilers[routeName{rec.Namespace, rec.Route}]
}

// completer returns the one of a route, or nil.
func (rs *recoveries) completer(namespace, route string) *Completer {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.completers[routeName{namespace, route}]
}

// any reports which parts were registered, for any route.
func (rs *recoveries) any() (reconciler, completer bool) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return len(rs.reconcilers) > 0, len(rs.completers) > 0
}

// The defaults of a [Reconciler].
const (
	defaultAskAfter   = 10 * time.Second
	defaultAskEvery   = 30 * time.Second
	defaultAskPark    = 24 * time.Hour
	defaultAskTimeout = 30 * time.Second
	defaultAskWho     = "reconciler"
)

// fill sets the defaults and refuses nonsense.
func (r *reconciler) fill(quiet time.Duration) error {
	if r.Ask == nil {
		return errorf("Reconciler.Ask is missing")
	}
	err := fillDurations("Reconciler", []duration{
		{"After", &r.After, defaultAskAfter},
		{"Every", &r.Every, defaultAskEvery},
		{"Park", &r.Park, defaultAskPark},
		{"Quiet", &r.Quiet, quiet},
		{"Timeout", &r.Timeout, defaultAskTimeout},
	})
	switch {
	case err != nil:
		return err
	case r.Quiet < quiet:
		return errorf("Reconciler.Quiet is %v, less than the engine's %v: a request may be on its way for as long", r.Quiet, quiet)
	case r.After > r.Park:
		return errorf("Reconciler.After (%v) is longer than Reconciler.Park (%v): it would never be asked", r.After, r.Park)
	case !plainText(r.Who):
		return errorf("Reconciler.Who is text in UTF-8, without NUL")
	case len(r.Who) > MaxWho:
		return errorf("Reconciler.Who has %d bytes; the audit trail keeps %d", len(r.Who), MaxWho)
	}
	if r.Who == "" {
		r.Who = defaultAskWho
	}
	return nil
}

// The defaults of a [Completer].
const (
	defaultCompleteAfter = time.Minute
	defaultCompleteUntil = 10 * time.Minute
	defaultCompleteTries = 5
)

// fill sets the defaults and refuses nonsense.
func (c *Completer) fill() error {
	if c.Complete == nil {
		return errorf("Completer.Complete is missing")
	}
	err := fillDurations("Completer", []duration{
		{"After", &c.After, defaultCompleteAfter},
		{"Until", &c.Until, defaultCompleteUntil},
	})
	switch {
	case err != nil:
		return err
	case c.Until <= c.After:
		return errorf("Completer.Until (%v) is not longer than Completer.After (%v): it would never begin", c.Until, c.After)
	case c.Tries < 0:
		return errorf("Completer.Tries is negative: %d", c.Tries)
	}
	if c.Tries == 0 {
		c.Tries = defaultCompleteTries
	}
	return nil
}

// duration is a field that has a default.
type duration struct {
	name  string
	value *time.Duration
	def   time.Duration
}

// fillDurations sets the defaults of what is zero, and refuses what is negative.
func fillDurations(of string, fields []duration) error {
	for _, d := range fields {
		if *d.value < 0 {
			return errorf("%s.%s is negative: %v", of, d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return nil
}

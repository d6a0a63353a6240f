package umavezhttp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umavez/umavez"
)

// namespace holds what all processes of a namespace share, above all the key of
// their fingerprints. It is read from the store once, and a request that needs
// it while the store is away is refused.
type namespace struct {
	eng          *umavez.Engine
	name, recipe string

	mu      sync.Mutex
	orphans map[string]bool // routes that keep requests for nobody

	kept atomic.Pointer[shared]
	turn chan struct{} // held by the one caller who asks the store
}

// shared is what a request needs of the settings.
type shared struct {
	// hashKey keys fingerprints.
	hashKey [umavez.HashKeySize]byte
	// secret keys the hashes of keys and callers. It is zero when the store does
	// not keep the settings: another process would find other records.
	secret [umavez.HashKeySize]byte
}

// settingsTimeout bounds one reading, as the engine bounds a claim by default:
// a client gives up at about that time, too.
const settingsTimeout = 2 * time.Second

func newNamespace(eng *umavez.Engine, name, recipe string) *namespace {
	return &namespace{eng: eng, name: name, recipe: recipe, turn: make(chan struct{}, 1)}
}

// unread notes whether a route keeps requests that nobody would read: those of
// an opaque handler that has no reconciler. Nothing of it is ever completed.
func (n *namespace) unread(route string, unread bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !unread {
		delete(n.orphans, route)
		return
	}
	if n.orphans == nil {
		n.orphans = map[string]bool{}
	}
	n.orphans[route] = true
}

// nobodyReads is an error that names the routes that unread knows of, or nil.
func (n *namespace) nobodyReads() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.orphans) == 0 {
		return nil
	}
	return errorf("the routes %q keep requests, but are opaque and have no reconciler: "+
		"an opaque operation is never completed, so nobody would read them; see Once.Reconcile",
		slices.Sorted(maps.Keys(n.orphans)))
}

// settings returns what is shared. While one caller asks the store the others
// wait for their turn, so that a store that comes back is not overrun.
func (n *namespace) settings(ctx context.Context) (*shared, error) {
	if s := n.kept.Load(); s != nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-n.turn }()
	if s := n.kept.Load(); s != nil {
		return s, nil
	}
	settings, err := n.eng.Namespace(ctx, n.name, n.recipe)
	if err != nil {
		return nil, err
	}
	s := &shared{hashKey: [umavez.HashKeySize]byte([]byte(settings.HashKey))}
	if settings.Kept {
		s.secret = s.hashKey
	}
	n.kept.Store(s)
	return s, nil
}

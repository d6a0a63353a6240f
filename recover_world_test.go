package umavez_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// This file is what the tests of recovery share.

// settlingStore is a faultStore whose records can be held, settled and listed.
type settlingStore struct {
	*faultStore
	mem *memstore.Store
}

func newSettlingStore(on func(op string, n int) fault) *settlingStore {
	mem := memstore.New(memstore.Options{})
	return &settlingStore{newFaultStore(mem, on), mem}
}

func (s *settlingStore) Hold(ctx context.Context, id umavez.ID, fence umavez.Fence, holder umavez.AttemptID, d time.Duration) error {
	return s.call(ctx, "hold", func(ctx context.Context) error { return s.mem.Hold(ctx, id, fence, holder, d) })
}

func (s *settlingStore) Settle(ctx context.Context, id umavez.ID, settlement umavez.Settlement) error {
	return s.call(ctx, "settle", func(ctx context.Context) error { return s.mem.Settle(ctx, id, settlement) })
}

func (s *settlingStore) Trail(ctx context.Context, id umavez.ID) ([]umavez.AuditEntry, error) {
	return s.mem.Trail(ctx, id)
}

func (s *settlingStore) List(ctx context.Context, q umavez.Query) (page []umavez.Listed, err error) {
	err = s.call(ctx, "list", func(ctx context.Context) (err error) {
		page, err = s.mem.List(ctx, q)
		return err
	})
	return page, err
}

// eachSettlingStore is eachStore for recovery.
func eachSettlingStore(t *testing.T, test func(t *testing.T, s umavez.Store)) {
	t.Run("prompt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, memstore.New(memstore.Options{})) })
	})
	t.Run("waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newSettlingStore(nil)) })
	})
}

// lose claims a key and gives it up, as an operation does that broke off.
func lose(t *testing.T, e *umavez.Engine, op umavez.Operation) *umavez.Attempt {
	t.Helper()
	a := mustClaim(t, e, op)
	if err := a.Abandon(umavez.ReasonBroken, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// keepRunning has an engine do its housekeeping until the test ends it.
func keepRunning(t *testing.T, e *umavez.Engine) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// asker is a reconciler that notes when it was asked, since the test began.
type asker struct {
	says func(n int, l umavez.LostRecord) (umavez.Verdict, error) // n counts from 1
	took time.Duration

	start time.Time
	mu    sync.Mutex
	at    []time.Duration
	now   int // calls under way
	most  int
}

func newAsker(says func(n int, l umavez.LostRecord) (umavez.Verdict, error)) *asker {
	if says == nil {
		says = func(int, umavez.LostRecord) (umavez.Verdict, error) { return umavez.StillUnknown(), nil }
	}
	return &asker{says: says, start: time.Now()}
}

func (a *asker) ask(ctx context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
	a.mu.Lock()
	a.at = append(a.at, time.Since(a.start))
	n := len(a.at)
	a.now++
	a.most = max(a.most, a.now)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.now--
		a.mu.Unlock()
	}()
	if !sleep(ctx, a.took) {
		return umavez.StillUnknown(), ctx.Err()
	}
	return a.says(n, l)
}

func (a *asker) times() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Duration(nil), a.at...)
}

// passTime lets time pass, and all that happens in it come to rest.
func passTime(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// mustRecover registers a recovery for the route of all tests.
func mustRecover(t *testing.T, e *umavez.Engine, r umavez.Recovery) {
	t.Helper()
	r.Namespace, r.Route = "test", "test"
	if err := e.Recover(r); err != nil {
		t.Fatal(err)
	}
}

func happened(answer string) func(int, umavez.LostRecord) (umavez.Verdict, error) {
	return func(int, umavez.LostRecord) (umavez.Verdict, error) { return umavez.Happened([]byte(answer)), nil }
}

// sightings notes what an engine observes.
type sightings struct {
	mu  sync.Mutex
	all []umavez.Observation
}

func (m *sightings) note(o umavez.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, o)
}

func (m *sightings) of(which umavez.Moment) (found []umavez.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.all {
		if o.Moment == which {
			found = append(found, o)
		}
	}
	return found
}

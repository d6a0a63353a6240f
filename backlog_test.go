package umavez_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// moments collects what an engine observes.
type moments struct {
	mu   sync.Mutex
	seen []umavez.Observation
}

func (m *moments) observe(o umavez.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, o)
}

func (m *moments) count(want umavez.Moment) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, o := range m.seen {
		if o.Moment == want {
			n++
		}
	}
	return n
}

// TestEndsAreRepeated: each way to end an attempt survives a reply that is lost
// and a store that is away, in front of its caller and behind.
func TestEndsAreRepeated(t *testing.T) {
	ends := map[string]struct {
		end  func(*umavez.Attempt) error
		want umavez.State
	}{
		"complete": {func(a *umavez.Attempt) error { return a.Complete([]byte("x")) }, umavez.Done},
		"release":  {func(a *umavez.Attempt) error { return a.Release(nil) }, umavez.Vacant},
		"abandon":  {func(a *umavez.Attempt) error { return a.Abandon(umavez.ReasonReset, []byte("x")) }, umavez.Lost},
	}
	for op, end := range ends {
		for name, f := range map[string]fault{
			"not sent":   {notSent: true},
			"lost":       {lost: true},
			"reply lost": {replyLost: true},
			"hangs":      {delay: time.Hour},
		} {
			for _, failures := range []int{1, 40} {
				t.Run(fmt.Sprintf("%s/%s/%d", op, name, failures), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newFaultStore(memstore.New(memstore.Options{}), func(called string, n int) fault {
							if called == op && n <= failures {
								return f
							}
							return fault{}
						})
						var seen moments
						e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, Observe: seen.observe})
						key := opaque("k")
						began := time.Now()
						err := end.end(mustClaim(t, e, key))
						if took := time.Since(began); took > 2*time.Second {
							t.Errorf("the caller was kept for %v", took)
						}
						if inTime := failures == 1 && f.delay == 0; inTime != (err == nil) || (err != nil && !errors.Is(err, umavez.ErrUnsaved)) {
							t.Errorf("%s: %v", op, err)
						}
						closeEngine(t, e) // waits for what is not saved
						wantState(t, e, key, end.want)
						if n := seen.count(umavez.MomentLeaseLost); n != 0 {
							t.Errorf("%d leases lost", n)
						}
					})
				})
			}
		}
	}
}

// TestSavedAfterTheLease: a completion is repeated lease or no lease, and ends
// when the record went to someone else.
func TestSavedAfterTheLease(t *testing.T) {
	for _, policy := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(memstore.Options{})
				var away atomic.Bool
				s := newFaultStore(mem, func(op string, _ int) fault {
					return fault{lost: away.Load() && (op == "complete" || op == "extend")}
				})
				var seen moments
				e := newEngine(t, s, umavez.Options{Lease: 15 * time.Second, Observe: seen.observe})
				other := newEngine(t, mem, umavez.Options{})
				defer closeEngine(t, other)
				op := opaque("k")
				op.Policy = policy
				a := mustClaim(t, e, op)
				away.Store(true)
				if err := a.Complete([]byte("mine")); !errors.Is(err, umavez.ErrUnsaved) {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				b, rec, err := other.Claim(t.Context(), op)
				if err != nil {
					t.Fatal(err)
				}
				if policy == umavez.Opaque && (b != nil || rec.State != umavez.Lost) {
					t.Fatalf("%v %v: a rerun, though its answer is only unsaved", b, rec.State)
				}
				if b != nil {
					if err := b.Complete([]byte("theirs")); err != nil {
						t.Fatal(err)
					}
				}
				away.Store(false)
				closeEngine(t, e)
				want, lost := "mine", 0
				if policy != umavez.Opaque {
					want, lost = "theirs", 1
				}
				if rec := wantState(t, e, op, umavez.Done); string(rec.Answer) != want {
					t.Errorf("the record says %q, want %q", rec.Answer, want)
				}
				if n := seen.count(umavez.MomentLeaseLost); n < lost {
					t.Errorf("%d leases lost, want %d", n, lost)
				}
			})
		})
	}
}

// TestUnsavedIsBounded: with too much unsaved, no new claims are taken, and
// what was there is saved all the same.
func TestUnsavedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
			return fault{lost: away.Load() && op == "complete"}
		})
		e := newEngine(t, s, umavez.Options{MaxUnsaved: 1000})
		defer closeEngine(t, e)
		a, b := mustClaim(t, e, opaque("a")), mustClaim(t, e, opaque("b"))
		away.Store(true)
		var wg sync.WaitGroup
		for _, x := range []*umavez.Attempt{a, b} {
			wg.Go(func() {
				if err := x.Complete(make([]byte, 600)); !errors.Is(err, umavez.ErrUnsaved) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if c, _, err := e.Claim(t.Context(), opaque("c")); c != nil || !errors.Is(err, umavez.ErrUnavailable) {
			t.Errorf("with a full backlog: %v, %v", c, err)
		}
		away.Store(false)
		time.Sleep(3 * time.Second)
		wantState(t, e, opaque("a"), umavez.Done)
		wantState(t, e, opaque("b"), umavez.Done)
		if err := mustClaim(t, e, opaque("c")).Complete(nil); err != nil {
			t.Fatal(err)
		}
	})
}

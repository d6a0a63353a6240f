//go:build unix

package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// gateway is a card gateway in the test's own process. Its ledger outlives the
// processes that pay through it.
type gateway struct {
	*httptest.Server
	forgetful bool // it honours no keys

	mu      sync.Mutex
	charges map[string]int // by payment
	keys    map[string]bool
	sent    int
}

func newGateway(t *testing.T, forgetful bool) *gateway {
	g := &gateway{forgetful: forgetful, charges: map[string]int{}, keys: map[string]bool{}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		g.sent++
		if g.forgetful || !g.keys[key] {
			g.keys[key] = true
			g.charges[r.URL.Path[1:]]++
		}
		_, _ = io.WriteString(w, "ch_"+key)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) count(payment string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.charges[payment]
}

// pay is what the child does with the order of that name: n payments beside each
// other, each one step that charges. With die, each waits between the charge and
// its checkpoint for the kill that is to come.
func pay(ctx context.Context, s *Store, o order, out *reporter) {
	e, err := umavez.New(s, umavez.Options{Lease: 2 * time.Second, ClaimTimeout: unhurried, SaveTimeout: unhurried})
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for n := range o.N {
		name := fmt.Sprintf("%s-%d", o.Key, n)
		wg.Go(func() {
			op := umavez.Operation{
				Key:    umavez.Key{Scope: umavez.Scope{Namespace: "test"}, Name: name},
				Policy: umavez.Stepped, Route: "pagar", Wait: time.Minute, Request: []byte(name),
			}
			res, err := umavez.Do(ctx, e, op, func(ctx context.Context) (string, error) {
				var options []umavez.StepOption
				if o.NoKey {
					options = append(options, umavez.NoForeignKey())
				}
				return umavez.Step(ctx, "cobrar", func(ctx context.Context, key string) (string, error) {
					id, err := charge(ctx, o.URL+"/"+name, key)
					if o.Die {
						out.send(report{Claimed: name})
						select {}
					}
					return id, err
				}, options...)
			})
			r := report{Completed: name, Answer: []byte(res.Value)}
			if err != nil {
				r.Err = err.Error()
			}
			if broken, ok := errors.AsType[*umavez.StepError](err); ok {
				r.Err = string(broken.Reason)
			}
			out.send(r)
		})
	}
	wg.Wait()
	if err := e.Close(ctx); err != nil {
		panic(err)
	}
}

func charge(ctx context.Context, target, key string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, http.NoBody)
	if err != nil {
		return "", err
	}
	req.Header["Idempotency-Key"] = []string{key}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	id, err := io.ReadAll(res.Body)
	return string(id), err
}

// TestKilledBetweenChargeAndCheckpoint: two hundred payments, each charged by a
// process that is killed before it has kept that. Where the gateway honours keys,
// the next process finishes every one of them, with one charge each. Where it
// honours none, none is charged twice, each is unknown, with that reason, and a
// reconciler settles it.
func TestKilledBetweenChargeAndCheckpoint(t *testing.T) {
	const rounds, payments = 4, 50
	for _, forgetful := range []bool{false, true} {
		t.Run(fmt.Sprintf("gateway without keys %v", forgetful), func(t *testing.T) {
			t.Parallel()
			g, path := newGateway(t, forgetful), file(t)
			for round := range rounds {
				o := order{Do: "pay", Key: fmt.Sprint(round), N: payments, URL: g.URL, NoKey: forgetful, Die: true}
				dying := start(t, path)
				dying.tell(o)
				for range payments {
					if r := dying.read(); r.Claimed == "" {
						t.Fatalf("a payment that was to be cut ended: %+v", r)
					}
				}
				dying.kill()

				o.Die = false
				next := start(t, path)
				next.tell(o)
				for range payments {
					r := next.read()
					switch {
					case forgetful && r.Err != string(umavez.ReasonStepInDoubt):
						t.Errorf("payment %s: %+v, want a step in doubt", r.Completed, r)
					case !forgetful && (r.Err != "" || !strings.HasPrefix(string(r.Answer), "ch_")):
						t.Errorf("payment %s: %+v, want its charge", r.Completed, r)
					}
				}
				next.end()
			}
			s := open(t, path, Options{})
			want, sent := umavez.Done, 2*rounds*payments
			if forgetful {
				want, sent = umavez.Lost, rounds*payments
			}
			for round := range rounds {
				for n := range payments {
					name := fmt.Sprintf("%d-%d", round, n)
					rec := get(t, s, name)
					if g.charges[name] != 1 || rec.State != want || forgetful && rec.Reason != umavez.ReasonStepInDoubt {
						t.Errorf("payment %s: %d charges, %v %s", name, g.charges[name], rec.State, rec.Reason)
					}
				}
			}
			if g.sent != sent {
				t.Errorf("%d charges were sent, want %d", g.sent, sent)
			}
			if forgetful {
				reconciled(t, path, g, rounds*payments)
			}
		})
	}
}

// reconciled: every payment in doubt is on the list of what is unknown, and a
// reconciler that asks the gateway settles them all, with nobody's help.
func reconciled(t *testing.T, path string, g *gateway, doubtful int) {
	t.Helper()
	s := open(t, path, Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	e, err := umavez.New(s, umavez.Options{ClaimTimeout: unhurried, SaveTimeout: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.WithoutCancel(t.Context()))
	unknown := umavez.Query{Unknown: true, Limit: umavez.MaxPage}
	listed, err := e.List(t.Context(), unknown)
	if err != nil || len(listed) != doubtful {
		t.Fatalf("%d payments are listed as unknown, %v; want %d", len(listed), err, doubtful)
	}
	err = e.Recover(umavez.Recovery{Namespace: "test", Route: "pagar", Reconciler: &umavez.Reconciler{
		Ask: func(_ context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
			if g.count(string(l.Request)) == 0 {
				return umavez.CannotHappen(), nil
			}
			return umavez.HappenedWith("ch_" + string(l.Request))
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for len(listed) > 0 {
		if listed, err = e.List(t.Context(), unknown); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	done, err := e.List(t.Context(), umavez.Query{States: []umavez.State{umavez.Done}, Limit: umavez.MaxPage})
	if err != nil || len(done) != doubtful {
		t.Errorf("%d payments are done, %v; want %d", len(done), err, doubtful)
	}
	for _, l := range done {
		if rec, trail, err := e.Inspect(t.Context(), l.ID); err != nil || !rec.Settled || len(trail) != 1 || trail[0].Action != umavez.ActionHappened {
			t.Errorf("%v: settled %v, trail %+v, %v", l.ID, rec.Settled, trail, err)
		}
	}
}

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
				Policy: umavez.Stepped, Wait: time.Minute,
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
// honours none, none is charged twice, and each is unknown, with that reason.
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
		})
	}
}

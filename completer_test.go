package umavez_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// payments completes lost payments: each is one step, named in the kept request.
type payments struct {
	gateway
	eng   *umavez.Engine
	run   func(ctx context.Context) (string, error) // nil: charge and answer
	mu    sync.Mutex
	ages  []time.Duration // of the records, at the start of each attempt
	calls int
}

func payment(name string) umavez.Operation {
	op := stepped(name)
	op.Request = []byte(name)
	return op
}

func (p *payments) complete(ctx context.Context, l umavez.LostRecord) error {
	op := payment(string(l.Request))
	op.Fingerprint = l.Fingerprint
	if op.Key.ID() != l.ID {
		return fmt.Errorf("the request %q is not of this record", l.Request)
	}
	p.mu.Lock()
	p.calls++
	p.mu.Unlock()
	a, _, err := p.eng.Resume(ctx, op, l.Fence)
	if a == nil {
		return err
	}
	rec, err := p.eng.Get(ctx, op.Key)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.ages = append(p.ages, rec.Age)
	p.mu.Unlock()
	run := p.run
	if run == nil {
		run = p.steps("charge")
	}
	answer, err := run(a.Context())
	if err != nil {
		return errors.Join(err, a.Abandon(umavez.ReasonError, nil))
	}
	return a.Complete([]byte(answer))
}

// takenUp is how many records were handed to it.
func (p *payments) takenUp() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// newPayments makes an engine with a completer of payments.
func newPayments(t *testing.T, s umavez.Store, o umavez.Options, c umavez.Completer) *payments {
	t.Helper()
	p := &payments{eng: newEngine(t, s, o)}
	c.Complete = p.complete
	mustRecover(t, p.eng, umavez.Recovery{Completer: &c})
	return p
}

// TestAllLostPaymentsAreCompleted: a hundred clients die at once, in the middle,
// and two processes finish what they began.
func TestAllLostPaymentsAreCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettlingStore(nil)
		first := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, first)
		var gw gateway
		for i := range 100 {
			a := mustClaim(t, first, payment(fmt.Sprint(i)))
			if i%2 == 0 {
				_, _ = thenFails(gw.steps("charge"))(a.Context())
			}
			if err := a.Abandon(umavez.ReasonKilled, nil); err != nil {
				t.Fatal(err)
			}
		}
		var all []*payments
		for range 2 {
			p := newPayments(t, s, umavez.Options{}, umavez.Completer{})
			defer closeEngine(t, p.eng)
			p.run = func(ctx context.Context) (string, error) {
				time.Sleep(time.Second) // it takes its time
				return gw.steps("charge")(ctx)
			}
			defer keepRunning(t, p.eng)()
			all = append(all, p)
		}
		passTime(59 * time.Second)
		if n := all[0].takenUp() + all[1].takenUp(); n != 0 {
			t.Errorf("%d were taken up within a minute: the clients' own retries come first", n)
		}
		passTime(time.Minute)
		for i := range 100 {
			rec := wantState(t, first, payment(fmt.Sprint(i)), umavez.Done)
			if want := "charge of " + payment(fmt.Sprint(i)).Key.ID().DerivedKey("charge"); string(rec.Answer) != want {
				t.Errorf("payment %d is answered %q, want %q", i, rec.Answer, want)
			}
		}
		if len(gw.charges) != 100 || len(gw.sent) != 100 {
			t.Errorf("%d charges, %d of them sent; want 100 of each", len(gw.charges), len(gw.sent))
		}
		for i, p := range all {
			if len(p.ages) == 0 {
				t.Errorf("process %d has finished none: the work is not shared", i)
			}
		}
	})
}

// TestNoneIsCompletedAfterUntil: however full the worker is.
func TestNoneIsCompletedAfterUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPayments(t, newSettlingStore(nil), umavez.Options{MaxRecovering: 2}, umavez.Completer{})
		defer closeEngine(t, p.eng)
		p.run = func(context.Context) (string, error) {
			time.Sleep(30 * time.Second)
			return "answer", nil
		}
		for i := range 100 {
			lose(t, p.eng, payment(fmt.Sprint(i)))
		}
		defer keepRunning(t, p.eng)()
		passTime(time.Hour)
		for _, age := range p.ages {
			if age < time.Minute || age >= 10*time.Minute {
				t.Errorf("one began at the age of %v", age)
			}
		}
		if n := len(p.ages); n < 30 || n > 40 {
			t.Errorf("%d were completed, want what two at a time can do in nine minutes", n)
		}
		lost, err := p.eng.List(t.Context(), umavez.Query{States: []umavez.State{umavez.Lost}, Limit: 100})
		if err != nil || len(lost) != 100-len(p.ages) {
			t.Errorf("%d are lost (%v)", len(lost), err)
		}
		for _, l := range lost {
			if l.Tries != 1 || l.Reason != umavez.ReasonBroken {
				t.Errorf("one that is too old was touched: %d tries, %v", l.Tries, l.Reason)
			}
		}
	})
}

// TestFailuresPark: after so many attempts somebody has to look.
func TestFailuresPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen sightings
		p := newPayments(t, newSettlingStore(nil), umavez.Options{Observe: seen.note}, umavez.Completer{Until: time.Hour})
		defer closeEngine(t, p.eng)
		p.run = func(context.Context) (string, error) { return "", errLater }
		id := lose(t, p.eng, payment("k")).Lease().ID
		defer keepRunning(t, p.eng)()
		passTime(30 * time.Minute)
		rec := wantState(t, p.eng, payment("k"), umavez.Lost)
		if rec.Reason != umavez.ReasonParked || rec.Tries != 5 || !rec.Unknown() {
			t.Errorf("lost by %v after %d tries, want parked after 5", rec.Reason, rec.Tries)
		}
		if _, trail, err := p.eng.Inspect(t.Context(), id); err != nil || len(trail) != 1 || trail[0].Who != "completer" {
			t.Errorf("the audit trail is %+v, %v", trail, err)
		}
		if n, failed := len(seen.of(umavez.MomentCompleter)), seen.of(umavez.MomentRecoveryFailed); n != 4 || len(failed) != 4 || !errors.Is(failed[0].Err, errLater) {
			t.Errorf("taken up %d times, %d failures: %v", n, len(failed), failed)
		}
		if a, rec, err := p.eng.Claim(t.Context(), payment("k")); a != nil || err != nil || rec.State != umavez.Lost {
			t.Errorf("a parked record is claimed: %v, %v, %v", a, rec.State, err)
		}
	})
}

// TestCompleterLeavesAlone: what is not its own to finish.
func TestCompleterLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Options{})
		p := newPayments(t, mem, umavez.Options{}, umavez.Completer{})
		defer closeEngine(t, p.eng)
		lose(t, p.eng, opaque("opaque"))
		lose(t, p.eng, stepped("without its request"))
		elsewhere := payment("elsewhere")
		elsewhere.Route = "another"
		lose(t, p.eng, elsewhere)
		doubt := mustClaim(t, p.eng, payment("in doubt"))
		if err := doubt.Abandon(umavez.ReasonStepInDoubt, nil); err != nil {
			t.Fatal(err)
		}
		cleared := mustClaim(t, p.eng, payment("cleared"))
		if _, err := umavez.Step(cleared.Context(), "charge", p.charge); err != nil {
			t.Fatal(err)
		}
		if err := cleared.Abandon(umavez.ReasonStepInDoubt, nil); err != nil {
			t.Fatal(err)
		}
		l := cleared.Lease()
		if err := p.eng.Settle(t.Context(), l.ID, umavez.Settlement{Action: umavez.ActionCannotHappen, Fence: l.Fence, Who: "w", Why: "y"}); err != nil {
			t.Fatal(err)
		}
		running := mustClaim(t, p.eng, payment("running"))
		defer keepRunning(t, p.eng)()
		passTime(4 * time.Minute)
		if err := running.Complete(nil); err != nil {
			t.Fatal(err)
		}
		passTime(10 * time.Minute)
		if p.takenUp() != 0 {
			t.Errorf("%d were taken up", p.takenUp())
		}
		// The retry of a client does go on with what was settled to be resumed.
		if err := mustClaim(t, p.eng, payment("cleared")).Abandon(umavez.ReasonError, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestCompleteGoesWrong: before the record was taken over. It is not tried again at
// once, by nobody, and its client can go on.
func TestCompleteGoesWrong(t *testing.T) {
	for name, complete := range map[string]func() error{
		"fails":              func() error { return errLater },
		"panics":             func() error { panic("no") },
		"ends its goroutine": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(memstore.Options{})
				var mu sync.Mutex
				calls := 0
				for range 2 {
					e := newEngine(t, mem, umavez.Options{})
					defer closeEngine(t, e)
					mustRecover(t, e, umavez.Recovery{Completer: &umavez.Completer{Complete: func(context.Context, umavez.LostRecord) error {
						mu.Lock()
						calls++
						mu.Unlock()
						return complete()
					}}})
					defer keepRunning(t, e)()
				}
				e := newEngine(t, mem, umavez.Options{})
				defer closeEngine(t, e)
				lose(t, e, payment("k"))
				passTime(9 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if calls < 6 || calls > 16 {
					t.Errorf("tried %d times in nine minutes, want about one a minute", calls)
				}
				if err := mustClaim(t, e, payment("k")).Complete(nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestCloseWaitsForCompleters: running ones are drained like others, and none is
// taken up any more.
func TestCloseWaitsForCompleters(t *testing.T) {
	for _, patient := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newSettlingStore(nil)
			p := newPayments(t, s, umavez.Options{MaxRecovering: 1}, umavez.Completer{})
			started := make(chan struct{}, 2)
			p.run = func(context.Context) (string, error) {
				started <- struct{}{}
				time.Sleep(20 * time.Second)
				return "answer", nil
			}
			lose(t, p.eng, payment("1"))
			lose(t, p.eng, payment("2"))
			end := keepRunning(t, p.eng)
			<-started
			if got := p.eng.Stats(); got.Completing != 1 {
				t.Errorf("Stats: %+v", got)
			}
			end() // what was taken up goes on all the same
			patience := time.Second
			if patient {
				patience = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := p.eng.Close(ctx)
			var left *umavez.UnfinishedError
			if patient != (err == nil) || !patient && (!errors.As(err, &left) || len(left.Running) != 1) {
				t.Errorf("Close: %v", err)
			}
			passTime(time.Minute)
			done, err := s.mem.List(t.Context(), umavez.Query{States: []umavez.State{umavez.Done}, Limit: 10})
			if err != nil || patient && len(done) != 1 || p.calls != 1 {
				t.Errorf("%d calls, %d are done (%v)", p.calls, len(done), err)
			}
		})
	}
}

// TestListingFails: it is observed, and tried again.
func TestListingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen sightings
		s := newSettlingStore(func(op string, n int) fault { return fault{lost: op == "list" && n <= 30} })
		p := newPayments(t, s, umavez.Options{Observe: seen.note}, umavez.Completer{})
		defer closeEngine(t, p.eng)
		lose(t, p.eng, payment("k"))
		end := keepRunning(t, p.eng)
		defer end()
		passTime(5 * time.Minute)
		wantState(t, p.eng, payment("k"), umavez.Done)
		if failed := seen.of(umavez.MomentRecoveryFailed); len(failed) != 30 || failed[0].Err == nil || failed[0].ID != (umavez.ID{}) {
			t.Errorf("%d failures were observed: %v", len(failed), failed)
		}
		if n := len(seen.of(umavez.MomentCompleter)); n != 1 {
			t.Errorf("taken up %d times", n)
		}
	})
}

// TestNothingRunsByItself: a constructor and a registration start nothing.
func TestNothingRunsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettlingStore(nil)
		p := newPayments(t, s, umavez.Options{}, umavez.Completer{})
		defer closeEngine(t, p.eng)
		lose(t, p.eng, payment("k"))
		passTime(5 * time.Minute)
		if n := s.count("list"); n != 0 || p.calls != 0 {
			t.Errorf("%d lists, %d calls without Run", n, p.calls)
		}
	})
}

//go:build unix

package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// This file is about owners that come late: their verdict has been spoken, and
// then they go on. Each payment is charged by what way says.

// bank is a card gateway that a charge may reach late, and that can be asked. Its
// ledger outlives the processes that pay through it.
type bank struct {
	*httptest.Server

	mu        sync.Mutex
	charges   map[string]int    // by payment
	keys      map[string]string // honoured: the charge of each
	cancelled map[string]bool
	held      chan struct{} // closed: charges on the wire arrive. Nil: at once
	waiting   chan string   // told of each charge that is on the wire
	arrived   sync.WaitGroup
}

func newBank(t *testing.T) *bank {
	b := &bank{charges: map[string]int{}, keys: map[string]string{}, cancelled: map[string]bool{}}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.Close)
	return b
}

// serve charges (POST /PAYMENT), tells what there is of a payment (GET), and
// cancels a key (DELETE /KEY).
func (b *bank) serve(w http.ResponseWriter, r *http.Request) {
	name, key := r.URL.Path[1:], r.Header.Get("Idempotency-Key")
	if r.Method == http.MethodPost {
		b.mu.Lock()
		held, waiting := b.held, b.waiting
		b.mu.Unlock()
		if held != nil {
			b.arrived.Add(1)
			defer b.arrived.Done()
			waiting <- name
			<-held // its client may be dead by now; the charge comes all the same
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && b.charges[name] == 0:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		fmt.Fprintf(w, "ch_%s", name)
	case r.Method == http.MethodDelete:
		b.cancelled[name] = true
	case b.cancelled[key]:
		w.WriteHeader(http.StatusGone)
	case key != "" && b.keys[key] != "":
		fmt.Fprint(w, b.keys[key])
	default:
		b.charges[name]++
		if key != "" {
			b.keys[key] = "ch_" + name
		}
		fmt.Fprintf(w, "ch_%s", name)
	}
}

func (b *bank) count(payment string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.charges[payment]
}

// way is how a payment is charged, and so what protects it from its late owner.
type way string

const (
	// byStep: the gateway honours the step's key.
	byStep way = "step"
	// byAttempt: the gateway can cancel what an attempt sent, or is yet to send.
	byAttempt way = "attempt"
	// byOwned: the gateway knows nothing; the owner looks whether it still is one.
	byOwned way = "owned"
	// bare: nothing protects it but the quiet time.
	bare way = "bare"
)

// pause is where an owner may be stopped: right before it sends.
type pause func()

func (w way) operation(name string) umavez.Operation {
	op := umavez.Operation{
		Key: umavez.Key{Scope: umavez.Scope{Namespace: "test"}, Name: name}, Route: "pagar " + string(w),
		// What the reconciler has to know of it.
		Request: []byte(name),
	}
	if w == byStep {
		op.Policy = umavez.Stepped
	}
	return op
}

func (w way) pay(ctx context.Context, e *umavez.Engine, url, name string, before pause) (umavez.Result[string], error) {
	send := func(ctx context.Context, key string) (string, error) { return charge(ctx, url+"/"+name, key) }
	return umavez.Do(ctx, e, w.operation(name), func(ctx context.Context) (string, error) {
		switch w {
		case byStep:
			return umavez.Step(ctx, "cobrar", func(ctx context.Context, key string) (string, error) {
				before()
				return send(context.WithoutCancel(ctx), key)
			})
		case byAttempt:
			before()
			// Not even a cancelled context keeps this owner from sending.
			return send(context.WithoutCancel(ctx), umavez.FromContext(ctx).Lease().Attempt.String())
		case byOwned:
			before()
			if err := umavez.Owned(ctx); err != nil {
				return "", err
			}
		case bare:
			before()
		}
		return send(context.WithoutCancel(ctx), "")
	})
}

// reconciler asks the gateway about a payment.
func (w way) reconciler(b *bank) umavez.Reconciler {
	return umavez.Reconciler{Ask: func(ctx context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
		if w == byAttempt {
			if err := ask(ctx, http.MethodDelete, b.URL+"/"+l.Attempt.String()); err != nil {
				return umavez.StillUnknown(), err
			}
		}
		err := ask(ctx, http.MethodGet, b.URL+"/"+string(l.Request))
		switch {
		case err == nil:
			return umavez.HappenedWith("ch_" + string(l.Request))
		case !errors.Is(err, errNotFound):
			return umavez.StillUnknown(), err
		case w == byAttempt:
			return umavez.CannotHappen().Proven("the gateway has cancelled it"), nil
		}
		return umavez.CannotHappen(), nil
	}}
}

var errNotFound = errors.New("the gateway knows nothing of it")

func ask(ctx context.Context, method, target string) error {
	req, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return errNotFound
	}
	return fmt.Errorf("the gateway answers %s", res.Status)
}

// late are the payments of a child that waits to be stopped.
type late struct {
	gate chan struct{}
	paid sync.WaitGroup
}

// lateOwner is what the child does with the order "owe": n payments, each of
// which waits right before it sends. The order "go on" lets them.
func lateOwner(ctx context.Context, s *Store, o order, out *reporter) *late {
	e, err := umavez.New(s, umavez.Options{Lease: time.Second, ClaimTimeout: unhurried, SaveTimeout: unhurried})
	if err != nil {
		panic(err)
	}
	l := &late{gate: make(chan struct{})}
	var there sync.WaitGroup
	there.Add(o.N)
	for n := range o.N {
		name := fmt.Sprintf("%s-%d", o.Key, n)
		l.paid.Go(func() {
			res, err := way(o.Course).pay(ctx, e, o.URL, name, func() {
				there.Done()
				<-l.gate
			})
			r := report{Completed: name, Answer: []byte(res.Value)}
			if err != nil {
				r.Err = err.Error()
			}
			out.send(r)
		})
	}
	if o.Line != "send" { // else they go on as they come
		there.Wait()
		out.send(report{Claimed: "all"})
	} else {
		close(l.gate)
	}
	return l
}

// nextProcess is an engine of another process that sees the file after so long.
func nextProcess(t *testing.T, path string, after time.Duration, w way, b *bank) *umavez.Engine {
	t.Helper()
	s := open(t, path, Options{Now: func() time.Time { return time.Now().Add(after) }})
	e, err := umavez.New(s, umavez.Options{ClaimTimeout: unhurried, SaveTimeout: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	if w != byStep {
		r := w.reconciler(b)
		if err := e.Recover(umavez.Recovery{Namespace: "test", Route: "pagar " + string(w), Reconciler: &r}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

const lateRounds, latePayments = 4, 50

// each does something for every payment of a round, a few beside each other: an
// engine asks its reconcilers about a few records at once.
func each(round int, do func(name string)) {
	const workers = 4
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := w; n < latePayments; n += workers {
				do(fmt.Sprintf("%d-%d", round, n))
			}
		})
	}
	wg.Wait()
}

// pays makes the next attempt of every payment, and wants it charged once.
func pays(t *testing.T, e *umavez.Engine, w way, b *bank, round int) {
	t.Helper()
	each(round, func(name string) {
		res, err := w.pay(t.Context(), e, b.URL, name, func() {})
		if err != nil || res.Value != "ch_"+name || b.count(name) != 1 {
			t.Errorf("the next attempt of %s: %q, %v, %d charges", name, res.Value, err, b.count(name))
		}
	})
}

// TestStoppedOwnerGoesOnAfterTheVerdict: owners are stopped right before they
// send. The lost payments are reconciled or taken over, and charged by others;
// then the owners go on. No payment is charged twice.
func TestStoppedOwnerGoesOnAfterTheVerdict(t *testing.T) {
	for _, w := range []way{byStep, byAttempt, byOwned} {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			b, path := newBank(t), file(t)
			for round := range lateRounds {
				stopRound(t, w, b, path, round)
			}
		})
	}
}

func stopRound(t *testing.T, w way, b *bank, path string, round int) {
	owner := start(t, path)
	owner.ask(order{Do: "owe", Course: string(w), Key: fmt.Sprint(round), N: latePayments, URL: b.URL})
	stop(t, owner)
	s := open(t, path, Options{})
	each(round, func(name string) {
		for get(t, s, name).State != umavez.Lost { // by the clock that the owner has, too
			if t.Context().Err() != nil {
				return
			}
		}
	})
	pays(t, nextProcess(t, path, time.Hour, w, b), w, b, round)

	if err := owner.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	owner.tell(order{Do: "go on"})
	for range latePayments {
		if r := owner.read(); r.Err == "" && string(r.Answer) != "ch_"+r.Completed {
			t.Errorf("the late owner: %+v", r)
		}
	}
	owner.end()
	each(round, func(name string) {
		if n := b.count(name); n != 1 {
			t.Errorf("payment %s has %d charges after its owner went on", name, n)
		}
	})
}

// stop stops a process, and returns when it has stopped.
func stop(t *testing.T, p *process) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process did not stop: %v, %v", status, err)
	}
}

// TestChargeThatArrivesAfterTheKill: a process is killed while its charges are on
// the wire. Asked before they arrive, the gateway knows nothing, and that proves
// nothing; asked after, it tells. Where it can cancel, the next attempt need not
// wait. No payment is charged twice.
func TestChargeThatArrivesAfterTheKill(t *testing.T) {
	for _, w := range []way{bare, byAttempt} {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			b, path := newBank(t), file(t)
			for round := range lateRounds {
				arriveRound(t, w, b, path, round)
			}
		})
	}
}

func arriveRound(t *testing.T, w way, b *bank, path string, round int) {
	held := make(chan struct{})
	b.hold(held)
	owner := start(t, path)
	owner.tell(order{Do: "owe", Line: "send", Course: string(w), Key: fmt.Sprint(round), N: latePayments, URL: b.URL})
	for range latePayments {
		<-b.waiting
	}
	owner.kill()
	b.hold(nil) // what comes from now on is quick

	soon := nextProcess(t, path, time.Minute, w, b)
	if w == byAttempt {
		pays(t, soon, w, b, round)
	} else {
		each(round, func(name string) {
			_, err := w.pay(t.Context(), soon, b.URL, name, func() {})
			if _, unknown := errors.AsType[*umavez.OutcomeUnknownError](err); !unknown {
				t.Errorf("asked too early, %s came to %v", name, err)
			}
		})
	}
	close(held)
	b.arrived.Wait()
	later := nextProcess(t, path, 2*time.Hour, w, b)
	pays(t, later, w, b, round)
	each(round, func(name string) {
		rec, trail, err := later.Inspect(t.Context(), w.operation(name).Key.ID())
		if err != nil || rec.State != umavez.Done || len(trail) != 1 {
			t.Errorf("%s: %v, trail %+v, %v", name, rec.State, trail, err)
		}
	})
}

// hold keeps charges on the wire from now on until held is closed.
func (b *bank) hold(held chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = held
	if held != nil {
		b.waiting = make(chan string, latePayments)
	}
}

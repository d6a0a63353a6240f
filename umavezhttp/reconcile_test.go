package umavezhttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// oracle is a reconciler that says what a test has it say.
type oracle struct {
	asked atomic.Int64
	say   func(n int64, l umavez.LostRecord) (umavez.Verdict, error)
}

func (o *oracle) Ask(_ context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
	return o.say(o.asked.Add(1), l)
}

func stillUnknown(int64, umavez.LostRecord) (umavez.Verdict, error) {
	return umavez.StillUnknown(), nil
}

// lostThen is an operation whose first run is lost in the middle.
func lostThen(runs *atomic.Int64, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if runs.Add(1) == 1 {
			panic("after the charge")
		}
		then(w, r)
	}
}

// reconciled protects an opaque operation on the route "pagar", with a reconciler.
func (s setup) reconciled(t *testing.T, h http.HandlerFunc, r umavez.Reconciler) http.Handler {
	t.Helper()
	s.route.Name = "pagar"
	once := s.once(t)
	got, err := once.Reconcile(once.Opaque(h), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// mustWait checks that an answer says when to come again, in seconds.
func (r reply) mustWait(t *testing.T, seconds string) {
	t.Helper()
	if got := strings.Join(r.header["Retry-After"], " "); got != seconds {
		t.Fatalf("Retry-After %q, want %q: %v", got, seconds, r)
	}
}

// TestR4_WithAReconciler: the next attempt asks it; until it knows, the refusal
// says when it is asked next, and once it knows, its answer is replayed.
func TestR4_WithAReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		known, err := umavezhttp.Happened(umavezhttp.Answer{
			Status: 201, Header: http.Header{"Location": {"/pagamentos/42"}}, Body: []byte("found"),
		})
		if err != nil {
			t.Fatal(err)
		}
		o := &oracle{say: func(n int64, _ umavez.LostRecord) (umavez.Verdict, error) {
			if n == 1 {
				return umavez.StillUnknown(), nil
			}
			return known, nil
		}}
		h := setup{}.reconciled(t, lostThen(&runs, pay), umavez.Reconciler{Ask: o.Ask})
		mustPanic(t, func() { post(h, "k") })

		got := post(h, "k")
		got.mustRefuse(t, 409, "outcome-unknown")
		got.mustWait(t, "10")
		if got.header.Get("Stripe-Should-Retry") != "true" {
			t.Errorf("coming again may help: %v", got)
		}
		time.Sleep(10 * time.Second)
		got = post(h, "k")
		got.mustRefuse(t, 409, "outcome-unknown")
		got.mustWait(t, "30")
		time.Sleep(29500 * time.Millisecond)
		post(h, "k").mustWait(t, "1") // rounded up, never 0
		if o.asked.Load() != 1 {
			t.Fatalf("asked %d times", o.asked.Load())
		}
		time.Sleep(time.Second)
		for range 2 {
			got = post(h, "k")
			if got.status != 201 || got.body != "found" || !got.replayed() || got.header.Get("Location") != "/pagamentos/42" {
				t.Fatalf("got %v", got)
			}
		}
		if o.asked.Load() != 2 || runs.Load() != 1 {
			t.Errorf("asked %d times, ran %d times", o.asked.Load(), runs.Load())
		}
	})
}

// TestR4_CannotHappen: what cannot happen any more runs again.
func TestR4_CannotHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		o := &oracle{say: func(int64, umavez.LostRecord) (umavez.Verdict, error) {
			return umavez.CannotHappen().Proven("the gateway has cancelled the key"), nil
		}}
		h := setup{}.reconciled(t, lostThen(&runs, pay), umavez.Reconciler{Ask: o.Ask})
		mustPanic(t, func() { post(h, "k") })
		time.Sleep(11 * time.Second)
		if got := post(h, "k"); got.status != 201 || got.replayed() || runs.Load() != 2 {
			t.Errorf("got %v; ran %d times", got, runs.Load())
		}
	})
}

// TestR4_Parked: once nobody looks into it any more, nobody is sent away to come
// again.
func TestR4_Parked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		o := &oracle{say: stillUnknown}
		h := setup{}.reconciled(t, lostThen(&runs, pay), umavez.Reconciler{Ask: o.Ask, Park: time.Hour})
		mustPanic(t, func() { post(h, "k") })
		time.Sleep(time.Hour)
		for range 2 {
			got := post(h, "k")
			got.mustRefuse(t, 409, "outcome-unknown")
			got.mustWait(t, "")
		}
		if o.asked.Load() != 0 {
			t.Errorf("asked %d times", o.asked.Load())
		}
	})
}

// TestR4_LastWord: the last answer of an attempt is given again, with the time
// when more may be known.
func TestR4_LastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{say: stillUnknown}
		h := setup{}.reconciled(t, answers(503, "upstream is away"), umavez.Reconciler{Ask: o.Ask})
		post(h, "k")
		got := post(h, "k")
		if got.status != 503 || got.body != "upstream is away" || got.header.Get("Idempotency-Status") != "unknown" {
			t.Fatalf("got %v", got)
		}
		got.mustWait(t, "10")
	})
}

// TestR4_MalformedVerdict: what is no answer does not become the record's, and an
// error beats the verdict.
func TestR4_MalformedVerdict(t *testing.T) {
	good, err := umavezhttp.Happened(umavezhttp.Answer{Status: 201})
	if err != nil {
		t.Fatal(err)
	}
	live, err := (&umavezhttp.Answer{Status: 201, Kept: umavezhttp.NotKeptYet}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, say := range map[string]func(int64, umavez.LostRecord) (umavez.Verdict, error){
		"not an answer": func(int64, umavez.LostRecord) (umavez.Verdict, error) {
			return umavez.Happened([]byte(`{"id":"42"}`)), nil
		},
		"not ended":  func(int64, umavez.LostRecord) (umavez.Verdict, error) { return umavez.Happened(live), nil },
		"empty":      func(int64, umavez.LostRecord) (umavez.Verdict, error) { return umavez.Happened([]byte{}), nil },
		"with error": func(int64, umavez.LostRecord) (umavez.Verdict, error) { return good, errors.New("half of it") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int64
				o := &oracle{say: say}
				h := setup{}.reconciled(t, lostThen(&runs, pay), umavez.Reconciler{Ask: o.Ask})
				mustPanic(t, func() { post(h, "k") })
				time.Sleep(11 * time.Second)
				post(h, "k").mustRefuse(t, 409, "outcome-unknown")
				if o.asked.Load() != 1 || runs.Load() != 1 {
					t.Errorf("asked %d times, ran %d times", o.asked.Load(), runs.Load())
				}
			})
		})
	}
	if _, err := umavezhttp.Happened(umavezhttp.Answer{Status: 201, Kept: umavezhttp.NotKeptYet}); err == nil {
		t.Error("Happened took an answer that has not ended")
	}
	if _, err := umavezhttp.Happened(umavezhttp.Answer{}); err == nil {
		t.Error("Happened took an answer without a status")
	}
}

// TestR4_NoBody: a route that keeps no bodies keeps none of a reconciler's either.
func TestR4_NoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		store := memstore.New(memstore.Options{})
		o := &oracle{say: func(int64, umavez.LostRecord) (umavez.Verdict, error) {
			return umavezhttp.Happened(umavezhttp.Answer{
				Status: 201, Header: http.Header{"Location": {"/pagamentos/42"}}, Body: []byte("secret"),
			})
		}}
		s := setup{store: store, route: umavezhttp.Route{NoBody: true}}
		h := s.reconciled(t, lostThen(&runs, pay), umavez.Reconciler{Ask: o.Ask})
		mustPanic(t, func() { post(h, "k") })
		time.Sleep(11 * time.Second)
		got := post(h, "k")
		got.mustRefuse(t, 409, "replay-unavailable")
		if original := got.problem().Original; original == nil || original.Status != 201 || original.Location != "/pagamentos/42" {
			t.Errorf("got %v", got)
		}
	})
}

// TestReconcileRefuses: what could not be looked after is refused at wiring.
func TestReconcileRefuses(t *testing.T) {
	named := umavezhttp.Route{Name: "pagar"}
	once := setup{route: named}.once(t)
	h := once.Opaque(http.HandlerFunc(pay))
	ask := umavez.Reconciler{Ask: (&oracle{say: stillUnknown}).Ask}
	nameless, err := once.With(umavezhttp.Route{})
	if err != nil {
		t.Fatal(err)
	}
	for want, refused := range map[string]func() (http.Handler, error){
		"of the same Once":     func() (http.Handler, error) { return once.Reconcile(setup{route: named}.opaque(t, pay), ask) },
		"before anything":      func() (http.Handler, error) { return once.Reconcile(http.HandlerFunc(pay), ask) },
		"needs a Route.Name":   func() (http.Handler, error) { return once.Reconcile(nameless.Opaque(http.HandlerFunc(pay)), ask) },
		"Ask is missing":       func() (http.Handler, error) { return once.Reconcile(h, umavez.Reconciler{}) },
		"Reconciler.Every is ": func() (http.Handler, error) { return once.Reconcile(h, umavez.Reconciler{Ask: ask.Ask, Every: -1}) },
	} {
		if got, err := refused(); err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want an error that says %q", got, err, want)
		}
	}
	// A handler of a Once that With made is one of the family.
	if _, err := nameless.Reconcile(h, ask); err != nil {
		t.Error(err)
	}
	if _, err := once.Reconcile(h, ask); err == nil {
		t.Error("two reconcilers for one route")
	}
}

// TestR4_NoTurnFree: while others are being asked about, a key whose turn has come
// says so: come again soon, not never.
func TestR4_NoTurnFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := make(chan struct{})
		o := &oracle{say: func(int64, umavez.LostRecord) (umavez.Verdict, error) {
			<-enough
			return umavez.StillUnknown(), nil
		}}
		s := setup{engine: umavez.Options{MaxRecovering: 1}}
		crash := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		h := s.reconciled(t, crash, umavez.Reconciler{Ask: o.Ask})
		for _, key := range []string{"one", "two"} {
			mustPanic(t, func() { post(h, key) })
		}
		time.Sleep(time.Minute)
		waiting := make(chan reply)
		go func() { waiting <- post(h, "one") }()
		synctest.Wait()
		got := post(h, "two")
		got.mustRefuse(t, 409, "outcome-unknown")
		got.mustWait(t, "1")
		close(enough)
		<-waiting
	})
}

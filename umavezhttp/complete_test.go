package umavezhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// completed is a setup whose route "pagar" keeps its requests, and whose engine
// completes what is lost.
func completed(store umavez.Store) setup {
	return setup{
		store: store, works: true,
		route: umavezhttp.Route{Name: "pagar", KeepRequest: true, PlainRequests: true},
	}
}

// elapse lets time go by in a bubble, and what is due then be done.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// gateway is a card gateway that honours the key of a charge, as steps need it.
type gateway struct {
	mu      sync.Mutex
	charges map[string]int // by key: how often it was sent
}

func (g *gateway) charge(key string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.charges == nil {
		g.charges = map[string]int{}
	}
	g.charges[key]++
	return "charge-" + key[:8]
}

// TestR13_HundredPayments: a hundred payments are lost, each somewhere in its
// middle, and none of their clients comes back. Two processes finish them, each
// once.
func TestR13_HundredPayments(t *testing.T) {
	const n = 100
	synctest.Test(t, func(t *testing.T) {
		var gw gateway
		var firsts, completions sync.Map
		crash := func(r *http.Request, where int) {
			key := r.Header.Get("Idempotency-Key")
			i, err := strconv.Atoi(key[1:])
			if err != nil {
				t.Error(err)
			}
			if _, again := firsts.Load(key); !again && i%3 == where {
				firsts.Store(key, true)
				panic(http.ErrAbortHandler)
			}
		}
		operation := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if umavez.Completing(r.Context()) {
				runs, _ := completions.LoadOrStore(r.Header.Get("Idempotency-Key"), new(atomic.Int64))
				runs.(*atomic.Int64).Add(1)
			}
			crash(r, 0)
			charge, err := umavez.Step(r.Context(), "cobrar", func(_ context.Context, key string) (string, error) {
				charge := gw.charge(key)
				crash(r, 1)
				return charge, nil
			}, umavez.KeyHonouredFor(24*time.Hour))
			if err != nil {
				t.Error(err)
			}
			crash(r, 2)
			answers(201, charge)(w, r)
		})
		store := memstore.New(memstore.Options{})
		h := completed(store).once(t).Stepped(operation)
		completed(store).once(t).Stepped(operation) // the other process
		for i := range n {
			mustPanic(t, func() { post(h, fmt.Sprint("k", i)) })
		}
		elapse(3 * time.Minute)
		if len(gw.charges) != n {
			t.Errorf("%d payments were charged", len(gw.charges))
		}
		for i := range n {
			key := fmt.Sprint("k", i)
			got := post(h, key)
			if got.status != 201 || !got.replayed() || !strings.HasPrefix(got.body, "charge-") {
				t.Errorf("%s: %v", key, got)
			}
			if runs, _ := completions.Load(key); runs == nil || runs.(*atomic.Int64).Load() != 1 {
				t.Errorf("%s: completed %v times", key, runs)
			}
		}
	})
}

// TestR13_NotBeforeNorAfter: the client's own retries come first, and what is old
// is left alone.
func TestR13_NotBeforeNorAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var runs atomic.Int64
		var at []time.Duration
		s := completed(nil)
		s.route.CompleteAfter, s.route.CompleteUntil = 2*time.Minute, 5*time.Minute
		s.route.CompleteTries = 100
		h := s.once(t).Rerunnable(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			runs.Add(1)
			at = append(at, time.Since(began))
			panic(http.ErrAbortHandler)
		}))
		mustPanic(t, func() { post(h, "k") })
		elapse(time.Hour)
		if len(at) < 2 || at[1] < 2*time.Minute || at[len(at)-1] >= 5*time.Minute {
			t.Errorf("ran at %v", at)
		}
	})
}

// TestR13_Parked: an operation that fails again and again is set aside, and shown
// as unknown.
func TestR13_Parked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		s := completed(nil)
		s.route.CompleteAfter, s.route.CompleteUntil = time.Second, time.Hour
		once := s.once(t)
		h := once.Rerunnable(counted(&runs, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		mustPanic(t, func() { post(h, "k") })
		time.Sleep(30 * time.Minute)
		if runs.Load() != 5 {
			t.Errorf("ran %d times", runs.Load())
		}
		got := post(h, "k")
		got.mustRefuse(t, 409, "outcome-unknown")
		got.mustWait(t, "")
		if status := statusOf(t, once, "k"); status.State != "unknown" || status.Reason != "parked" {
			t.Errorf("status: %+v", status)
		}
	})
}

// alone is a handler that is completed, what it does to its connection or its
// goroutine, and what comes of it.
type alone struct {
	second http.HandlerFunc
	runs   int64
	status int
	code   string
}

func handlersAlone(t *testing.T) map[string]alone {
	return map[string]alone{
		"flush": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, "one ")
			w.(http.Flusher).Flush()
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(w, "two"); err != nil {
				t.Error(err)
			}
		}, 2, 201, ""},
		"hijack": {func(w http.ResponseWriter, r *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("Hijack: %v", err)
			}
			w.WriteHeader(201)
		}, 2, 201, ""},
		"endless stream": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			began := time.Now()
			w.WriteHeader(200)
			<-r.Context().Done()
			if lasted := time.Since(began); lasted > time.Second {
				t.Errorf("it streamed to nobody for %v", lasted)
			}
		}, 2, 409, "replay-unavailable"},
		"large": {func(w http.ResponseWriter, r *http.Request) {
			for range 3 << 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					t.Error(err)
				}
			}
		}, 2, 409, "replay-unavailable"},
		"panic":  {func(http.ResponseWriter, *http.Request) { panic("again") }, 3, 409, "outcome-unknown"},
		"goexit": {func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, 3, 409, "outcome-unknown"},
		"5xx":    {answers(503, "away"), 3, 503, ""},
	}
}

// TestR13_WithoutAServer: what a handler does to its connection or its goroutine
// harms neither the answer nor the worker.
func TestR13_WithoutAServer(t *testing.T) {
	quiet(t)
	for name, c := range handlersAlone(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs, failed atomic.Int64
				s := completed(nil)
				s.route.CompleteTries = 3
				s.engine.Observe = func(o umavez.Observation) {
					if o.Moment == umavez.MomentRecoveryFailed && o.Err != nil {
						failed.Add(1)
					}
				}
				h := s.once(t).Rerunnable(lostThen(&runs, func(w http.ResponseWriter, r *http.Request) {
					if !umavez.Completing(r.Context()) {
						t.Error("not completing")
					}
					c.second(w, r)
				}))
				mustPanic(t, func() { post(h, "k") })
				elapse(9 * time.Minute)
				if runs.Load() != c.runs {
					t.Fatalf("ran %d times, want %d", runs.Load(), c.runs)
				}
				got := post(h, "k")
				if got.status != c.status || got.problem().Code != c.code || c.code == "" && !got.replayed() {
					t.Errorf("got %v", got)
				}
				if want := map[int64]int64{2: 0, 3: 2}[c.runs]; failed.Load() != want {
					t.Errorf("%d failures observed", failed.Load())
				}
			})
		})
	}
}

// quiet keeps the log of panics that a test makes out of its output.
func quiet(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}

// TestR13_RestoreFails: without what authentication knew nothing runs, and it is
// tried again.
func TestR13_RestoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, restores atomic.Int64
		s := completed(nil)
		s.route.Restore = func(r *http.Request, _ string) (context.Context, error) {
			if restores.Add(1) == 1 {
				return nil, errors.New("the directory is away")
			}
			return r.Context(), nil
		}
		h := s.once(t).Rerunnable(lostThen(&runs, pay))
		mustPanic(t, func() { post(h, "k") })
		time.Sleep(9 * time.Minute)
		if restores.Load() != 2 || runs.Load() != 2 {
			t.Errorf("restored %d times, ran %d times", restores.Load(), runs.Load())
		}
		if got := post(h, "k"); got.status != 201 || !got.replayed() {
			t.Errorf("got %v", got)
		}
	})
}

// TestR13_ClientsLeave: over sockets, with clients that hang up in the middle of
// an operation that is then lost. Another process finishes all of them.
func TestR13_ClientsLeave(t *testing.T) {
	const n = 20
	store := memstore.New(memstore.Options{})
	arrived := make(chan struct{}, n)
	hangUp := make(chan struct{})
	lost, finished := make(chan string, n), make(chan string, n)
	front := completed(store)
	front.works = false
	server := listen(t, front.once(t).Rerunnable(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-hangUp
		defer func() { lost <- r.Header.Get("Idempotency-Key") }()
		panic(http.ErrAbortHandler)
	})), false)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var clients sync.WaitGroup
	for i := range n {
		r := socketRequest(ctx, t, server.URL, fmt.Sprint("k", i))
		clients.Go(func() {
			if resp, err := server.Client().Do(r); err == nil {
				resp.Body.Close()
				t.Errorf("an answer: %d", resp.StatusCode)
			}
		})
	}
	for range n {
		<-arrived
	}
	leave()
	clients.Wait()
	close(hangUp)
	for range n {
		<-lost
	}
	back := completed(store)
	back.engine.RecoverEvery = time.Millisecond
	back.route.CompleteAfter = time.Millisecond
	h := back.once(t).Rerunnable(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != payment || !umavez.Completing(r.Context()) {
			t.Errorf("completes %q, %v", body, err)
		}
		pay(w, r)
		finished <- r.Header.Get("Idempotency-Key")
	}))
	done := map[string]bool{}
	for range n {
		done[<-finished] = true
	}
	if len(done) != n {
		t.Errorf("finished %v", done)
	}
	for key := range done {
		r := socketRequest(t.Context(), t, server.URL, key)
		r.RequestURI = "/pagamentos"
		if got := serve(h, r); got.status != 201 || !got.replayed() {
			t.Errorf("%s: %v", key, got)
		}
	}
	if len(finished) != 0 {
		t.Error("one was finished twice")
	}
}

// TestR13_ComparedOtherwise: a release that compares the route's requests in
// another way finishes what the one before it has begun: the request is the
// record's own, and is not compared.
func TestR13_ComparedOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		store := memstore.New(memstore.Options{})
		before := completed(store)
		before.works, before.route.Raw = false, true
		h := before.once(t).Rerunnable(lostThen(&runs, pay))
		mustPanic(t, func() { post(h, "k") })
		completed(store).once(t).Rerunnable(lostThen(&runs, pay))
		elapse(2 * time.Minute)
		if got := post(h, "k"); !got.replayed() || runs.Load() != 2 {
			t.Errorf("got %v; ran %d times", got, runs.Load())
		}
	})
}

package umavezhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// together sends n duplicates at once and returns their answers.
func together(h http.Handler, n int, key string, headers ...string) []reply {
	replies := make([]reply, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { replies[i] = post(h, key, headers...) })
	}
	group.Wait()
	return replies
}

// taking is a handler that takes a while.
func taking(d time.Duration, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(d) // the tests that use it run in a bubble
		then(w, r)
	}
}

// TestR2_Waiters: duplicates wait, wake when the completion is acknowledged,
// and get a replay that says so.
func TestR2_Waiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		h := setup{}.opaque(t, counted(&runs, taking(50*time.Millisecond, pay)))
		began := time.Now()
		replies := together(h, 100, "k")
		if took := time.Since(began); took > 60*time.Millisecond {
			t.Errorf("took %v", took)
		}
		firsts := 0
		for _, r := range replies {
			if !r.replayed() {
				firsts++
			}
			r.mustEqual(t, replies[0])
		}
		if firsts != 1 || runs.Load() != 1 {
			t.Errorf("%d answers without the marker; ran %d times", firsts, runs.Load())
		}
	})
}

// TestR2_AcknowledgedFirst: a waiter is not woken by an operation that returned,
// but by a store that has its answer.
func TestR2_AcknowledgedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acknowledged := make(chan struct{})
		store := &faultyStore{Store: memstore.New(memstore.Options{}), before: func(op string) error {
			if op == "complete" {
				<-acknowledged
			}
			return nil
		}}
		h := setup{store: store}.opaque(t, pay)
		var answered atomic.Int64
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				post(h, "k")
				answered.Add(1)
			})
		}
		synctest.Wait()
		if n := answered.Load(); n != 0 {
			t.Errorf("%d answers before the store acknowledged", n)
		}
		close(acknowledged)
		group.Wait()
	})
}

// TestR2_WaitOver: after the wait 409 with a Retry-After of at most two seconds.
func TestR2_WaitOver(t *testing.T) {
	for _, c := range []struct {
		name    string
		opt     umavezhttp.Options
		route   umavezhttp.Route
		prefer  string
		want    time.Duration
		applied string
	}{
		{"default", umavezhttp.Options{}, umavezhttp.Route{}, "", 5 * time.Second, ""},
		{"of the options", umavezhttp.Options{Wait: time.Second}, umavezhttp.Route{}, "", time.Second, ""},
		{"of the route", umavezhttp.Options{Wait: time.Second}, umavezhttp.Route{Wait: 3 * time.Second}, "", 3 * time.Second, ""},
		{"none, as the draft has it", umavezhttp.Options{Wait: -1}, umavezhttp.Route{}, "", 0, ""},
		{"none on this route", umavezhttp.Options{}, umavezhttp.Route{Wait: -1}, "", 0, ""},
		{"preferred", umavezhttp.Options{}, umavezhttp.Route{}, "wait=2", 2 * time.Second, "wait=2"},
		{"preferred none", umavezhttp.Options{}, umavezhttp.Route{}, "wait=0", 0, "wait=0"},
		{"preferred too long", umavezhttp.Options{WaitMax: 10 * time.Second}, umavezhttp.Route{}, "respond-async, wait=600", 10 * time.Second, "wait=10"},
		{"unreadable", umavezhttp.Options{}, umavezhttp.Route{}, "wait=-1", 5 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := setup{http: c.opt, route: c.route}.opaque(t, taking(time.Minute, pay))
				done := make(chan struct{})
				go func() {
					defer close(done)
					post(h, "k")
				}()
				synctest.Wait()
				began := time.Now()
				var headers []string
				if c.prefer != "" {
					headers = []string{"Prefer", c.prefer}
				}
				got := post(h, "k", headers...)
				got.mustRefuse(t, 409, "in-progress")
				if waited := time.Since(began); waited != c.want {
					t.Errorf("waited %v, want %v", waited, c.want)
				}
				if got.header.Get("Retry-After") != "2" || got.header.Get("Preference-Applied") != c.applied {
					t.Errorf("Retry-After %q, Preference-Applied %q", got.header.Get("Retry-After"), got.header.Get("Preference-Applied"))
				}
				<-done
			})
		})
	}
}

// TestR2_PreferenceAppliedToReplays: whoever states a preference is told.
func TestR2_PreferenceAppliedToReplays(t *testing.T) {
	h := setup{}.opaque(t, pay)
	for range 2 {
		if got := post(h, "k", "Prefer", "wait=7"); got.status != 201 || got.header.Get("Preference-Applied") != "wait=7" {
			t.Errorf("got %v", got)
		}
	}
}

// TestR2_CountedFromReceipt: what a slow body takes is part of the wait.
func TestR2_CountedFromReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := setup{}.opaque(t, taking(time.Minute, pay))
		done := make(chan struct{})
		go func() {
			defer close(done)
			post(h, "k")
		}()
		synctest.Wait()
		r := newRequest("k")
		r.Body = &slowBody{ReadCloser: r.Body, d: 3 * time.Second}
		began := time.Now()
		serve(h, r).mustRefuse(t, 409, "in-progress")
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("answered after %v, want 5s", waited)
		}
		<-done
	})
}

// slowBody is a body whose first bytes take a while.
type slowBody struct {
	io.ReadCloser
	d time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	time.Sleep(b.d)
	b.d = 0
	return b.ReadCloser.Read(p)
}

// TestR2_Released: of those who waited for an attempt that is released one
// claims; the others get the released answer, without the marker, and with what
// it says about coming again.
func TestR2_Released(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		h := setup{}.opaque(t, counted(&runs, taking(time.Second, answers(429, "later", "Retry-After", "9", "Set-Cookie", "a=b"))))
		replies := together(h, 5, "k")
		for _, r := range replies {
			if r.status != 429 || r.body != "later" || r.replayed() || r.header.Get("Retry-After") != "9" || r.header.Get("Idempotency-Key") != "k" {
				t.Errorf("got %v", r)
			}
		}
		// Five came at once: the first ran, one of the four others claimed when
		// it was released, and the three others got the first one's answer.
		if runs.Load() != 2 {
			t.Errorf("ran %d times, want 2", runs.Load())
		}
		cookies := 0
		for _, r := range replies {
			cookies += len(r.header["Set-Cookie"])
		}
		if cookies != 2 {
			t.Errorf("%d cookies for two runs", cookies)
		}
	})
}

// TestR2_CallerLeaves: a waiter that hangs up is let go at once, and a context
// that a handler outside has ended is no success.
func TestR2_CallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := setup{}.opaque(t, taking(time.Minute, pay))
		done := make(chan struct{})
		go func() {
			defer close(done)
			post(h, "k")
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		serve(h, newRequest("k").WithContext(ctx)).mustRefuse(t, 503, "store-unavailable")
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		<-done
	})
}

// TestR2_TenThousandWaiters: at most 128 wait for a key, and 10,000 in a
// process; the others are refused at once, and none costs memory for long.
func TestR2_TenThousandWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting, refused atomic.Int64
		eng := umavez.Options{Observe: func(o umavez.Observation) {
			switch o.Moment {
			case umavez.MomentWaiting:
				waiting.Add(1)
			case umavez.MomentInProgress:
				refused.Add(1)
			}
		}}
		const keys, perKey = 100, 150
		var runs atomic.Int64
		h := setup{engine: eng}.opaque(t, counted(&runs, taking(time.Second, pay)))
		var firsts, duplicates sync.WaitGroup
		for k := range keys {
			firsts.Go(func() { post(h, fmt.Sprint("k", k)) })
		}
		synctest.Wait()
		began := time.Now()
		for k := range keys {
			for range perKey {
				duplicates.Go(func() {
					got := post(h, fmt.Sprint("k", k))
					switch {
					case got.replayed():
					case got.problem().Code == "in-progress":
						if time.Since(began) != 0 {
							t.Errorf("refused after %v", time.Since(began))
						}
					default:
						t.Errorf("got %v", got)
					}
				})
			}
		}
		synctest.Wait()
		if waiting.Load() != 10_000 || refused.Load() != keys*perKey-10_000 {
			t.Errorf("%d wait and %d were refused", waiting.Load(), refused.Load())
		}
		duplicates.Wait()
		firsts.Wait()
		if runs.Load() != keys {
			t.Errorf("ran %d times for %d keys", runs.Load(), keys)
		}
	})
}

// TestR2_PerKey: the bound of one key.
func TestR2_PerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := setup{}.opaque(t, taking(time.Second, pay))
		inProgress := 0
		for _, r := range together(h, 200, "k") {
			if r.problem().Code == "in-progress" {
				inProgress++
			}
		}
		if inProgress != 200-1-128 {
			t.Errorf("%d of 200 were refused, want %d", inProgress, 200-1-128)
		}
	})
}

// TestHundredDuplicates: 100 duplicates over real sockets, a 50 ms operation:
// one execution, all answers equal.
func TestHundredDuplicates(t *testing.T) {
	var runs atomic.Int64
	patient := umavezhttp.Options{Wait: time.Minute} // a busy machine may take more than the usual five seconds
	h := setup{http: patient}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(50 * time.Millisecond)
		pay(w, r)
	}))
	server := httptest.NewServer(h)
	defer server.Close()
	replies := make([]reply, 100)
	var group sync.WaitGroup
	for i := range replies {
		group.Go(func() {
			resp, err := server.Client().Do(socketRequest(t.Context(), t, server.URL, "k"))
			if err != nil {
				t.Error(err)
				return
			}
			replies[i] = replyOf(resp)
		})
	}
	group.Wait()
	for _, r := range replies {
		r.mustEqual(t, replies[0])
	}
	if runs.Load() != 1 {
		t.Errorf("ran %d times", runs.Load())
	}
}

// TestThreeThousandKeys: 3,000 keys, four racers each: no key runs twice.
func TestThreeThousandKeys(t *testing.T) {
	const keys, racers = 3000, 4
	var runs [keys]atomic.Int64
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		var k int
		if _, err := fmt.Sscan(r.Header.Get("X-Number"), &k); err != nil {
			t.Error(err)
			return
		}
		runs[k].Add(1)
		runtime.Gosched()
		pay(w, r)
	})
	var group sync.WaitGroup
	for range racers {
		group.Go(func() {
			for k := range keys {
				if got := post(h, fmt.Sprint("k", k), "X-Number", fmt.Sprint(k)); got.status != 201 {
					t.Errorf("key %d: %v", k, got)
				}
			}
		})
	}
	group.Wait()
	for k := range runs {
		if n := runs[k].Load(); n != 1 {
			t.Errorf("key %d ran %d times", k, n)
		}
	}
}

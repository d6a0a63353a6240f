package umavezhttptest_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/umavez/umavez/umavezhttp"
	"github.com/umavez/umavez/umavezhttptest"
)

// failing runs a check with a T of its own, and returns what it failed with.
func failing(t *testing.T, check func(t umavezhttptest.T)) string {
	t.Helper()
	probe := &probe{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(probe)
	}()
	<-done
	for _, f := range probe.cleanups {
		f()
	}
	return probe.failure
}

type probe struct {
	failure  string
	cleanups []func()
}

func (*probe) Helper()            {}
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (p *probe) Fatalf(format string, args ...any) {
	p.failure = fmt.Sprintf(format, args...)
	runtime.Goexit() // as *testing.T does
}

// TestTheyPass: over the real middleware everything holds.
func TestTheyPass(t *testing.T) {
	for name, check := range map[string]func(t umavezhttptest.T, h http.Handler, op *umavezhttptest.Operation){
		"replay": func(t umavezhttptest.T, h http.Handler, _ *umavezhttptest.Operation) {
			umavezhttptest.Replay(t, h, request())
		},
		"race": func(t umavezhttptest.T, h http.Handler, _ *umavezhttptest.Operation) {
			umavezhttptest.Race(t, h, request(), 20)
		},
		"hang up": func(t umavezhttptest.T, h http.Handler, op *umavezhttptest.Operation) {
			umavezhttptest.HangUp(t, h, op, request())
		},
	} {
		op := umavezhttptest.Watch(http.HandlerFunc(pay))
		got := failing(t, func(t umavezhttptest.T) { check(t, umavezhttptest.Once(t).Opaque(op), op) })
		if got != "" || op.Runs() != 1 {
			t.Errorf("%s: %q; ran %d times", name, got, op.Runs())
		}
	}
}

// TestTheyFail: each check fails over a handler that breaks what it is about.
func TestTheyFail(t *testing.T) {
	var n atomic.Int64
	bare := http.HandlerFunc(pay)
	marked := func(h http.HandlerFunc) http.Handler { // what is not the first says that it is a replay
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) > 1 {
				w.Header().Set("Idempotent-Replayed", "true")
			}
			h(w, r)
		})
	}
	changing := func(what string) http.Handler {
		return marked(func(w http.ResponseWriter, r *http.Request) {
			switch now := int(n.Load()); what {
			case "status":
				w.WriteHeader(200 + now)
			case "body":
				fmt.Fprint(w, now)
			case "header":
				w.Header().Set("Location", fmt.Sprint("/", now))
			}
		})
	}
	op := umavezhttptest.Watch(bare)
	for _, c := range []struct {
		name  string
		check func(t umavezhttptest.T)
		want  string
	}{
		{"runs twice", func(t umavezhttptest.T) { umavezhttptest.Replay(t, bare, request()) }, "not a replay"},
		{"races", func(t umavezhttptest.T) { umavezhttptest.Race(t, bare, request(), 3) }, "not a replay"},
		{"other status", func(t umavezhttptest.T) { umavezhttptest.Replay(t, changing("status"), request()) }, "with status 202"},
		{"other body", func(t umavezhttptest.T) { umavezhttptest.Replay(t, changing("body"), request()) }, "replayed body"},
		{"other header", func(t umavezhttptest.T) { umavezhttptest.Replay(t, changing("header"), request()) }, "header Location"},
		{"used key", func(t umavezhttptest.T) {
			h, r := umavezhttptest.Once(t).Opaque(bare), request()
			r.Header.Set("Idempotency-Key", "k")
			umavezhttptest.Replay(t, h, r)
			umavezhttptest.Replay(t, h, r)
		}, "replay already"},
		{"used key in a race", func(t umavezhttptest.T) {
			h, r := umavezhttptest.Once(t).Opaque(bare), request()
			r.Header.Set("Idempotency-Key", "k")
			umavezhttptest.Replay(t, h, r)
			umavezhttptest.Race(t, h, r, 3)
		}, "all 3 answers are replays"},
		{"hangs up on the unprotected", func(t umavezhttptest.T) { umavezhttptest.HangUp(t, op, op, request()) }, "no replay"},
		{"operation elsewhere", func(t umavezhttptest.T) {
			umavezhttptest.CrashThenRetry(t, bare, umavezhttptest.Watch(bare), request(), umavezhttptest.PanicAfter)
		}, "did not run"},
		{"hangs up elsewhere", func(t umavezhttptest.T) {
			umavezhttptest.HangUp(t, bare, umavezhttptest.Watch(bare), request())
		}, "did not run"},
		{"nonsense in the options", func(t umavezhttptest.T) { umavezhttptest.OnceWith(t, umavezhttp.Options{}) }, "Namespace"},
	} {
		n.Store(0)
		if got := failing(t, c.check); !strings.Contains(got, c.want) {
			t.Errorf("%s: failed with %q, want … %s …", c.name, got, c.want)
		}
	}
}

// TestCrashes: every crash of an opaque operation leaves the outcome unknown, and
// every one of a rerunnable operation is followed by another run.
func TestCrashes(t *testing.T) {
	for _, how := range []umavezhttptest.Crash{
		umavezhttptest.PanicBefore, umavezhttptest.PanicAfter, umavezhttptest.AbortAfter,
		umavezhttptest.GoexitAfter, umavezhttptest.BreakOff,
	} {
		op := umavezhttptest.Watch(http.HandlerFunc(pay))
		retry := umavezhttptest.CrashThenRetry(t, umavezhttptest.Once(t).Opaque(op), op, request(), how)
		if retry.Status != 409 || !strings.Contains(string(retry.Body), "outcome-unknown") || op.Runs() != 1 {
			t.Errorf("crash %d, opaque: %d %q; ran %d times", how, retry.Status, retry.Body, op.Runs())
		}
		op = umavezhttptest.Watch(http.HandlerFunc(pay))
		retry = umavezhttptest.CrashThenRetry(t, umavezhttptest.Once(t).Rerunnable(op), op, request(), how)
		if retry.Status != 201 || op.Runs() != 2 {
			t.Errorf("crash %d, rerunnable: %d; ran %d times", how, retry.Status, op.Runs())
		}
	}
}

// TestRequestsCanBeUsedAgain: what a check read of a request is still there.
func TestRequestsCanBeUsedAgain(t *testing.T) {
	h, r := umavezhttptest.Once(t).Opaque(http.HandlerFunc(pay)), request()
	umavezhttptest.Replay(t, h, r)
	if body, err := io.ReadAll(r.Body); err != nil || string(body) != `{"valor":1990}` {
		t.Errorf("body %q, %v", body, err)
	}
	if r.Header.Get("Idempotency-Key") != "" {
		t.Error("the key of one check is left for the next")
	}
}

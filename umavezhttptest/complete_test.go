package umavezhttptest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/umavez/umavez/umavezhttp"
	"github.com/umavez/umavez/umavezhttptest"
)

// keeping returns a Once whose route keeps its requests.
func keeping(t umavezhttptest.T) *umavezhttp.Once {
	once, err := umavezhttptest.Once(t).With(umavezhttp.Route{Name: "pay", KeepRequest: true, PlainRequests: true})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return once
}

// TestLoseThenComplete: however it was lost, the operation is finished with the
// same request, and its client gets the answer.
func TestLoseThenComplete(t *testing.T) {
	for _, how := range []umavezhttptest.Crash{
		umavezhttptest.PanicBefore, umavezhttptest.PanicAfter, umavezhttptest.AbortAfter,
		umavezhttptest.GoexitAfter, umavezhttptest.BreakOff,
	} {
		var bodies []string
		op := umavezhttptest.Watch(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			pay(w, r)
		}))
		got := umavezhttptest.LoseThenComplete(t, keeping(t).Stepped(op), op, request(), how)
		if got.Status != 201 || op.Runs() != 2 || bodies[len(bodies)-1] != `{"valor":1990}` {
			t.Errorf("crash %d: %d; ran %d times, with %q", how, got.Status, op.Runs(), bodies)
		}
	}
}

// TestLoseThenCompleteFails: it fails over what could not be completed.
func TestLoseThenCompleteFails(t *testing.T) {
	pays := http.HandlerFunc(pay)
	for _, c := range []struct {
		name string
		h    func(t umavezhttptest.T, op *umavezhttptest.Operation) http.Handler
		want string
	}{
		{"unprotected", func(_ umavezhttptest.T, op *umavezhttptest.Operation) http.Handler { return op }, "is not what"},
		{"opaque", func(t umavezhttptest.T, op *umavezhttptest.Operation) http.Handler {
			return umavezhttptest.Once(t).Opaque(op)
		}, "no completer"},
		{"not kept", func(t umavezhttptest.T, op *umavezhttptest.Operation) http.Handler {
			return umavezhttptest.Once(t).Stepped(op)
		}, "no completer"},
		{"operation elsewhere", func(t umavezhttptest.T, _ *umavezhttptest.Operation) http.Handler {
			return keeping(t).Stepped(pays)
		}, "nothing to complete: the key is done"},
		{"needs its server", func(t umavezhttptest.T, op *umavezhttptest.Operation) http.Handler {
			return keeping(t).Stepped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				op.ServeHTTP(w, r)
				if op.Runs() > 1 {
					_, _, _ = w.(http.Hijacker).Hijack()
				}
			}))
		}, "panicked"},
	} {
		got := failing(t, func(t umavezhttptest.T) {
			op := umavezhttptest.Watch(pays)
			umavezhttptest.LoseThenComplete(t, c.h(t, op), op, request(), umavezhttptest.PanicAfter)
		})
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: failed with %q, want … %s …", c.name, got, c.want)
		}
	}
}

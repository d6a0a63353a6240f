package umavezhttptest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"

	"github.com/umavez/umavez/umavezhttp"
)

// CrashThenRetry sends a request whose operation crashes, and then the same
// request again. It returns the answer to the retry: after a crash of an opaque
// operation 409 with the code outcome-unknown, and after one of a rerunnable
// operation the second run's answer. op is the operation behind h, and its Runs
// tells how often it ran.
func CrashThenRetry(t T, h http.Handler, op *Operation, r *http.Request, how Crash) umavezhttp.Answer {
	t.Helper()
	tpl := newTemplate(t, r)
	before := op.Runs()
	tpl.crash(h, op, how)
	if op.Runs() != before+1 {
		t.Fatalf("umavezhttptest: the operation did not run: is it behind the handler, and the key new?")
	}
	return tpl.send(h)
}

// crash sends the request, and its operation crashes.
func (tpl *template) crash(h http.Handler, op *Operation, how Crash) {
	op.crashNext(how)
	done := make(chan struct{})
	// On a goroutine of its own: it may end by runtime.Goexit.
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // as a server does
		tpl.send(h)
	}()
	<-done
}

// HangUp sends a request whose client leaves as soon as the operation has begun,
// and then the same request again. The operation must run to its end all the
// same: the test fails unless the retry is answered by a replay, which HangUp
// returns.
func HangUp(t T, h http.Handler, op *Operation, r *http.Request) umavezhttp.Answer {
	t.Helper()
	tpl := newTemplate(t, r)
	ctx, leave := context.WithCancel(tpl.request.Context())
	defer leave()
	before := op.Runs()
	op.onStart(leave)
	h.ServeHTTP(deaf{httptest.NewRecorder()}, tpl.attempt(ctx))
	op.onStart(nil)
	if op.Runs() != before+1 {
		t.Fatalf("umavezhttptest: the operation did not run: is it behind the handler, and the key new?")
	}
	again := tpl.send(h)
	if !replayed(again) {
		t.Fatalf("umavezhttptest: after the client had left, the retry got %d %q, which is no replay",
			again.Status, again.Body)
	}
	return again
}

// LoseThenComplete sends a request whose operation crashes and whose client does
// not come back, and has the completer finish it, without waiting for its time.
// The test fails unless the operation has run exactly once more by then, and the
// same request gets its answer as a replay, which LoseThenComplete returns.
//
// What the second run lacks is what it will lack in production: handlers around h
// do not run, so what they put into the context is there only by Route.Restore.
//
// h is what Stepped or Rerunnable of a Once returned whose Route has KeepRequest
// (and PlainRequests, as there is no key ring in a test), with nothing around it.
func LoseThenComplete(t T, h http.Handler, op *Operation, r *http.Request, how Crash) umavezhttp.Answer {
	t.Helper()
	keeper, ok := h.(interface{ CompleteLost(r *http.Request) error })
	if !ok {
		t.Fatalf("umavezhttptest: the handler is not what Stepped or Rerunnable has returned")
	}
	tpl := newTemplate(t, r)
	before := op.Runs()
	tpl.crash(h, op, how)
	if err := keeper.CompleteLost(tpl.attempt(tpl.request.Context())); err != nil {
		t.Fatalf("umavezhttptest: the lost operation was not completed: %v", err)
	}
	if runs := op.Runs() - before; runs != 2 {
		t.Fatalf("umavezhttptest: the operation ran %d times, and should have been lost once and completed once", runs)
	}
	again := tpl.send(h)
	if !replayed(again) {
		t.Fatalf("umavezhttptest: after the operation was completed, the client got %d %q, which is no replay",
			again.Status, again.Body)
	}
	return again
}

// deaf is the connection of a client that has left.
type deaf struct{ *httptest.ResponseRecorder }

var errGone = errors.New("umavezhttptest: the client has left")

// Write fails, as it does on a closed connection.
func (deaf) Write([]byte) (int, error) { return 0, errGone }

// WriteString fails, too.
func (deaf) WriteString(string) (int, error) { return 0, errGone }

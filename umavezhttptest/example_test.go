package umavezhttptest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/umavez/umavez/umavezhttp"
	"github.com/umavez/umavez/umavezhttptest"
)

// t stands for the *testing.T of a test.
var t panicking

type panicking struct{}

func (panicking) Helper()                           {}
func (panicking) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicking) Cleanup(func())                    {}

// pay is the operation of the examples.
func pay(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, "paid")
}

func request() *http.Request {
	return httptest.NewRequest(http.MethodPost, "/pagamentos", strings.NewReader(`{"valor":1990}`))
}

func ExampleReplay() {
	op := umavezhttptest.Watch(http.HandlerFunc(pay))
	h := umavezhttptest.Once(t).Opaque(op)

	first := umavezhttptest.Replay(t, h, request())

	fmt.Println(first.Status, op.Runs())
	// Output: 201 1
}

func ExampleRace() {
	op := umavezhttptest.Watch(http.HandlerFunc(pay))
	h := umavezhttptest.Once(t).Opaque(op)

	first := umavezhttptest.Race(t, h, request(), 50)

	fmt.Println(first.Status, op.Runs())
	// Output: 201 1
}

func ExampleCrashThenRetry() {
	op := umavezhttptest.Watch(http.HandlerFunc(pay))
	h := umavezhttptest.Once(t).Opaque(op)

	retry := umavezhttptest.CrashThenRetry(t, h, op, request(), umavezhttptest.PanicAfter)

	fmt.Println(retry.Status, strings.Contains(string(retry.Body), `"code":"outcome-unknown"`), op.Runs())
	// Output: 409 true 1
}

func ExampleLoseThenComplete() {
	op := umavezhttptest.Watch(http.HandlerFunc(pay))
	once, err := umavezhttptest.Once(t).With(umavezhttp.Route{Name: "pay", KeepRequest: true, PlainRequests: true})
	if err != nil {
		t.Fatalf("%v", err)
	}

	answer := umavezhttptest.LoseThenComplete(t, once.Rerunnable(op), op, request(), umavezhttptest.PanicAfter)

	fmt.Println(answer.Status, op.Runs())
	// Output: 201 2
}

func ExampleHangUp() {
	op := umavezhttptest.Watch(http.HandlerFunc(pay))
	h := umavezhttptest.Once(t).Opaque(op)

	retry := umavezhttptest.HangUp(t, h, op, request())

	fmt.Println(retry.Status, op.Runs())
	// Output: 201 1
}

// Package umavezhttptest is for the tests of services that protect handlers with
// umavezhttp. It sends a request again, many times at once, after a crash in the
// middle and after the client has left, and checks what must hold then: one
// execution, and one answer for all.
//
// A test watches the operation from the inside and asks from the outside:
//
//	op := umavezhttptest.Watch(http.HandlerFunc(pay))
//	h := umavezhttptest.Once(t).Opaque(op)
//	first := umavezhttptest.Replay(t, h, request)
//	if op.Runs() != 1 { … }
//
// Everything runs in this process, over the store in memory and without sockets.
// Start reading at [Watch] and [Replay].
package umavezhttptest

// T is what the functions here need of a *testing.T, *testing.B or *testing.F.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

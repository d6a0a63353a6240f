package umavezhttptest

import (
	"net/http"
	"runtime"
	"sync/atomic"
)

// Operation is a handler that counts how often it runs, and crashes when a test
// says so. Put it where the handler itself would stand, inside the protection.
type Operation struct {
	next  http.Handler
	runs  atomic.Int64
	crash atomic.Uint32
	start atomic.Pointer[func()]
}

// Watch wraps the handler that must run once.
func Watch(next http.Handler) *Operation { return &Operation{next: next} }

// Runs is how often the operation has begun.
func (o *Operation) Runs() int { return int(o.runs.Load()) }

// Crash is a way in which an attempt is lost.
type Crash uint8

// The crashes.
const (
	// PanicBefore panics before the handler is called: nothing has happened yet,
	// and nobody outside can know that.
	PanicBefore Crash = iota + 1
	// PanicAfter panics when the handler has returned: everything has happened.
	PanicAfter
	// AbortAfter panics with http.ErrAbortHandler at the same point, as a proxy
	// does whose upstream breaks off.
	AbortAfter
	// GoexitAfter ends the goroutine at the same point, as t.FailNow does.
	GoexitAfter
	// BreakOff flushes what the handler has written, and panics: a part of the
	// answer is out.
	BreakOff
)

// ServeHTTP runs the handler, unless this run is to crash before.
func (o *Operation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.runs.Add(1)
	if start := o.start.Load(); start != nil {
		(*start)()
	}
	how := Crash(o.crash.Swap(0))
	if how == PanicBefore {
		panic("umavezhttptest: a crash before the operation")
	}
	o.next.ServeHTTP(w, r)
	switch how {
	case PanicAfter:
		panic("umavezhttptest: a crash after the operation")
	case AbortAfter:
		panic(http.ErrAbortHandler)
	case GoexitAfter:
		runtime.Goexit()
	case BreakOff:
		_ = http.NewResponseController(w).Flush() // a writer that cannot is a crash like PanicAfter
		panic("umavezhttptest: a crash in the middle of the answer")
	}
}

// crashNext makes the next run crash.
func (o *Operation) crashNext(how Crash) { o.crash.Store(uint32(how)) }

// onStart has f called at the beginning of every run; nil: no more.
func (o *Operation) onStart(f func()) {
	if f == nil {
		o.start.Store(nil)
		return
	}
	o.start.Store(&f)
}

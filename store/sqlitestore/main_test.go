//go:build unix

package sqlitestore

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain lets the test binary be its own second process, and looks for
// goroutines that the tests have left behind.
func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		child()
		return
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if code == 0 && leaked(before) {
		fmt.Fprintln(os.Stderr, "goroutines are left after the tests:")
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		code = 1
	}
	os.Exit(code)
}

// leaked gives goroutines that are about to end a little time to do so.
func leaked(before int) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 400 {
		if runtime.NumGoroutine() <= before {
			return false
		}
		<-tick.C
	}
	return true
}

package umavezecho_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails when a test has left a goroutine of ours behind.
func TestMain(m *testing.M) {
	status := m.Run()
	if left := goroutinesLeft(30 * time.Second); status == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		status = 1
	}
	os.Exit(status)
}

// goroutinesLeft returns the stacks of goroutines in our code, once some are
// still there after the patience.
func goroutinesLeft(patience time.Duration) string {
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		var left []string
		for i, stack := range strings.Split(string(buf), "\n\n") {
			if i > 0 && strings.Contains(stack, "umavez/umavez") { // the first is this one
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		select {
		case <-tick.C:
		case <-deadline:
			return strings.Join(left, "\n\n")
		}
	}
}

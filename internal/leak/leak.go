// Package leak fails a package's tests when they leave goroutines of this project
// behind. It imports nothing of this module.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// patience is how long a goroutine may take to end after the last test: a busy
// machine is slow, and only a failure waits to the end.
const patience = 30 * time.Second

// Main is a package's TestMain. m is its *testing.M.
func Main(m interface{ Run() int }) {
	status := m.Run()
	if left := Left(patience); status == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		status = 1
	}
	os.Exit(status)
}

// Left returns the stacks of goroutines in this project's code, once some are
// still there after the patience.
func Left(patience time.Duration) string {
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

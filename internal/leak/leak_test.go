package leak_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez/internal/leak"
)

func stays(until <-chan struct{}) { <-until }

// TestLeft: a goroutine that stays is told by its stack; one that ends within the
// patience is not.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The test's own goroutine and its runner are in this project's code, too.
		before := strings.Count(leak.Left(time.Millisecond), "leak_test.stays")
		end := make(chan struct{})
		go stays(end)
		if got := strings.Count(leak.Left(time.Second), "leak_test.stays("); got != before+1 {
			t.Errorf("%d goroutines of that kind are told, want one more than %d", got, before)
		}
		close(end)
		synctest.Wait()
		if strings.Contains(leak.Left(time.Millisecond), "leak_test.stays(") {
			t.Error("a goroutine that has ended is told")
		}
	})
}

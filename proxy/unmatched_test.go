package proxy

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestK1_UnmatchedIsLogged: at once, then once a minute, with counts and paths
// and without bound on nothing.
func TestK1_UnmatchedIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &logBook{}
		u := &unmatched{log: slog.New(slog.NewTextHandler(book, nil))}
		defer u.close()
		lines := func() int { return strings.Count(book.String(), "\n") }
		want := func(n int, text string) {
			t.Helper()
			if lines() != n || !strings.Contains(book.String(), text) {
				t.Errorf("the log is, not %d lines with %q:\n%s", n, text, book)
			}
		}
		u.note("POST", "/pagamento")
		want(1, `request="POST /pagamento" count=1`)
		for range 5 {
			u.note("POST", "/pagamento")
		}
		u.note("PUT", "/"+strings.Repeat("x", 1000))
		time.Sleep(59 * time.Second)
		want(1, "")
		time.Sleep(2 * time.Second)
		want(3, `request="POST /pagamento" count=5`)
		want(3, "xxx…")
		if strings.Contains(book.String(), strings.Repeat("x", 129)) {
			t.Error("a long path is logged whole")
		}
		time.Sleep(time.Hour)
		want(3, "")

		for i := range 1000 {
			u.note("POST", fmt.Sprintf("/scan/%d", i))
		}
		u.mu.Lock()
		if len(u.paths) > unmatchedPaths {
			t.Errorf("%d paths are remembered", len(u.paths))
		}
		u.mu.Unlock()
		time.Sleep(2 * time.Minute)
		want(3+1+unmatchedPaths+1, fmt.Sprintf(`request="other paths" count=%d`, 1000-1-unmatchedPaths))
		if got := u.total.Load(); got != 1007 {
			t.Errorf("the count is %d, want 1007", got)
		}
	})
}

// TestK1_UnmatchedIsCounted: requests with a key that no route takes, of methods
// that could be enrolled. The key is not logged.
func TestK1_UnmatchedIsCounted(t *testing.T) {
	var up seen
	u := newUpstream(t, "http", up.echo)
	s := newSidecar(t, u.url)
	s.send("POST", "/pagamento", "x", keyName, "secret")
	s.send("PUT", "/pay", "x", keyName, "secret")
	s.send("POST", "/pagamento", "x")
	s.send("GET", "/pagamento", "", keyName, "secret")
	s.pay("secret", "x")
	if n := s.proxy.Unmatched(); n != 2 {
		t.Errorf("%d are counted, want 2", n)
	}
	if log := s.log.String(); !strings.Contains(log, "POST /pagamento") || strings.Contains(log, "secret") {
		t.Errorf("the log is %s", log)
	}
}

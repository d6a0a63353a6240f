package cli

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite"
)

// lockFile keeps every other process from writing to the file until unlock.
func lockFile(t *testing.T, store string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(store, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(statement string) {
		t.Helper()
		if _, err := c.ExecContext(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("PRAGMA busy_timeout = 10000")
	exec("BEGIN IMMEDIATE")
	return func() { exec("ROLLBACK") }
}

// unsaved brings a process to where it has answered its client and could not
// save the answer.
func unsaved(t *testing.T, b *bank, store string, more ...string) (signalled interface {
	ExitCode() int
	Stderr() string
}, admin string, unlock func(),
) {
	t.Helper()
	p := start(t, protect(b, store, more...)...)
	done := background(p.URL+"/pagamentos", "k", `1`)
	<-b.entered
	unlock = lockFile(t, store)
	b.leave <- struct{}{}
	if a := <-done; a.status != http.StatusCreated || a.header.Get("Idempotency-Status") != "unsaved" {
		t.Fatalf("with the store locked: %+v, want the answer, unsaved", a)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the listener is closed", func() bool { return refusesConnections(p) })
	return p, p.Admin, unlock
}

// TestDrainSavesWhatIsUnsaved: the client has its answer, and the store gets it
// when it can, before the process ends.
func TestDrainSavesWhatIsUnsaved(t *testing.T) {
	t.Parallel()
	b, store := newBank(t, true), sqliteFile(t)
	p, admin, unlock := unsaved(t, b, store)
	if got := statusOf(t, admin+"/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("readyz is %d while an answer waits to be saved", got)
	}
	unlock()
	if code := p.ExitCode(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	next := start(t, protect(b, store)...)
	if a := mustPost(t, next.URL+"/pagamentos", "k", `1`); a.status != http.StatusCreated || !a.replayed() {
		t.Errorf("the next process answered %+v", a)
	}
}

// TestDrainSaysWhatItCouldNotSave: the key is unknown to the next process, and
// whoever looks for the reason finds it in the log.
func TestDrainSaysWhatItCouldNotSave(t *testing.T) {
	t.Parallel()
	b, store := newBank(t, true), sqliteFile(t)
	p, _, unlock := unsaved(t, b, store, "--drain", "100ms", "--lease", "1s")
	if code := p.ExitCode(); code != 1 {
		t.Errorf("exit status %d, want 1", code)
	}
	if n := strings.Count(p.Stderr(), "left unsaved"); n != 1 {
		t.Errorf("the log names %d unsaved answers, want 1:\n%s", n, p.Stderr())
	}
	unlock()
	next := start(t, protect(b, store, "--lease", "1s")...)
	waitUntil(t, "the lease has run out", func() bool {
		return strings.Contains(mustPost(t, next.URL+"/pagamentos", "k", `1`).body, "outcome-unknown")
	})
	if n := len(b.charges); n != 1 {
		t.Errorf("%d charges, want 1", n)
	}
}

package sqlitestore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// mountTmpfs mounts a small file system in memory.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		unable(t, "mounting a small file system needs to be root, and allowed to: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// A full disk: clear errors, nothing half done, no acknowledged write lost, keys
// that are done are still answered; with room again, the store goes on by itself.
func TestFullDisk(t *testing.T) {
	dir := mountTmpfs(t, "3m")
	s := open(t, filepath.Join(dir, "umavez.db"), Options{})
	answer := bytes.Repeat([]byte("x"), 20_000)
	done(t, s, "first", answer)
	waiting := claim(t, s, "waiting", request())

	acknowledged := []string{}
	var full error
	for i := 0; full == nil && i < 1000; i++ {
		key := fmt.Sprint(i)
		req := request()
		_, acquired, err := s.Claim(t.Context(), idOf(key), req)
		if err == nil && acquired {
			l := umavez.Lease{ID: idOf(key), Attempt: req.Attempt}
			err = s.Complete(t.Context(), l, answer, keep)
		}
		if full = err; err == nil {
			acknowledged = append(acknowledged, key)
		}
	}
	if _, ok := errors.AsType[*umavez.StoreError](full); !ok {
		t.Fatalf("the disk of 3 MiB did not fill: %v after %d answers", full, len(acknowledged))
	}
	t.Logf("after %d answers: %v", len(acknowledged), full)
	err := s.Complete(t.Context(), waiting, bytes.Repeat([]byte("y"), 1<<20), keep)
	if _, ok := errors.AsType[*umavez.StoreError](err); !ok {
		t.Errorf("a completion on a full disk: %v, want a StoreError", err)
	}
	if rec, _, err := s.Claim(t.Context(), idOf("first"), request()); err != nil || !bytes.Equal(rec.Answer, answer) {
		t.Errorf("a replay on a full disk: %v, %v", err, rec.State)
	}

	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := s.Complete(t.Context(), waiting, answer, keep); err != nil {
		t.Errorf("the completion again, with room: %v", err)
	}
	for _, key := range acknowledged {
		if rec := get(t, s, key); rec.State != umavez.Done || !bytes.Equal(rec.Answer, answer) {
			t.Fatalf("key %s was completed and is %v, with an answer of %d bytes", key, rec.State, len(rec.Answer))
		}
	}
	checkWholeFile(t, s)
}

// checkWholeFile has SQLite look for damage everywhere.
func checkWholeFile(t *testing.T, s *Store) {
	t.Helper()
	c, err := dial(t.Context(), s.writer.path, s.opt, reading)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if said, err := c.pragma("integrity_check"); err != nil || said != "ok" {
		t.Errorf("integrity check: %q, %v", said, err)
	}
}

func TestReadOnlyFile(t *testing.T) {
	dir := mountTmpfs(t, "3m")
	path := filepath.Join(dir, "umavez.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done(t, s, "k", nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("open on a read-only file system: %v, want ErrReadOnly", err)
	}
	if _, err := Open(t.Context(), path+"2", Options{}); !errors.Is(err, ErrPath) {
		t.Errorf("open of a new file on a read-only file system: %v, want ErrPath", err)
	}
}

// The disk fails to sync a commit. Its caller does not know. What is seen after
// that is also what is found after a crash, because another commit lies over the
// failed one: without it, SQLite brings the failed one back.
func TestFailedSync(t *testing.T) {
	path := file(t)
	p := start(t, path)
	if r := p.ask(order{Do: "claim", Key: "before", Attempt: umavez.NewAttemptID(), Lease: time.Hour, Start: true}); !r.Acquired {
		t.Fatalf("%+v", r)
	}
	// Now a reader is connected, too. Else the writer that gives up would be the
	// last to close the file, and SQLite would remove the log with what is in it.
	if r := p.ask(order{Do: "get", Key: "before"}); r.State != umavez.Running {
		t.Fatalf("%+v", r)
	}
	failSyncs(t, p.cmd.Process.Pid)
	r := p.ask(order{Do: "claim", Key: "k", Attempt: umavez.NewAttemptID(), Lease: time.Hour})
	if r.Acquired || r.Applied != "maybe" {
		t.Fatalf("a claim whose sync failed: %+v, want an error that says maybe", r)
	}
	t.Log(r.Err)
	seen := p.ask(order{Do: "get", Key: "k"})
	p.kill()

	// By hand: a store that opens the file releases what had not started, and
	// would cover up what came back.
	c, err := dial(t.Context(), path, Options{BusyTimeout: time.Second}, reading)
	if err != nil {
		t.Fatal(err)
	}
	row, _, err := c.row(idOf("k"))
	if err = errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
	if state := row.State(umavez.InstantOf(time.Now())); state != seen.State {
		t.Errorf("before the crash the key was %v, after it it is %v", seen.State, state)
	}
	s := open(t, path, Options{})
	if rec := get(t, s, "before"); rec.State != umavez.Running {
		t.Errorf("a claim that was acknowledged before is %v", rec.State)
	}
	checkWholeFile(t, s)
}

// failSyncs makes the next sync of each of a process's threads fail.
func failSyncs(t *testing.T, pid int) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		unable(t, "failing a real fsync needs strace: %v", err)
	}
	cmd := exec.Command(strace, "-f", "-o", os.DevNull, "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:error=EIO:when=1", "-p", strconv.Itoa(pid))
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(said)
	if !lines.Scan() || !strings.Contains(lines.Text(), "attached") {
		unable(t, "strace may not trace a process here: %s", lines.Text())
	}
	go func() { // its further words would fill the pipe
		for lines.Scan() {
		}
	}()
}

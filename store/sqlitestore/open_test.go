package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOddPaths(t *testing.T) {
	for _, name := range []string{
		"plain.db", "with space.db", "what?mode=memory", "a#b.db", "100%.db", "%41.db",
		"a&b=c;d.db", "quote'\"`.db", "açúcar.db", "-dash", "x.db?vfs=none&cache=shared",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			s, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			done(t, s, "k", []byte("answer"))
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("the file is not where it should be: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("after the close the directory holds %v, want the file alone", entries)
			}
			if rec := get(t, open(t, path, Options{}), "k"); string(rec.Answer) != "answer" {
				t.Errorf("opened again, the answer is %q", rec.Answer)
			}
		})
	}
}

func TestPathThroughLinks(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.db"), filepath.Join(dir, "link.db")
	s := open(t, real, Options{})
	done(t, s, "k", nil)
	if err := os.Symlink(real, link); err != nil {
		unable(t, "links cannot be made here: %v", err)
	}
	linked := open(t, link, Options{})
	if linked.writer.path != s.writer.path {
		t.Errorf("the link leads to %q, want %q", linked.writer.path, s.writer.path)
	}
	if rec := get(t, linked, "k"); rec.State.String() != "done" {
		t.Errorf("through the link the key is %v", rec.State)
	}
}

func TestRefusedPaths(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ path, says string }{
		{"", "empty"},
		{":memory:", "memory"},
		{"file::memory:?cache=shared", "memory"},
		{"file:" + filepath.Join(dir, "x.db"), "URI"},
		{filepath.Join(dir, "nul\x00.db"), "NUL"},
		{filepath.Join(dir, "no", "such", "x.db"), "directory must exist"},
		{dir, "not a regular file"},
	} {
		s, err := Open(t.Context(), c.path, Options{})
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, ErrPath) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("open of %q: %v, want ErrPath that says %q", c.path, err, c.says)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("a refused open left %v behind", entries)
	}
}

func TestNotADatabase(t *testing.T) {
	path := file(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("this is a letter ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("open of a letter: %v, want an error that names it", err)
	}
}

// Answers are in the file: it is for its owner alone, and so are its companions.
func TestFilesAreForTheirOwner(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{})
	done(t, s, "k", []byte("secret"))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode(); mode&fs.ModePerm&0o077 != 0 {
			t.Errorf("%s has mode %v", info.Name(), mode)
		}
	}
}

// What the promise rests on is in force on every connection.
func TestSettingsInForce(t *testing.T) {
	s := open(t, file(t), Options{BusyTimeout: 1500 * time.Millisecond})
	done(t, s, "k", nil)
	check := func(who string, c *conn, busy string) {
		t.Helper()
		for name, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": busy} {
			if got, err := c.pragma(name); err != nil || got != want {
				t.Errorf("%s of the %s is %q, %v, want %q", name, who, got, err, want)
			}
		}
	}
	check("writer", s.writer.c, "0")
	err := s.readers.do(t.Context(), func(c *conn) error {
		check("reader", c, "1500")
		if err := c.script("DELETE FROM umavez_record"); err == nil {
			t.Error("a reader can write")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A setting that is accepted and does nothing is found out at start-up.
func TestSettingWithoutEffect(t *testing.T) {
	for _, name := range []string{"synchronous", "busy_timeout", "journal_size_limit"} {
		f := new(faults)
		swallow := func(dc driver.Conn, sql string, _ []driver.NamedValue) error {
			if !strings.HasPrefix(sql, "PRAGMA "+name+" = ") {
				return nil
			}
			_, err := dc.(driver.ExecerContext).ExecContext(context.Background(), "PRAGMA "+name+" = 1", nil)
			return err
		}
		f.set(nil, swallow)
		_, err := Open(t.Context(), file(t), Options{wrap: f.wrap})
		if !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), name) {
			t.Errorf("open, with %s of another value: %v, want ErrSetting that names it", name, err)
		}
	}
}

func TestSQLiteReleasesWithTheLogFault(t *testing.T) {
	for version, want := range map[string]bool{
		"3.6.23": false, "3.7.0": true, "3.7.17": true, "3.46.1": true, "3.51.2": true,
		"3.51.3": false, "3.52.0": false, "3.54.1": false, "4.0.0": false, "": true, "three": true,
	} {
		if got := hasLogFault(version); got != want {
			t.Errorf("version %q has the fault: %v, want %v", version, got, want)
		}
	}
}

func TestRisksAreAcceptedByName(t *testing.T) {
	for _, risk := range risks {
		err := Options{}.refuse(risk, "the finding")
		re, ok := errors.AsType[*RiskError](err)
		if !ok || re.Risk != risk || !strings.Contains(err.Error(), risk) || !strings.Contains(err.Error(), "the finding") {
			t.Errorf("refusing %s: %v", risk, err)
		}
		if err := (Options{AcceptRisk: []string{risk}}).refuse(risk, "the finding"); err != nil {
			t.Errorf("with the risk %s accepted: %v", risk, err)
		}
	}
	if _, err := Open(t.Context(), file(t), Options{AcceptRisk: []string{"everything"}}); err == nil {
		t.Error("a risk that does not exist was accepted")
	}
}

func TestClosedStore(t *testing.T) {
	s, _ := fresh(t)
	l := claim(t, s, "k", request())
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, acquired, err := s.Claim(t.Context(), idOf("new"), request())
	if acquired {
		t.Error("a closed store granted a claim")
	}
	_, getErr := s.Get(t.Context(), idOf("k"))
	for _, err := range []error{err, getErr, s.Complete(t.Context(), l, nil, keep)} {
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a call on a closed store: %v", err)
		}
	}
}

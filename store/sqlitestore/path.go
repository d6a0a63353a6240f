package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// locate checks a path and returns the absolute one of the file it stands for,
// links resolved: the write-ahead log lies beside that. It makes the file if it
// is not there.
func locate(path string, o Options) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("%w: it is empty", ErrPath)
	case strings.Contains(path, ":memory:"), strings.HasPrefix(path, "file:"):
		// An unnamed or in-memory database would forget every key at its
		// connection's end, and each connection would have one of its own.
		return "", fmt.Errorf("%w: %q: it must name a file, not a database in memory or a URI "+
			"(a file of such a name can be given as ./%s)", ErrPath, path, path)
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("%w: %q: it contains a NUL", ErrPath, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%w: %q: %w", ErrPath, path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("%w: its directory must exist: %w", ErrPath, err)
	}
	abs = filepath.Join(dir, filepath.Base(abs))
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	// Asked before the file is made, so that a refusal leaves nothing behind.
	if err := checkFileSystem(filepath.Dir(abs), o); err != nil {
		return "", err
	}
	return abs, create(abs)
}

// create makes the file if it is not there, for its owner's eyes only: it will
// hold answers. SQLite gives its -wal and -shm files the same permissions.
//
// A file that is there is only looked at, never opened: closing it again would
// drop the locks that another store of this process may hold on it.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPath, err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%w: %q is not a regular file", ErrPath, path)
		}
		if n := names(info); n > 1 {
			// The write-ahead log lies beside the name that was opened: under two
			// names there would be two, and two processes that do not see each
			// other's claims.
			return fmt.Errorf("%w: %q has %d names (hard links): remove the others, or copy the file", ErrPath, path, n)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	return f.Close()
}

// checkFileSystem refuses file systems whose locks cannot be relied on.
func checkFileSystem(dir string, o Options) error {
	name, err := sharedFileSystem(dir)
	if err != nil {
		return fmt.Errorf("umavez: sqlite: ask for the file system of %q: %w", dir, err)
	}
	if name == "" {
		return nil
	}
	return o.refuse(RiskNetworkFS, fmt.Sprintf("%q is on a file system of kind %s, "+
		"where SQLite's locks cannot be relied on", dir, name))
}

// dsn names the file to the driver, as a URI: a plain path could not contain
// a question mark. mode=rw: SQLite shall not make the file, with permissions of
// its own choice, if it has gone meanwhile.
func dsn(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: p}).String() + "?mode=rw"
}

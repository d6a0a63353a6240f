//go:build unix

package sqlitestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestHardLinksAreRefused: two names of one file have two write-ahead logs, and
// whoever opens one of them does not see what was claimed under the other.
func TestHardLinksAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	second := path + "2"
	if err := os.Link(path, second); err != nil {
		unable(t, "no hard links here: %v", err)
	}
	if _, err := Open(t.Context(), second, Options{}); !errors.Is(err, ErrPath) {
		t.Errorf("the second name: %v, want ErrPath", err)
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatalf("with one name again: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

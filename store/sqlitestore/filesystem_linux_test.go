package sqlitestore

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The file system of the test's own directory stands in for an NFS.
func TestSharedFileSystemIsRefused(t *testing.T) {
	dir := t.TempDir()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	kind := int64(uint32(st.Type))
	if name := sharedFileSystems[kind]; name != "" {
		t.Skipf("the test's directory is on a shared file system, %s, already", name)
	}
	sharedFileSystems[kind] = "nfs"
	defer delete(sharedFileSystems, kind)

	path := dir + "/umavez.db"
	_, err := Open(t.Context(), path, Options{})
	re, ok := errors.AsType[*RiskError](err)
	if !ok || re.Risk != RiskNetworkFS || !strings.Contains(err.Error(), "nfs") {
		t.Fatalf("open on nfs: %v, want a RiskError that names it", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused open left a file: %v", err)
	}
	s := open(t, path, Options{AcceptRisk: []string{RiskNetworkFS}})
	claim(t, s, "k", request())
}

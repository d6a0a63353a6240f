//go:build unix

package sqlitestore

import (
	"io/fs"
	"syscall"
)

// names is how many names a file has: one, and its hard links.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert,nolintlint // its type differs between systems
	}
	return 1
}

package sqlitestore

import (
	"database/sql/driver"
	"fmt"
)

// checkVersion refuses the SQLite releases whose restart of the write-ahead log
// can corrupt the file: 3.7.0 to 3.51.2.
func (c *conn) checkVersion(o Options) error {
	var version string
	err := c.ask("SELECT sqlite_version()", func(v []driver.Value) error {
		version = fmt.Sprint(v[0])
		return nil
	})
	if err != nil {
		return fmt.Errorf("umavez: sqlite: ask for SQLite's version: %w", err)
	}
	if hasLogFault(version) {
		return o.refuse(RiskSQLiteVersion, "SQLite "+version+
			" can corrupt the file when it restarts the write-ahead log (3.7.0 to 3.51.2)")
	}
	return nil
}

// hasLogFault reports whether a release has the fault. One that cannot be read
// counts as having it.
func hasLogFault(version string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 3 {
		return true
	}
	v := (major*1000+minor)*1000 + patch
	return v >= 3_007_000 && v <= 3_051_002
}

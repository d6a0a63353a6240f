package sqlitestore

import (
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// The migrations, in files named NNNN_what.sql, numbered from 1 without a gap.
// One that was released is never edited: it is part of what existing files are
// compared with. Each looks whether its objects are there before it makes them.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema.
type migration struct {
	version int
	name    string
	sql     string
}

// migrations returns them in order.
func migrations() ([]migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var all []migration
	for i, file := range files {
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		if v, err := strconv.Atoi(number); err != nil || v != i+1 {
			return nil, fmt.Errorf("umavez: sqlite: migration %q should have number %d", name, i+1)
		}
		all = append(all, migration{version: i + 1, name: name, sql: string(text)})
	}
	return all, nil
}

// Schema returns the SQL that makes the schema, as [Open] runs it.
func Schema() string {
	all, err := migrations()
	if err != nil {
		panic(err) // the files are part of this package
	}
	var b strings.Builder
	b.WriteString(migrationTable + ";\n")
	for _, m := range all {
		fmt.Fprintf(&b, "\n-- %s\n%s", m.name, m.sql)
	}
	return b.String()
}

// migrationTable holds a row for each migration that was applied.
const migrationTable = `CREATE TABLE IF NOT EXISTS umavez_migration (
	version    INTEGER NOT NULL PRIMARY KEY,
	name       TEXT    NOT NULL,
	applied_at INTEGER NOT NULL
) STRICT`

// migrate brings the file's schema up to this release's. It looks first, and
// takes no lock when there is nothing to do. Of two processes that start at the
// same time, one migrates and the other finds it done.
func (c *conn) migrate(now time.Time, patience time.Duration) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	have, err := c.schemaVersion()
	if err != nil || have == len(all) {
		return err
	}
	if have > len(all) {
		return fmt.Errorf("%w: version %d, this release knows %d", ErrSchemaNewer, have, len(all))
	}
	err = untilNotBusy(nil, patience, func() error { return c.script("BEGIN IMMEDIATE") })
	if err != nil {
		return fmt.Errorf("umavez: sqlite: migrate: %w", err)
	}
	if err := c.applyMissing(all, now); err != nil {
		return errors.Join(fmt.Errorf("umavez: sqlite: migrate: %w", err), c.script("ROLLBACK"))
	}
	if err := c.script("COMMIT"); err != nil {
		return fmt.Errorf("umavez: sqlite: migrate: %w", err)
	}
	return nil
}

// applyMissing runs what is missing, inside the caller's transaction.
func (c *conn) applyMissing(all []migration, now time.Time) error {
	if err := c.script(migrationTable); err != nil {
		return err
	}
	have, err := c.schemaVersion() // again, now that nobody else can write
	if err != nil {
		return err
	}
	for _, m := range all[min(have, len(all)):] {
		if err := c.script(m.sql); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		err := c.script("INSERT INTO umavez_migration (version, name, applied_at) VALUES (?, ?, ?)",
			int64(m.version), m.name, now.UnixMicro())
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// schemaVersion returns the number of the last migration that was applied, 0 for
// a file without a schema.
func (c *conn) schemaVersion() (version int, err error) {
	there := false
	err = c.ask("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'umavez_migration'",
		func([]driver.Value) error { there = true; return nil })
	if err != nil || !there {
		return 0, err
	}
	err = c.ask("SELECT coalesce(max(version), 0) FROM umavez_migration", func(v []driver.Value) error {
		s := scanner{values: v}
		version = int(s.integer())
		return s.err
	})
	return version, err
}

package sqlitestore

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// role is what a connection is for.
type role int

const (
	writing role = iota
	reading
)

// setting is a PRAGMA and what it must say when it is read back.
type setting struct {
	name, value, want string
}

// settings returns what a connection is set to. None of it is left to the
// driver's or the library's defaults, which differ between releases.
func settings(r role, o Options) []setting {
	// The writer waits for its turn by itself (see begin), more patiently than
	// SQLite does; and emptying the log must not wait at all.
	wait := "0"
	if r == reading {
		// In WAL mode a reader waits only while a log is recovered after a crash.
		wait = strconv.FormatInt(o.BusyTimeout.Milliseconds(), 10)
	}
	set := []setting{
		{"busy_timeout", wait, wait},
		{"journal_mode", "wal", "wal"},
		{"synchronous", "FULL", "2"}, // each commit is synced: NORMAL loses it at a power cut
		{"fullfsync", "ON", "1"},     // macOS: down to the platter
		{"checkpoint_fullfsync", "ON", "1"},
		{"temp_store", "MEMORY", "2"},
		{"trusted_schema", "OFF", "0"},
		{"foreign_keys", "OFF", "0"}, // there are none
	}
	if r == writing {
		set = append(
			set,
			setting{"wal_autocheckpoint", "1000", "1000"},
			// What a long reader made of the log is cut off when it starts over.
			setting{"journal_size_limit", "8388608", "8388608"},
			// 16 MiB: the pages of the key's index are touched at random.
			setting{"cache_size", "-16384", "-16384"},
		)
	} else {
		set = append(set, setting{"query_only", "ON", "1"})
	}
	return set
}

// configure applies a connection's settings and reads each of them back.
func (c *conn) configure(r role, o Options) error {
	for _, s := range settings(r, o) {
		if s.name == "journal_mode" {
			if err := c.useWAL(o.BusyTimeout); err != nil {
				return err
			}
		} else if err := c.script("PRAGMA " + s.name + " = " + s.value); err != nil {
			return fmt.Errorf("set %s: %w", s.name, err)
		}
		got, err := c.pragma(s.name)
		if err != nil {
			return fmt.Errorf("read %s back: %w", s.name, err)
		}
		if !strings.EqualFold(got, s.want) {
			return fmt.Errorf("%w: %s is %q after it was set to %s", ErrSetting, s.name, got, s.value)
		}
	}
	return nil
}

// useWAL puts the file into WAL mode, if it is not. That takes an exclusive
// lock, for which SQLite does not always wait: a second process that starts at
// the same time must try again.
func (c *conn) useWAL(patience time.Duration) error {
	return untilNotBusy(nil, patience, func() error {
		mode, err := c.pragma("journal_mode")
		if err != nil || strings.EqualFold(mode, "wal") {
			return err
		}
		_, err = c.pragma("journal_mode = wal")
		return err
	})
}

// pragma reads a PRAGMA that gives one value.
func (c *conn) pragma(name string) (value string, err error) {
	err = c.ask("PRAGMA "+name, func(v []driver.Value) error {
		value = fmt.Sprint(v[0])
		return nil
	})
	return value, err
}

package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options sets a [Store] up. The zero value of every field means its default.
type Options struct {
	// Now is the store's clock. All processes on one file must have the same
	// one. Default time.Now.
	Now func() time.Time
	// BusyTimeout is how long a transaction waits for another process to end
	// its own. After it the calls in the batch fail, and nothing was applied.
	// Default 1.5 s: below the 2 s that the engine gives a claim, so that its
	// answer is No rather than Maybe. More than the 2 s that a batch may take
	// has no effect.
	BusyTimeout time.Duration
	// AcceptRisk names the start-up checks that may fail: RiskNetworkFS,
	// RiskSQLiteVersion. An unknown name is an error.
	AcceptRisk []string

	// For this package's tests: a decorator for every connection, the size, in
	// bytes, over which the write-ahead log is to be emptied, and how long a
	// batch may take.
	wrap      func(driver.Conn) driver.Conn
	walLimit  int64
	batchTime time.Duration
}

// The risks that can be accepted by name.
const (
	// RiskNetworkFS: the file is on NFS, SMB/CIFS, 9p, FUSE or another file
	// system that several machines may share. SQLite's locks, and the shared
	// memory of its write-ahead log, cannot be relied on there.
	RiskNetworkFS = "network-filesystem"
	// RiskSQLiteVersion: the SQLite library is between 3.7.0 and 3.51.2, whose
	// restart of the write-ahead log may, rarely, corrupt the file.
	RiskSQLiteVersion = "sqlite-version"
)

var risks = []string{RiskNetworkFS, RiskSQLiteVersion}

// RiskError is a start-up check that failed, and whose risk may be accepted.
type RiskError struct {
	// Risk is the name by which [Options.AcceptRisk] accepts it.
	Risk string
	// Found says what is wrong.
	Found string
}

// Error says what is wrong and how to accept it.
func (e *RiskError) Error() string {
	return fmt.Sprintf("umavez: sqlite: %s; to accept this, accept the risk %q", e.Found, e.Risk)
}

// Errors that [Open] wraps.
var (
	// ErrPath: the path is not that of a file that can be the store.
	ErrPath = errors.New("umavez: sqlite: the path cannot be used")
	// ErrReadOnly: the file, or its file system, cannot be written.
	ErrReadOnly = errors.New("umavez: sqlite: the file is read-only")
	// ErrSchemaDrift: a table or index is not declared as this release declares it.
	ErrSchemaDrift = errors.New("umavez: sqlite: the schema is not the one that this release makes")
	// ErrSchemaNewer: the schema was made by a newer release.
	ErrSchemaNewer = errors.New("umavez: sqlite: the schema is of a newer release")
	// ErrSetting: a setting that the promise rests on did not take effect.
	ErrSetting = errors.New("umavez: sqlite: a setting did not take effect")
)

const (
	defaultBusyTimeout = 1500 * time.Millisecond
	// defaultWALLimit is four times the size at which SQLite starts the log
	// over by itself; above it, something keeps it from doing so.
	defaultWALLimit = 16 << 20
)

func (o Options) withDefaults() (Options, error) {
	for _, r := range o.AcceptRisk {
		if !slices.Contains(risks, r) {
			return o, fmt.Errorf("umavez: sqlite: no risk is named %q; known are %s", r, strings.Join(risks, ", "))
		}
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the clock that is handed down
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	if o.walLimit <= 0 {
		o.walLimit = defaultWALLimit
	}
	return o, nil
}

// refuse turns a failed check into an error, unless its risk is accepted.
func (o Options) refuse(risk, found string) error {
	if slices.Contains(o.AcceptRisk, risk) {
		return nil
	}
	return &RiskError{Risk: risk, Found: found}
}

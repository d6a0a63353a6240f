package umavez

import "time"

// Options sets an engine up. The zero value of every field means its default.
type Options struct {
	// Lease is an attempt's right to finish its key, for a time. Heartbeats
	// extend it every third of it. Default 15 s: long enough that a pause of
	// some seconds loses nothing, short enough that a key whose process died is
	// known to be lost soon.
	Lease time.Duration
	// MaxRun ends every heartbeat: an attempt that runs longer is lost.
	// Default 5 min, well over any gateway's own timeout.
	MaxRun time.Duration
	// Retain is how long answers are given, from their completion. Default 24 h.
	Retain time.Duration
	// Tombstone is how long after that a late retry is refused. Default 30 days
	// for opaque operations and none for others; negative: none.
	Tombstone time.Duration
	// ClaimTimeout bounds a claim with all its repeats. After it the answer is
	// ErrUnavailable. Default 2 s.
	ClaimTimeout time.Duration
	// SaveTimeout is how long Complete, Release and Abandon keep their caller
	// waiting for the store before they go on in the background. Default 2 s.
	SaveTimeout time.Duration
	// MaxWaiters bounds the duplicates that wait, in this process. Default
	// 10,000: each holds a goroutine and a connection of its caller.
	MaxWaiters int
	// MaxWaitersPerKey bounds the duplicates that wait for one key. Default 128.
	MaxWaitersPerKey int
	// MaxUnsaved bounds the answers, in bytes, that the store has not taken
	// yet. Beyond it new claims get ErrUnavailable. Default 64 MiB.
	MaxUnsaved int64
	// MaxReleases bounds the claims that wait to be released in the background.
	// Beyond it new claims get ErrUnavailable. Default 1,024.
	MaxReleases int
	// MaxUnsettled bounds the records of one caller that are running or lost.
	// Beyond it new keys get ErrTooManyUnsettled. Default 1,000: far more than a
	// person settles, so that an outage shows before it fills the store.
	// Negative: no bound.
	MaxUnsettled int
	// Sealer seals what records hold before it goes to the store: answers,
	// steps, requests, and the namespaces' hash keys. Nil: they lie in plain.
	Sealer Sealer
	// PurgeEvery is how often Run purges the store. Default 1 min.
	PurgeEvery time.Duration
	// RecoverEvery is how often Run looks for lost records that somebody is
	// registered for, more or less: processes that share a store should not all
	// look at once. Default 5 s: less than anyone waits for a lost record.
	RecoverEvery time.Duration
	// MaxRecovering bounds, in this process, the lost records that reconcilers
	// are asked about at once, and likewise those that completers finish.
	// Default 8: after an outage there may be thousands, and the foreign systems
	// have just come back.
	MaxRecovering int
	// Observe is told of every moment. It is called on the goroutine on which
	// the moment happens, and must be quick and safe for concurrent use.
	Observe func(Observation)

	// clock is the process's clocks; tests replace it.
	clock clock
}

// MinLease is the shortest lease: below it, heartbeats of a busy process could
// not keep up.
const MinLease = 100 * time.Millisecond

// withDefaults fills in the defaults and refuses nonsense.
func (o Options) withDefaults() (Options, error) {
	if err := fillDurations("Options", []duration{
		{"Lease", &o.Lease, 15 * time.Second},
		{"MaxRun", &o.MaxRun, 5 * time.Minute},
		{"Retain", &o.Retain, 24 * time.Hour},
		{"ClaimTimeout", &o.ClaimTimeout, 2 * time.Second},
		{"SaveTimeout", &o.SaveTimeout, 2 * time.Second},
		{"PurgeEvery", &o.PurgeEvery, time.Minute},
		{"RecoverEvery", &o.RecoverEvery, 5 * time.Second},
	}); err != nil {
		return o, err
	}
	for _, n := range []struct {
		name  string
		value *int
		def   int
	}{
		{"MaxWaiters", &o.MaxWaiters, 10_000},
		{"MaxWaitersPerKey", &o.MaxWaitersPerKey, 128},
		{"MaxReleases", &o.MaxReleases, 1024},
		{"MaxRecovering", &o.MaxRecovering, 8},
	} {
		if *n.value < 0 {
			return o, errorf("Options.%s is negative: %d", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.def
		}
	}
	if o.MaxUnsettled == 0 {
		o.MaxUnsettled = 1000
	}
	o.MaxUnsettled = max(o.MaxUnsettled, 0)
	if o.MaxUnsaved < 0 {
		return o, errorf("Options.MaxUnsaved is negative: %d", o.MaxUnsaved)
	}
	if o.MaxUnsaved == 0 {
		o.MaxUnsaved = 64 << 20
	}
	if o.Lease < MinLease {
		return o, errorf("Options.Lease is %v; at least %v", o.Lease, MinLease)
	}
	if o.MaxRun < o.Lease {
		return o, errorf("Options.MaxRun (%v) is shorter than Options.Lease (%v)", o.MaxRun, o.Lease)
	}
	return o, nil
}

// retention is how long the answer of an operation stands.
func (o *Options) retention(op *Operation) Retention {
	r := Retention{Retain: o.Retain, Tombstone: o.Tombstone}
	if op.Retain > 0 {
		r.Retain = op.Retain
	}
	if op.Tombstone != 0 {
		r.Tombstone = op.Tombstone
	}
	if r.Tombstone == 0 && op.Policy == Opaque {
		r.Tombstone = DefaultTombstone
	}
	r.Tombstone = max(r.Tombstone, 0)
	return r
}

// DefaultTombstone stands after the answer of an opaque operation: a late retry
// of a payment should be refused, not run, for longer than anyone retries.
const DefaultTombstone = 30 * 24 * time.Hour

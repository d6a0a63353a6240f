package umavez

import "time"

// Instant is a reading of one store's clock, in microseconds. Instants never
// leave the store: contract and records speak of durations.
type Instant int64

// InstantOf converts a wall-clock time.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Add returns i + d, rounded down to microseconds.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Microseconds()) }

// Sub returns i − j.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i-j) * time.Microsecond }

// Phase is the part of a key's state that a store writes down. What else there
// is to a [State] is made of it by time.
type Phase uint8

// The phases. The zero phase is that of a key the store has never seen.
const (
	PhaseVacant Phase = iota
	PhaseRunning
	PhaseDone
)

// ReleasedKept is how long a released row stays. It keeps the fence rising
// when the clock steps back, and bars the released attempt: a claim that was
// still on its way when its release was answered finds its name there.
const ReleasedKept = 24 * time.Hour

// Row is what a store keeps for a key. The zero Row is a key that it has never
// seen. A Row is a value: transitions return a new one.
type Row struct {
	Phase  Phase
	Policy Policy
	// Settled: the answer was given by settling.
	Settled bool
	// Tries counts the claims since the row was last vacant.
	Tries int32
	// Attempt holds the row; in a vacant row, it is the attempt that was
	// released last and may not claim again.
	Attempt     AttemptID
	Fingerprint Fingerprint
	Fence       Fence
	Namespace   string
	Scope       ScopeID
	Route       string
	Label       string
	// Ended is the reason with which the owner abandoned its lease.
	Ended Reason

	// Claimed is when the row was first claimed since it was last vacant.
	Claimed Instant
	// Since is when the row entered its phase, or its present attempt began.
	Since Instant
	// Until is when the lease (running), the retention (done) or the row
	// itself (vacant) ends.
	Until Instant
	// Gone is when the tombstone of a done row ends.
	Gone Instant

	Steps   []KeptStep
	Answer  []byte
	Last    []byte
	Request []byte

	// Holder looks into a lost row, alone, until HeldUntil. In a row that was
	// settled, it names the settlement.
	Holder    AttemptID
	HeldUntil Instant
	// Overruled is the attempt whose outcome was settled last. Contradicted: it
	// came back and said otherwise.
	Overruled    AttemptID
	Contradicted bool
}

// State returns where the key stands at an instant.
func (row Row) State(now Instant) State {
	switch row.Phase {
	case PhaseRunning:
		if row.Ended != "" || now >= row.Until {
			return Lost
		}
		return Running
	case PhaseDone:
		switch {
		case now < row.Until:
			return Done
		case now < row.Gone:
			return Expired
		}
	}
	return Vacant
}

// Purge says what may go at an instant: the whole row (keep is false), or the
// answer of an expired one. Running and lost rows never go.
func (row Row) Purge(now Instant) (next Row, keep bool) {
	switch {
	case row.Phase == PhaseVacant:
		return row, now < row.Until
	case row.Phase == PhaseDone && now >= row.Gone && now >= row.Until:
		return row, false
	case row.Phase == PhaseDone && now >= row.Until:
		row.Answer = nil
	}
	return row, true
}

// Record tells of the row in durations, as of an instant.
func (row Row) Record(now Instant) Record {
	rec := Record{
		State: row.State(now), Policy: row.Policy,
		Namespace: row.Namespace, Scope: row.Scope, Route: row.Route, Label: row.Label,
		Fingerprint: row.Fingerprint, Attempt: row.Attempt, Fence: row.Fence,
		Tries: int(row.Tries), Settled: row.Settled, Contradicted: row.Contradicted,
		Steps: row.Steps, Last: row.Last, Request: row.Request,
		Age: now.Sub(row.Claimed), Since: now.Sub(row.Since),
	}
	switch rec.State {
	case Vacant:
		return Record{Fence: row.Fence}
	case Running:
		rec.LeaseLeft = row.Until.Sub(now)
	case Lost:
		rec.Since = now.Sub(row.Until)
		rec.HeldLeft = max(row.HeldUntil.Sub(now), 0)
		rec.Reason = row.Ended
		if rec.Reason == "" {
			rec.Reason = ReasonKilled
		}
	case Done:
		rec.Answer = row.Answer
		rec.RetainLeft = row.Until.Sub(now)
	case Expired:
		rec.Since = now.Sub(row.Until)
	}
	return rec
}

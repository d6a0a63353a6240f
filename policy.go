package umavez

// Policy says what may be done when an attempt is lost in the middle. It is
// declared with the operation and kept in the record by the key's first claim.
type Policy uint8

const (
	// Opaque: nothing is known of a lost attempt, so the operation is never
	// run again by itself; the key is unknown until somebody settles it. At
	// most once. The default.
	Opaque Policy = iota
	// Rerunnable: the operation's author declares that running it again is
	// safe; the next attempt does. At least once.
	Rerunnable
	// Stepped: each foreign call is a step with a derived key that is the same
	// on every attempt; the next attempt resumes after the last kept step.
	// Exactly once, if the foreign system honours its key.
	Stepped
	// Atomic: all effects are in the store's own database, in one transaction
	// with the completion; a lost attempt is rolled back. Exactly once.
	Atomic
)

var policyNames = [...]string{"opaque", "rerunnable", "stepped", "atomic"}

// String returns the policy's name in lower case.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return "invalid"
}

// Valid reports whether p is one of the declared policies.
func (p Policy) Valid() bool { return int(p) < len(policyNames) }

// TakesOver reports whether the next attempt may take over a lost record.
func (p Policy) TakesOver() bool { return p.Valid() && p != Opaque }

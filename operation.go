package umavez

import "time"

// Operation describes one request to run something once.
type Operation struct {
	Key         Key
	Fingerprint Fingerprint
	// Refingerprint makes the request's fingerprint by an older recipe, for a
	// record that was claimed under it. Nil, or false: the recipe is not known.
	Refingerprint func(recipe uint32) (Fingerprint, bool)
	Policy        Policy
	// Route names the operation for operators. Cut to MaxRoute bytes.
	Route string
	// Label is the key in words, for operators of a service that keeps it. Cut
	// to MaxLabel bytes. Empty: only hashes are kept.
	Label string
	// Wait is how long a duplicate may wait for a running attempt. Zero or
	// less: not at all.
	Wait time.Duration
	// Asked is since when its caller has waited already, by the wall clock.
	// Zero: since the call of Claim.
	Asked time.Time
	// Retain and Tombstone override the engine's options when not zero; a
	// negative Tombstone means none.
	Retain, Tombstone time.Duration
	// Request is kept in the record by its first claim. Nil: nothing.
	Request []byte

	// resume is the fence of the lost record that is to be taken over. Zero:
	// whatever the key allows.
	resume Fence
}

package umavez

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Scope says whose key it is: two callers' equal keys are two keys.
type Scope struct {
	// Namespace separates the services, or groups of routes, that share a store.
	Namespace string
	// Principal is the authenticated caller, as the service knows it: an
	// account or tenant, never a token that is refreshed between attempts.
	Principal string
}

// Key is what the client sent, plus its scope. All three parts are bytes: they
// are compared exactly, never folded, trimmed or normalised.
type Key struct {
	Scope Scope
	Name  string
	// Secret keys the hashes that stores keep of the key, so that nobody who
	// reads a store finds out by trying whose keys it holds, or which. All
	// processes of a namespace must use the same: [Settings].HashKey. Zero: plain
	// hashes, for keys that are no secret.
	Secret [HashKeySize]byte
}

// ID names a record. It is the hash of a [Key], and the primary key in a store.
type ID [32]byte

// String returns the ID as 64 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ID returns the record's name: a hash over the length-prefixed parts of the
// key. The length prefixes keep ("a","bc") and ("ab","c") apart.
func (k Key) ID() ID {
	// Typical keys fit the array, so that hashing one allocates nothing.
	var array [512]byte
	b := k.begin(append(array[:0], "umavez key"...))
	b = appendPart(b, k.Scope.Namespace)
	b = appendPart(b, k.Scope.Principal)
	b = appendPart(b, k.Name)
	return sha256.Sum256(b)
}

// begin appends what the hashes of a key have in common: their version, and the
// secret if there is one. In front of length-prefixed parts it keys SHA-256.
func (k *Key) begin(b []byte) []byte {
	if k.Secret == ([HashKeySize]byte{}) {
		return append(b, " 1\x00"...)
	}
	return append(append(b, " 2\x00"...), k.Secret[:]...)
}

// ScopeID names a scope in a store: records with the same one belong to the same
// caller.
type ScopeID [16]byte

// String returns the scope's id as 32 hexadecimal digits.
func (s ScopeID) String() string { return hex.EncodeToString(s[:]) }

// ScopeID returns the name of the key's scope, a hash as ID is.
func (k Key) ScopeID() ScopeID {
	var array [512]byte
	b := k.begin(append(array[:0], "umavez scope"...))
	b = appendPart(b, k.Scope.Namespace)
	b = appendPart(b, k.Scope.Principal)
	sum := sha256.Sum256(b)
	return ScopeID(sum[:16])
}

func appendPart(b []byte, part string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
	return append(b, part...)
}

// AttemptID names one try at an operation. The engine draws it from the
// operating system's random source, so that a forked or restored process does
// not repeat the ids of its twin.
type AttemptID [16]byte

// NewAttemptID draws an attempt id.
func NewAttemptID() AttemptID {
	var a AttemptID
	rand.Read(a[:]) // never fails: crypto/rand ends the process instead
	return a
}

// String returns the attempt id as 32 hexadecimal digits.
func (a AttemptID) String() string { return hex.EncodeToString(a[:]) }

// FingerprintParts is the number of parts that a [Fingerprint] can tell apart.
const FingerprintParts = 8

// Fingerprint is what makes two requests "the same request". Two of the same
// recipe are the same request exactly when their sums are equal.
//
// The zero Fingerprint belongs to operations that are told apart by key alone.
type Fingerprint struct {
	// Recipe identifies how Sum was made. Sums of different recipes say
	// nothing about each other.
	Recipe uint32
	// Sum is a keyed hash over everything that counts.
	Sum [32]byte
	// Parts are short keyed hashes of the parts, in an order that the recipe
	// knows. They only hint at what differs; Sum alone decides.
	Parts [FingerprintParts]uint32
}

// fingerprintSize is the length of an encoded Fingerprint.
const fingerprintSize = 4 + 32 + 4*FingerprintParts

// AppendBinary appends the fingerprint's fixed-length form, for stores.
func (f Fingerprint) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, f.Recipe)
	b = append(b, f.Sum[:]...)
	for _, p := range f.Parts {
		b = binary.BigEndian.AppendUint32(b, p)
	}
	return b, nil
}

// UnmarshalBinary reads what AppendBinary wrote.
func (f *Fingerprint) UnmarshalBinary(b []byte) error {
	if len(b) != fingerprintSize {
		return errorf("fingerprint of %d bytes, want %d", len(b), fingerprintSize)
	}
	f.Recipe = binary.BigEndian.Uint32(b)
	copy(f.Sum[:], b[4:])
	for i := range f.Parts {
		f.Parts[i] = binary.BigEndian.Uint32(b[36+4*i:])
	}
	return nil
}

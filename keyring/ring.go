package keyring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
)

// The sealed form, version 1:
//
//	offset  bytes
//	0       3    magic: 0xFB "uz". No UTF-8 text begins so, hence no JSON, and
//	             neither does a stored HTTP answer
//	3       1    version: 1
//	4       1    L, the length of the key's id: 1 to 32
//	5       L    the key's id
//	5+L     12   nonce
//	17+L    …    AES-256-GCM's cipher text, and its tag of 16 bytes
//
// Of the ring's key and the data, HKDF-SHA256 makes two keys: one for AES-GCM
// and one for the nonce. The nonce is the first 12 bytes of HMAC-SHA256 over the
// text, under the second. Head and data are GCM's additional data.
//
// So the same text under the same data and key always gives the same bytes. A
// store call must be repeatable byte by byte, and a store compares answers by
// their bytes: with a nonce that is drawn, each repeat would be another answer.
//
// A fixed nonce is usually what must not happen to GCM: two texts under one
// nonce and one key give away their difference, and with it the means to forge.
// Here two texts have one key only if they have the same data, which names a
// record, a field of it and a fence. Those are the few texts that one attempt
// writes into one place. Among them two have one nonce only if 96 bits of an
// HMAC are alike by chance, or if the texts are the same, and then nothing but
// their being the same shows. (SIV constructions do this, as in RFC 5297. We
// take the parts that the standard library has. Keys that differ for every
// record also keep far from GCM's bound on texts under one key.)
const (
	magic     = "\xfbuz\x01"
	nonceSize = 12
	tagSize   = 16
)

// MaxID is the longest id of a key, in bytes: it is kept with everything sealed.
const MaxID = 32

// KeySize is the length of a key, in bytes.
const KeySize = 32

// MaxOverhead is by how much a sealed text is longer than the text, in bytes.
const MaxOverhead = len(magic) + 1 + MaxID + nonceSize + tagSize

// Why something is not opened. Errors say which key is missing, and nothing of
// keys or texts.
var (
	// ErrPlain: it is not sealed, and the ring takes nothing that is not.
	ErrPlain = errors.New("umavez: key ring: it is in plain, and must be sealed")
	// ErrUnknownKey: it is sealed with a key that the ring does not hold.
	ErrUnknownKey = errors.New("umavez: key ring: sealed with a key that is not in the ring")
	// ErrDamaged: it was changed since it was sealed, or belongs to another
	// place than where it was found.
	ErrDamaged = errors.New("umavez: key ring: damaged, or sealed for another place")
)

// Ring seals and opens. Make one with [Load] or [Parse]. It never changes and is
// safe for concurrent use. Printing it, in whatever form, shows no key.
type Ring struct {
	keys  []key // the first one seals
	plain bool
}

// key is one key of a ring.
type key struct {
	id   string
	head []byte // of what is sealed with it
	prk  []byte // HKDF's pseudorandom key, of which the others are made
}

func newKey(id string, secret []byte) (key, error) {
	prk, err := hkdf.Extract(sha256.New, secret, []byte("umavez keyring 1"))
	if err != nil {
		return key{}, fmt.Errorf("umavez: key ring: key %q: %w", id, err)
	}
	head := append([]byte(magic), byte(len(id)))
	return key{id: id, head: append(head, id...), prk: prk}, nil
}

// Active returns the id of the key that seals.
func (r *Ring) Active() string { return r.keys[0].id }

// IDs returns the ids of all keys, the active one first.
func (r *Ring) IDs() []string {
	ids := make([]string, len(r.keys))
	for i := range r.keys {
		ids[i] = r.keys[i].id
	}
	return ids
}

// AllowsPlain reports whether the ring takes what is in plain: see [Source].
func (r *Ring) AllowsPlain() bool { return r.plain }

// String names the keys by their ids.
func (r Ring) String() string { return fmt.Sprintf("key ring %q", r.IDs()) }

// Format prints what String returns, whatever the verb: %v of a struct would go
// into the keys. It has no pointer receiver, so that it holds for copies, too.
func (r Ring) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// Seal seals a text with the first key. data is authenticated with it and must
// be the same when it is opened. The same text with the same data gives the same
// bytes.
func (r *Ring) Seal(text, data []byte) ([]byte, error) {
	k := &r.keys[0]
	var array [stackData]byte
	bound := append(append(array[:0], k.head...), data...)
	gcm, mac, err := k.derive(bound)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(k.head)+nonceSize+len(text)+tagSize)
	out = append(out, k.head...)
	nonce := nonceOf(mac, text)
	out = append(out, nonce[:]...)
	return gcm.Seal(out, nonce[:], text, bound), nil
}

// stackData is room for a head and the data of usual fields, so that putting
// them together allocates nothing.
const stackData = 256

// derive makes the keys of one place: for the texts, and for their nonces.
func (k *key) derive(bound []byte) (gcm cipher.AEAD, mac []byte, err error) {
	keys, err := hkdf.Expand(sha256.New, k.prk, "umavez seal 1\x00"+string(bound), 2*KeySize)
	if err != nil {
		return nil, nil, fmt.Errorf("umavez: key ring: %w", err)
	}
	block, err := aes.NewCipher(keys[:KeySize])
	if err != nil {
		return nil, nil, fmt.Errorf("umavez: key ring: %w", err)
	}
	gcm, err = cipher.NewGCM(block)
	if err != nil {
		return nil, nil, fmt.Errorf("umavez: key ring: %w", err)
	}
	return gcm, keys[KeySize:], nil
}

func nonceOf(key, text []byte) (nonce [nonceSize]byte) {
	var sum [sha256.Size]byte
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	copy(nonce[:], mac.Sum(sum[:0]))
	return nonce
}

// Open returns the text that was sealed with the same data, by any key of the
// ring; else ErrUnknownKey, ErrDamaged or ErrPlain. A ring that allows it
// returns what is not sealed as it is.
func (r *Ring) Open(sealed, data []byte) ([]byte, error) {
	if !bytes.HasPrefix(sealed, []byte(magic)) {
		if r.plain {
			return sealed, nil
		}
		return nil, ErrPlain
	}
	id, rest, ok := cutID(sealed)
	if !ok {
		return nil, ErrDamaged
	}
	k := r.find(id)
	if k == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknownKey, id)
	}
	var array [stackData]byte
	bound := append(append(array[:0], k.head...), data...)
	gcm, mac, err := k.derive(bound)
	if err != nil {
		return nil, err
	}
	nonce, cipherText := rest[:nonceSize], rest[nonceSize:]
	text, err := gcm.Open(nil, nonce, cipherText, bound)
	if err != nil {
		return nil, ErrDamaged // GCM says no more, and need not
	}
	// A text has one sealed form. Whoever else sealed it drew its nonce.
	if want := nonceOf(mac, text); subtle.ConstantTimeCompare(nonce, want[:]) != 1 {
		return nil, ErrDamaged
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// Stale reports whether what was sealed is in plain, or sealed with another key
// than the one that seals now.
func (r *Ring) Stale(sealed []byte) bool { return !bytes.HasPrefix(sealed, r.keys[0].head) }

func (r *Ring) find(id string) *key {
	for i := range r.keys {
		if r.keys[i].id == id {
			return &r.keys[i]
		}
	}
	return nil
}

// cutID takes the key's id from what begins like something sealed.
func cutID(sealed []byte) (id string, rest []byte, ok bool) {
	rest = sealed[len(magic):]
	if len(rest) == 0 {
		return "", nil, false
	}
	n := int(rest[0])
	rest = rest[1:]
	if n > MaxID || len(rest) < n+nonceSize+tagSize {
		return "", nil, false
	}
	id = string(rest[:n])
	return id, rest[n:], checkID(id) == nil
}

package umavezhttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math/bits"

	"github.com/umavez/umavez"
)

// mostInline is the longest body, in bytes, that is hashed together with the
// other parts. A longer one is hashed by itself first, so that neither the
// message nor the hint has to go over it again.
const mostInline = 256

// hasher makes a fingerprint: HMAC-SHA-256 over a message of length-prefixed
// parts, with a short keyed hash of each part as a hint. It holds everything
// that one fingerprint needs memory for, and is reused.
//
// What it hashes is told apart by keys, not by words in the message, and lengths
// are as short as they can be: a small payment then fits into one block, and
// each block costs a tenth of the whole.
type hasher struct {
	key  [32]byte  // the namespace's, of which the others are made
	mac  hash.Hash // of messages; nil before the first use
	long hash.Hash // of long bodies
	sip  [2]uint64 // the key of hints
	sum  [sha256.Size]byte
	msg  []byte
	part int // where the open part begins in msg

	json    canonJSON
	decoder decoder
	form    []byte // a multipart body's canonical form
}

// begin starts a message under key.
func (h *hasher) begin(key *[32]byte) {
	if h.mac == nil || h.key != *key {
		h.key = *key
		h.mac = hmac.New(sha256.New, h.derive("umavez request 1"))
		h.long = hmac.New(sha256.New, h.derive("umavez body 1"))
		hints := h.derive("umavez hints 1")
		h.sip[0] = binary.LittleEndian.Uint64(hints)
		h.sip[1] = binary.LittleEndian.Uint64(hints[8:])
	}
	h.msg = h.msg[:0]
}

// derive makes the key for one purpose.
func (h *hasher) derive(purpose string) []byte {
	mac := hmac.New(sha256.New, h.key[:])
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// open begins a part: what is appended to msg until close belongs to it.
func (h *hasher) open() {
	h.msg = append(h.msg, 0)
	h.part = len(h.msg)
}

// close ends a part: its length goes in front of it, as a uvarint, so that no
// two messages of different parts are alike, and its hint into the fingerprint.
func (h *hasher) close(fp *umavez.Fingerprint, part int) {
	n := len(h.msg) - h.part
	if n > 0 {
		fp.Parts[part] = uint32(sipHash(h.sip, h.msg[h.part:]))
	}
	if more := uvarintSize(n) - 1; more > 0 { // than the byte that open left for it
		h.msg = append(h.msg, make([]byte, more)...)
		copy(h.msg[h.part+more:], h.msg[h.part:h.part+n])
	}
	binary.PutUvarint(h.msg[h.part-1:], uint64(n))
}

// end hashes the message, and lets go of memory that a large request took.
func (h *hasher) end(fp *umavez.Fingerprint) {
	h.mac.Reset()
	h.mac.Write(h.msg)
	copy(fp.Sum[:], h.mac.Sum(h.sum[:0]))
	if cap(h.msg) > mostPooled {
		h.msg = nil
	}
	if cap(h.form) > mostPooled {
		h.form = nil
	}
	h.json.forget()
	h.decoder.forget()
}

// body appends a body to the open part. form says how content was made of what
// was received, so that a raw body never passes for a canonical one; coding is
// the content coding that is still on it.
func (h *hasher) body(form byte, coding string, content []byte) {
	h.msg = append(h.msg, form)
	h.msg = appendPart(h.msg, coding)
	if len(content) <= mostInline {
		h.msg = append(h.msg, 0)
		h.msg = append(h.msg, content...)
		return
	}
	h.long.Reset()
	h.long.Write(content)
	h.msg = append(h.msg, 1)
	h.msg = append(h.msg, h.long.Sum(h.sum[:0])...)
}

// appendPart appends s with its length in front. The stored answer's codec has a
// function that does the same today; a change there must not change fingerprints.
func appendPart(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// appendLower appends s with its ASCII letters in lower case.
func appendLower(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// sipHash is SipHash-2-4 (Aumasson and Bernstein, 2012), a keyed hash for short
// inputs. A hint made with it tells nobody without the key what was hashed, at a
// tenth of the price of an HMAC. It decides nothing: the sum does.
func sipHash(key [2]uint64, b []byte) uint64 {
	v0, v1 := key[0]^0x736f6d6570736575, key[1]^0x646f72616e646f6d
	v2, v3 := key[0]^0x6c7967656e657261, key[1]^0x7465646279746573
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (w0, w1, w2, w3 uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}

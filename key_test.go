package umavez

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// secretOf is a secret that no two bytes of are alike.
func secretOf(first byte) (s [32]byte) {
	for i := range s {
		s[i] = first + byte(i)
	}
	return s
}

// TestHashesOfKeysStay: stores are full of them. Each is the SHA-256, by another
// program, of "umavez key 1" or "umavez scope 1", NUL, and the parts, each after
// its length in 8 bytes; with a secret it is 2 instead of 1, and the secret
// follows the NUL. A scope's is the first half.
func TestHashesOfKeysStay(t *testing.T) {
	plain := Key{Scope: Scope{Namespace: "loja", Principal: "maria"}, Name: "pedido-42"}
	keyed := plain
	keyed.Secret = secretOf(1)
	for _, c := range []struct{ name, got, want string }{
		{"ID", plain.ID().String(), "54caad0b69bcc45f517dfc74fcd16bfffebf743ec5fb22698a31cd2f8559dade"},
		{"ID, with a secret", keyed.ID().String(), "7bf841c196f73f99bd98ffff36be4753d2c1a3caef9bcee656af0ecd348edc4e"},
		{"ScopeID", plain.ScopeID().String(), "c13c110e50d5f6ccca86efc6dfccbf87"},
		{"ScopeID, with a secret", keyed.ScopeID().String(), "753e2a754fa8257743b438b7f3f6a6fd"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

// TestHashesOfKeysDiffer: keys that differ in anything are two keys, and callers
// that do are two callers: where one part ends and the next begins, letter case,
// blanks, NULs, and each bit of the secret.
func TestHashesOfKeysDiffer(t *testing.T) {
	of := func(namespace, principal, name string) Key {
		return Key{Scope: Scope{Namespace: namespace, Principal: principal}, Name: name}
	}
	length := string(binary.BigEndian.AppendUint64(nil, 1))
	keys := []Key{
		{},
		of("a", "", ""), of("", "a", ""), of("", "", "a"), of("ab", "c", ""), of("a", "bc", ""), of("a", "b", "c"), of("", "ab", "c"),
		of("A", "b", "c"), of("a", "b", "C"), of("a", "b", "c "), of("a", "b", " c"), of("a", "b", "c\x00"), of("a", "b", "é"), of("a", "b", "e\u0301"),
		of("a"+length+"b", "", "c"), of("a", length+"b", "c"), of("a", "b", strings.Repeat("c", 1000)),
	}
	for bit := range 256 {
		k := of("a", "b", "c")
		k.Secret[bit/8] = 1 << (bit % 8)
		keys = append(keys, k)
	}
	ids, scopes := map[ID]Key{}, map[ScopeID]Key{}
	for _, k := range keys {
		id, scope := k.ID(), k.ScopeID()
		if other, twice := ids[id]; twice {
			t.Errorf("%+v and %+v have one ID", k, other)
		}
		if other, twice := scopes[scope]; twice && (k.Scope != other.Scope || k.Secret != other.Secret) {
			t.Errorf("%+v and %+v have one ScopeID", k, other)
		}
		if string(id[:16]) == string(scope[:]) {
			t.Errorf("%+v: the ID begins with the ScopeID", k)
		}
		ids[id], scopes[scope] = k, k
	}
	if got := of("a", "b", "c").ScopeID(); got != of("a", "b", "d").ScopeID() {
		t.Error("two keys of one caller are of two scopes")
	}
}

// TestSecretLooksLikeNoPart: nobody makes the hash of a key with a secret by
// sending the secret's bytes as a part of a key without.
func TestSecretLooksLikeNoPart(t *testing.T) {
	secret := secretOf(1)
	keyed := Key{Name: "n", Secret: secret}
	for _, part := range []string{string(secret[:]), "2\x00" + string(secret[:]), " 2\x00" + string(secret[:])} {
		for _, k := range []Key{
			{Scope: Scope{Namespace: part}, Name: "n"}, {Scope: Scope{Principal: part}, Name: "n"}, {Name: part + "n"}, {Name: part},
		} {
			if k.ID() == keyed.ID() || k.ScopeID() == keyed.ScopeID() {
				t.Errorf("%q has the hash of a key with a secret", k)
			}
		}
	}
}

// FuzzFingerprintIsReadAsItIsWritten, and nothing of another length is read.
func FuzzFingerprintIsReadAsItIsWritten(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, fingerprintSize))
	f.Add(slices.Repeat([]byte{0xa5, 0x01}, fingerprintSize/2))
	f.Fuzz(func(t *testing.T, data []byte) {
		var fp Fingerprint
		if err := fp.UnmarshalBinary(data); (err == nil) != (len(data) == fingerprintSize) {
			t.Fatalf("%d bytes: %v", len(data), err)
		} else if err != nil {
			return
		}
		if again, err := fp.AppendBinary([]byte("x")); err != nil || string(again) != "x"+string(data) {
			t.Errorf("%x was written again as %x, %v", data, again, err)
		}
	})
}

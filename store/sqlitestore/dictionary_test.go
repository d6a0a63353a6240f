package sqlitestore

import (
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"testing"

	"github.com/umavez/umavez"
)

// This file is an attacker: somebody with a copy of the database and of our
// source, who knows what requests look like and tries card numbers. It is
// written from the outside. Of our code it uses what any program may use.

// loot is what the attacker takes from a database.
type loot struct {
	ids, scopes map[string]bool
	sums        map[string]bool
	hints       map[uint32]bool
	hashKeys    [][]byte
}

// loot reads every row of every table. What can be a key, or a hash, is known
// from the schema.
func takeLoot(t *testing.T, path string) *loot {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l := &loot{ids: map[string]bool{}, scopes: map[string]bool{}, sums: map[string]bool{}, hints: map[uint32]bool{}}
	for _, row := range dump(t, db, "umavez_record") {
		l.ids[string(row["id"])] = true
		l.scopes[string(row["scope"])] = true
		var fp umavez.Fingerprint
		if len(row["fingerprint"]) == 0 {
			continue
		}
		if err := fp.UnmarshalBinary(row["fingerprint"]); err != nil {
			t.Fatal(err)
		}
		l.sums[string(fp.Sum[:])] = true
		for _, hint := range fp.Parts {
			if hint != 0 {
				l.hints[hint] = true
			}
		}
	}
	for _, row := range dump(t, db, "umavez_namespace") {
		l.hashKeys = append(l.hashKeys, row["hash_key"])
	}
	if len(l.ids) == 0 || len(l.sums) == 0 || len(l.hashKeys) == 0 {
		t.Fatalf("there is nothing to attack in %s", path)
	}
	return l
}

// dump reads a table, its values as bytes.
func dump(t *testing.T, db *sql.DB, table string) (found []map[string][]byte) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]sql.RawBytes, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := map[string][]byte{}
		for i, name := range columns {
			row[name] = append([]byte(nil), values[i]...)
		}
		found = append(found, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// keys are all keys of 32 bytes that can be made of what lies in the database:
// none, and each hash key as it lies there, or some part of it.
func (l *loot) keys() (keys [][32]byte) {
	seen := map[[32]byte]bool{}
	add := func(b []byte) {
		if len(b) == 32 && !seen[[32]byte(b)] {
			seen[[32]byte(b)] = true
			keys = append(keys, [32]byte(b))
		}
	}
	add(make([]byte, 32))
	for _, k := range l.hashKeys {
		hashed := sha256.Sum256(k)
		add(hashed[:])
		if len(k) < 32 {
			continue
		}
		add(k[:32])
		add(k[len(k)-32:])
		if text := len(k) - 32 - 16; text >= 0 {
			add(k[text : text+32]) // the text of what is sealed, in front of its tag
		}
	}
	return keys
}

// attacker tries one key.
type attacker struct {
	key  [32]byte
	mac  func(msg []byte) []byte
	sip  [2]uint64
	msg  []byte
	body []byte
}

func newAttacker(key [32]byte) *attacker {
	derive := func(purpose string) []byte {
		mac := hmac.New(sha256.New, key[:])
		mac.Write([]byte(purpose))
		return mac.Sum(nil)
	}
	request := hmac.New(sha256.New, derive("umavez request 1"))
	hints := derive("umavez hints 1")
	sum := make([]byte, 0, sha256.Size)
	return &attacker{
		key: key,
		mac: func(msg []byte) []byte {
			request.Reset()
			request.Write(msg)
			return request.Sum(sum[:0])
		},
		sip: [2]uint64{binary.LittleEndian.Uint64(hints), binary.LittleEndian.Uint64(hints[8:])},
	}
}

// try returns the ways in which a card number shows in the loot.
func (a *attacker) try(l *loot, card string) (ways []string) {
	// The request, as it is hashed: its parts, each with its length in front.
	a.body = append(a.body[:0], "j\x00\x00"+`{"cartao":"`...)
	a.body = append(append(a.body, card...), `","valor":1050}`...)
	a.msg = a.msg[:0]
	for _, part := range []string{"POST", "/pagamentos", "", "application/json"} {
		a.msg = append(append(a.msg, byte(len(part))), part...)
	}
	a.msg = append(append(a.msg, byte(len(a.body))), a.body...)
	a.msg = append(a.msg, 0, 0)
	if l.sums[string(a.mac(a.msg))] {
		ways = append(ways, "fingerprint")
	}
	if l.hints[uint32(sipHash(a.sip, a.body))] {
		ways = append(ways, "hint")
	}
	// A key, or a caller, that is a card number.
	k := umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: sealedPrincipal}, Name: card, Secret: a.key}
	if id := k.ID(); l.ids[string(id[:])] {
		ways = append(ways, "id")
	}
	k.Scope.Principal = card
	if scope := k.ScopeID(); l.scopes[string(scope[:])] {
		ways = append(ways, "scope")
	}
	return ways
}

// attack tries card numbers from a first one on, and returns in which ways the
// victim's card was found. (A hint has 32 bits: over many candidates some hit by
// chance. What counts is whether the attacker finds the true one.)
func attack(t *testing.T, path, first, victim string, candidates int) map[string]bool {
	t.Helper()
	l := takeLoot(t, path)
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	found, tried := map[string]bool{}, false
	for _, key := range l.keys() {
		a := newAttacker(key)
		for i := range int64(candidates) {
			card := strconv.FormatInt(from+i, 10)
			ways := a.try(l, card)
			if card == victim {
				tried = true
				for _, way := range ways {
					found[way] = true
				}
			}
		}
	}
	if !tried {
		t.Fatal("the victim's card is not in the dictionary")
	}
	return found
}

// TestDictionary: with a ring, a dictionary of card numbers finds none by what is
// stored; without one, the same attack finds the card in every way. It tries
// 100,000 numbers, or as many as UMAVEZ_DICTIONARY says.
func TestDictionary(t *testing.T) {
	t.Parallel()
	candidates := 100_000
	if n := os.Getenv("UMAVEZ_DICTIONARY"); n != "" {
		var err error
		if candidates, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	first, err := strconv.ParseInt(sealedCard, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	from := strconv.FormatInt(first-int64(candidates)/2, 10)
	open := file(t)
	runPayments(t, open, nil)
	if found := attack(t, open, from, sealedCard, candidates); len(found) != 4 {
		t.Fatalf("without a ring the card is found by %v, want by fingerprint, hint, id and scope: the attack is none", found)
	}
	closed := file(t)
	runPayments(t, closed, newRings(t)("a"))
	if found := attack(t, closed, from, sealedCard, candidates); len(found) != 0 {
		t.Errorf("with a ring the card is found by %v", found)
	}
	t.Log(fmt.Sprint(candidates, " candidates"))
}

// sipHash is SipHash-2-4, as its paper has it.
func sipHash(key [2]uint64, b []byte) uint64 {
	v := [4]uint64{
		key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573,
	}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v[3] ^= m
		rounds(2)
		v[0] ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v[3] ^= last
	rounds(2)
	v[0] ^= last
	v[2] ^= 0xff
	rounds(4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

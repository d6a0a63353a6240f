package storetest

import (
	"strings"

	"github.com/umavez/umavez"
)

// keyRules let keys that look alike be told apart.
var keyRules = []rule{
	{
		name:  "key/distinct keys never meet",
		why:   "keys are bytes: two that differ in case, in white space, in how a letter is written, or in where one part ends, are two operations of two callers",
		check: keyNames,
	},
	{
		name: "key/distinct IDs never meet",
		why: "an ID is 32 bytes, any bytes: a store that keeps it as text, folds it, trims it, or cuts it at a zero makes two keys one, " +
			"and one caller gets another's answer",
		check: keyIDs,
	},
}

// alikeKeys are keys of which no two are the same.
func alikeKeys() []umavez.Key {
	names := []string{
		"", " ", "\x00", "key", "Key", "KEY", "key ", " key", "key\t", "key\n", "key\x00", "key\x00\x00", "\x00key",
		"k\u00e9y", "ke\u0301y", "k\xe9y", "\xff", "\xfe", "\ufffd", "ﬁn", "fin", "İ", "i", "ı", "ſ", "s", "ß", "ss",
		"key%20", "key+", `"key"`, "key,", strings.Repeat("k", 64<<10), strings.Repeat("k", 64<<10-1), strings.Repeat("k", 64<<10-1) + "K",
	}
	var keys []umavez.Key
	for _, name := range names {
		keys = append(keys, umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: "ana"}, Name: name})
	}
	// The same letters, with the parts' ends elsewhere.
	for _, parts := range [][3]string{
		{"a", "b", "c"},
		{"ab", "", "c"},
		{"ab", "c", ""},
		{"a", "bc", ""},
		{"abc", "", ""},
		{"", "abc", ""},
		{"", "", "abc"},
		{"", "a", "bc"},
		{"", "ab", "c"},
		{"a", "", "bc"},
		{"", "", ""},
		{"A", "b", "c"},
		{"a ", "b", "c"},
		{"a", "b\x00", "c"},
		{"a", "b", "\x00c"},
	} {
		keys = append(keys, umavez.Key{Scope: umavez.Scope{Namespace: parts[0], Principal: parts[1]}, Name: parts[2]})
	}
	return keys
}

func keyNames(f *fixture) {
	// The suite may run on data that another run has left: a name of its own
	// keeps this one's keys apart, in front of what makes them alike.
	own := umavez.NewAttemptID().String()
	var ids []umavez.ID
	for _, k := range alikeKeys() {
		k.Scope.Namespace = own + k.Scope.Namespace
		ids = append(ids, k.ID())
	}
	f.apart(ids)
}

func keyIDs(f *fixture) {
	own := umavez.NewAttemptID()
	var ids []umavez.ID
	with := func(change func(id *umavez.ID)) {
		var id umavez.ID
		copy(id[:], own[:8])
		for i := 8; i < len(id); i++ {
			id[i] = 'k'
		}
		change(&id)
		ids = append(ids, id)
	}
	with(func(*umavez.ID) {})
	for _, at := range []int{8, 15, 16, 20, 31} { // in the middle, at the end, past half
		for _, b := range []byte{'K', ' ', 0, '\n', '\t', 0x7f, 0x80, 0xe9, 0xc9, 0xfe, 0xff, '%', '_', '\'', '"', '\\', '0', '1'} {
			with(func(id *umavez.ID) { id[at] = b })
		}
	}
	with(func(id *umavez.ID) { id[30], id[31] = 0, 0 })
	with(func(id *umavez.ID) { id[30], id[31] = ' ', ' ' })
	with(func(id *umavez.ID) { id[30], id[31] = '\r', '\n' })
	with(func(id *umavez.ID) { copy(id[8:], "\xc3\xa9") })
	with(func(id *umavez.ID) { copy(id[8:], "e\xcc\x81") })
	with(func(id *umavez.ID) { clear(id[8:]) })
	with(func(id *umavez.ID) { clear(id[9:]) })
	with(func(id *umavez.ID) {
		for i := range id[8:] {
			id[8+i] = 'K'
		}
	})
	f.apart(ids)
}

// apart claims all keys, each under an attempt of its own, then completes all,
// and then reads all: each must have been vacant, and have its own answer.
func (f *fixture) apart(ids []umavez.ID) {
	f.Helper()
	all := make([]held, len(ids))
	for i, id := range ids {
		rec, acquired, err := f.store.Claim(f.Context(), id, f.request(umavez.Opaque))
		if err != nil || !acquired {
			f.Fatalf("key %d, %v, met another one: acquired %v, error %v, record %v", i, id, acquired, err, brief(rec))
		}
		all[i].Lease = umavez.Lease{ID: id, Attempt: rec.Attempt, Fence: rec.Fence}
	}
	for _, h := range all {
		f.answers("complete", f.store.Complete(f.Context(), h.Lease, h.Attempt[:], kept()), nil)
	}
	for i, h := range all {
		if rec := f.get(h.ID); string(rec.Answer) != string(h.Attempt[:]) {
			f.Fatalf("key %d, %v, has the answer of another one: %v", i, h.ID, brief(rec))
		}
	}
}

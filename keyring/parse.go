package keyring

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The text of a ring has a line a key: its id, a colon, and its 32 bytes in
// base64. The first key seals. Empty lines, and lines that begin with #, are
// skipped.
//
//	# since 2026-03
//	2026-03:q8uVYz…=
//	2025-09:0FbBtw…=

// MaxKeys bounds the keys of a ring. Two are enough to change one for another;
// far more is a text that was meant for something else.
const MaxKeys = 64

// Parse makes a ring of its text. Errors name the line and never what stands in
// it: a line that makes no sense may be a key all the same.
func Parse(text []byte, allowPlain bool) (*Ring, error) {
	r := &Ring{plain: allowPlain}
	secrets := map[string]bool{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, secret, err := parseLine(line)
		switch {
		case err != nil:
		case r.find(id) != nil:
			err = fmt.Errorf("the id %q is there twice", id)
		case secrets[string(secret)]:
			err = fmt.Errorf("the key of %q is there already, under another id", id)
		case len(r.keys) == MaxKeys:
			err = fmt.Errorf("more than %d keys", MaxKeys)
		}
		if err != nil {
			return nil, fmt.Errorf("umavez: key ring: line %d: %w", number, err)
		}
		secrets[string(secret)] = true
		k, err := newKey(id, secret)
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, k)
	}
	if len(r.keys) == 0 {
		return nil, errors.New("umavez: key ring: it holds no key; a line is ID:KEY, the key 32 bytes in base64")
	}
	return r, nil
}

func parseLine(line string) (id string, secret []byte, err error) {
	id, encoded, ok := strings.Cut(line, ":")
	if !ok {
		return "", nil, errors.New("there is no colon between an id and a key")
	}
	if err := checkID(id); err != nil {
		return "", nil, err
	}
	// The decoder's own error would quote the key.
	secret, err = base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil:
		return "", nil, errors.New("the key is not in base64")
	case len(secret) != KeySize:
		return "", nil, fmt.Errorf("the key has %d bytes, want %d", len(secret), KeySize)
	case string(secret) == string(make([]byte, KeySize)):
		return "", nil, errors.New("the key is all zeros")
	}
	return id, secret, nil
}

// errID does not quote the id: somebody may have put the key in its place.
var errID = fmt.Errorf("an id has 1 to %d letters, digits, dots, dashes or underscores", MaxID)

func checkID(id string) error {
	if id == "" || len(id) > MaxID {
		return errID
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return errID
		}
	}
	return nil
}

// Generate draws a key and returns its line, to be put into a ring's text. The
// id says which key it is, for operators: its month, say.
func Generate(id string) (string, error) {
	if err := checkID(id); err != nil {
		return "", fmt.Errorf("umavez: key ring: %w", err)
	}
	var secret [KeySize]byte
	rand.Read(secret[:]) // never fails: crypto/rand ends the process instead
	return id + ":" + base64.StdEncoding.EncodeToString(secret[:]), nil
}

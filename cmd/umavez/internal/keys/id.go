package keys

import (
	"encoding/hex"
	"strings"

	"github.com/umavez/umavez"
)

// idOf reads an ID with or without a fence.
func idOf(text string) (umavez.ID, error) {
	if strings.Contains(text, ".") {
		ref, err := refOf(text)
		return ref.ID, err
	}
	id, err := umavez.ParseID(text)
	if err != nil {
		return id, faultf(CodeUsage, "ID %s: %s", text, said(err))
	}
	return id, nil
}

// refOf reads an ID with its fence.
func refOf(text string) (umavez.Ref, error) {
	ref, err := umavez.ParseRef(text)
	if err != nil {
		return ref, faultf(CodeUsage, "ID %s: %s; list and show print it, and the number says what was looked at", text, said(err))
	}
	return ref, nil
}

// unhex fills to with hexadecimal digits, and reports whether they were as many
// as it has room for.
func unhex(to []byte, text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && copy(to, b) == len(to) && len(b) == len(to)
}

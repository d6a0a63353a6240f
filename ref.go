package umavez

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// Ref names a record as somebody has seen it, for people and their scripts: what
// is done by a Ref is refused when the record has moved since.
//
// Its text is the ID's 64 hexadecimal digits in lower case, a full stop, and the
// fence in decimal digits.
type Ref struct {
	ID    ID
	Fence Fence
}

// Ref names the record as it was listed.
func (l *Listed) Ref() Ref { return Ref{ID: l.ID, Fence: l.Fence} }

// String returns the text that [ParseRef] reads.
func (r Ref) String() string { return r.ID.String() + "." + strconv.FormatInt(int64(r.Fence), 10) }

// ParseRef reads the text of a [Ref], and no other spelling of it. Its error says
// what is wrong.
func ParseRef(s string) (Ref, error) {
	name, fence, dotted := strings.Cut(s, ".")
	id, err := ParseID(name)
	if err != nil {
		return Ref{}, err
	}
	if !dotted {
		return Ref{}, errorf("the record's name ends before its fence: want 64 hexadecimal digits, a full stop and a number")
	}
	n, err := strconv.ParseInt(fence, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != fence {
		return Ref{}, errorf("the fence of a record is a number from 1 up, not %.24q", fence)
	}
	return Ref{ID: id, Fence: Fence(n)}, nil
}

// ParseID reads what [ID.String] writes, and no other spelling of it.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, errorf("the ID of a record has %d hexadecimal digits, this one %d: %.80q", 2*len(id), len(s), s)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil || id.String() != s {
		return ID{}, errorf("the ID of a record has hexadecimal digits in lower case only: %q", s)
	}
	return id, nil
}

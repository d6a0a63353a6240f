package umavez

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// place is where in a store a sealed text belongs. It is authenticated with the
// text, which opens nowhere else: not in another record, not in another field or
// step, and not under another claim of the same key.
type place struct {
	id    ID
	field field
	step  string // the step's name; of fieldStep only
	// fence is that of the claim under which it was written. Reading, it is the
	// record's.
	fence Fence
}

// field is a part of a record that is sealed.
type field string

const (
	fieldAnswer  field = "answer"
	fieldLast    field = "last word"
	fieldRequest field = "request" // sealed before there is a fence: it is 0
	fieldStep    field = "step"
)

// String names the place within its record, for errors.
func (p place) String() string {
	if p.field == fieldStep {
		return fmt.Sprintf("step %q", p.step)
	}
	return string(p.field)
}

// data is what is authenticated: a tag, so that it is told apart from all else
// that the same keys seal, and the place. The name, the one part without a fixed
// end, stands last.
func (p place) data(fence Fence) []byte {
	b := make([]byte, 0, 64+len(p.field)+len(p.step))
	b = append(b, "umavez record 1\x00"...)
	b = append(b, p.id[:]...)
	b = append(append(b, p.field...), 0)
	b = binary.BigEndian.AppendUint64(b, uint64(fence))
	return append(b, p.step...)
}

// frameMark begins what is sealed of a record: behind it come the fence under
// which it was written, in 8 bytes, and what the sealer has made. Steps outlive
// the claim under which they were kept, so their fence has to travel with them;
// the others' is there for the sake of one form. Changing it changes the data,
// and nothing opens.
const (
	frameMark = "\xfcuz\x01"
	frameHead = len(frameMark) + 8
)

// plainData is for what lies in the store without a frame, and so in plain.
// Nothing is ever sealed with it.
const plainData = "umavez plain"

func (s *sealedStore) seal(p place, text []byte) ([]byte, error) {
	sealed, err := s.sealer.Seal(text, p.data(p.fence))
	if err != nil {
		return nil, err
	}
	framed := make([]byte, 0, frameHead+len(sealed))
	framed = append(framed, frameMark...)
	framed = binary.BigEndian.AppendUint64(framed, uint64(p.fence))
	return append(framed, sealed...), nil
}

// unframe takes apart what is kept. framed is false of what lies there in plain.
func unframe(kept []byte) (sealed []byte, fence Fence, framed bool) {
	if len(kept) < frameHead || !strings.HasPrefix(string(kept[:len(frameMark)]), frameMark) {
		return kept, 0, false
	}
	return kept[frameHead:], Fence(binary.BigEndian.Uint64(kept[len(frameMark):])), true
}

// IsSealed reports whether what a record holds has the form of what a [Sealer] of
// an engine has sealed. An engine without one hands it out as it is kept; for
// those who tell operators why it says nothing.
func IsSealed(kept []byte) bool {
	_, _, framed := unframe(kept)
	return framed
}

// openOne opens what stands in a place of a record.
func (s *sealedStore) openOne(p place, kept []byte) ([]byte, error) {
	sealed, fence, framed := unframe(kept)
	if !framed {
		return s.sealer.Open(kept, []byte(plainData))
	}
	ok := fence == p.fence
	switch p.field {
	case fieldStep:
		ok = fence <= p.fence // kept under this claim or an earlier one
	case fieldRequest:
		ok = fence == 0
	case fieldAnswer, fieldLast:
	}
	if !ok {
		return nil, errorf("it was sealed under fence %d, and the record has %d", fence, p.fence)
	}
	return s.sealer.Open(sealed, p.data(fence))
}

// open replaces what a record holds by its texts. What cannot be opened is taken
// out, with Unreadable to say so; of a step the name stays.
func (s *sealedStore) open(id ID, rec *Record) {
	opened := func(p place, kept []byte) []byte {
		p.id, p.fence = id, rec.Fence
		text, err := s.openOne(p, kept)
		if err != nil {
			if rec.Unreadable == nil {
				rec.Unreadable = fmt.Errorf("%w: record %v: %v: %w", ErrUnreadable, id, p, err)
			}
			return nil
		}
		return text
	}
	if rec.State == Done {
		rec.Answer = opened(place{field: fieldAnswer}, rec.Answer)
	}
	if rec.Last != nil {
		rec.Last = opened(place{field: fieldLast}, rec.Last)
	}
	if rec.Request != nil {
		rec.Request = opened(place{field: fieldRequest}, rec.Request)
	}
	if len(rec.Steps) == 0 {
		return
	}
	steps := make([]KeptStep, len(rec.Steps)) // the store's own slice stays as it is
	for i, kept := range rec.Steps {
		steps[i] = KeptStep{Name: kept.Name, Result: opened(place{field: fieldStep, step: kept.Name}, kept.Result)}
	}
	rec.Steps = steps
}

// settingsData is what a namespace's hash key is sealed with.
func settingsData(namespace string) []byte { return []byte("umavez settings 1\x00" + namespace) }

package umavezhttp

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// The stored form of an answer, version 1. All numbers are big endian.
//
//	offset  bytes
//	0       1      version: 1
//	1       1      how much is kept (Kept)
//	2       2      status
//	4       4      F, the length of the fields
//	8       4      B, the length of the body
//	12      F      fields
//	12+F    B      body
//	12+F+B  8      check over everything before it: CRC-32C, then CRC-32 (IEEE)
//
// A field is its kind (1 byte), the length of its name (uvarint), its name, the
// number of its values (uvarint), and each value as length (uvarint) and bytes.
// The origin, if there is one, comes first: what it decides about comes after it.
//
// The check is there for a torn write, a bit that fell over, a column that cut
// the value: an answer is whole or absent. Two CRCs of different polynomials
// miss one random damage in 2^64, as a CRC of 64 bits does, and cost a fifth of
// a SHA-256 over a small answer and an eighth over a large one
// (BenchmarkCheck). Neither would keep out somebody who can write to the store.
const (
	answerVersion = 1
	answerHead    = 12
	answerCheck   = 8
)

// The kinds of fields.
const (
	kindField   = 1
	kindTrailer = 2
	kindOrigin  = 3 // without a name, with one value
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkOf is the check over b.
func checkOf(b []byte) uint64 {
	return uint64(crc32.Checksum(b, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(b))
}

// sheet is an answer in parts, on its way into the stored form.
type sheet struct {
	status   int
	kept     Kept
	fields   []field
	trailers []field
	origin   string
	body     []byte // or, while it is being written:
	tape     *tape
}

// encode returns the stored form, in one allocation.
func (s *sheet) encode() []byte { return s.append(make([]byte, 0, s.size())) }

func (s *sheet) size() int { return answerHead + s.fieldsSize() + s.bodySize() + answerCheck }

func (s *sheet) bodySize() int {
	if s.tape != nil {
		return int(s.tape.length)
	}
	return len(s.body)
}

func (s *sheet) fieldsSize() (n int) {
	for i := range s.fields {
		n += s.fields[i].size()
	}
	for i := range s.trailers {
		n += s.trailers[i].size()
	}
	if s.origin != "" {
		origin := field{values: []string{s.origin}}
		n += origin.size()
	}
	return n
}

func (s *sheet) append(b []byte) []byte {
	start := len(b)
	b = append(b, answerVersion, byte(s.kept))
	b = binary.BigEndian.AppendUint16(b, uint16(s.status))
	b = binary.BigEndian.AppendUint32(b, uint32(s.fieldsSize()))
	b = binary.BigEndian.AppendUint32(b, uint32(s.bodySize()))
	if s.origin != "" {
		origin := field{values: []string{s.origin}}
		b = origin.append(b, kindOrigin)
	}
	for i := range s.fields {
		b = s.fields[i].append(b, kindField)
	}
	for i := range s.trailers {
		b = s.trailers[i].append(b, kindTrailer)
	}
	b = append(b, s.body...)
	if s.tape != nil {
		b = s.tape.appendTo(b)
	}
	return binary.BigEndian.AppendUint64(b, checkOf(b[start:]))
}

func (f *field) size() int {
	n := 1 + uvarintSize(len(f.name)) + len(f.name) + uvarintSize(len(f.values))
	for _, v := range f.values {
		n += uvarintSize(len(v)) + len(v)
	}
	return n
}

func (f *field) append(b []byte, kind byte) []byte {
	b = append(b, kind)
	b = appendText(b, f.name)
	b = binary.AppendUvarint(b, uint64(len(f.values)))
	for _, v := range f.values {
		b = appendText(b, v)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// uvarintSize is how many bytes n takes as a uvarint: seven bits in each.
func uvarintSize(n int) int { return (bits.Len(uint(n)|1) + 6) / 7 }

// view is a stored answer, read in place: nothing is copied but the fields, in
// one piece.
type view struct {
	status int
	kept   Kept
	fields string // checked: reading them cannot fail
	values int    // how many values all fields have together
	body   []byte
}

// openAnswer checks a stored answer from end to end.
func openAnswer(b []byte) (view, error) {
	if len(b) < answerHead+answerCheck {
		return view{}, &AnswerError{len(b), "it ends too early"}
	}
	if b[0] != answerVersion {
		return view{}, &AnswerError{0, "unknown version"}
	}
	v := view{status: int(binary.BigEndian.Uint16(b[2:])), kept: Kept(b[1])}
	fields, body := int64(binary.BigEndian.Uint32(b[4:])), int64(binary.BigEndian.Uint32(b[8:]))
	end := answerHead + fields + body
	if end+answerCheck != int64(len(b)) {
		return view{}, &AnswerError{4, "lengths that do not fit"}
	}
	if checkOf(b[:end]) != binary.BigEndian.Uint64(b[end:]) {
		return view{}, &AnswerError{int(end), "the check does not match"}
	}
	switch {
	case v.kept >= keptCount:
		return view{}, &AnswerError{1, "unknown flags"}
	case !possible(v.status, v.kept):
		return view{}, &AnswerError{2, "impossible status"}
	case v.kept != KeptWhole && body > 0:
		return view{}, &AnswerError{answerHead + int(fields), "a body that should not be there"}
	}
	v.fields = string(b[answerHead : answerHead+fields])
	v.body = b[answerHead+fields : end : end]
	return v, v.check()
}

// possible reports whether an answer can have this status. A whole one has no
// status below 200: those are given on the way to an answer.
func possible(status int, kept Kept) bool {
	return 200 <= status && status <= 999 || 100 <= status && status < 200 && kept != KeptWhole
}

// check walks the fields once, so that whoever walks them later need not.
func (v *view) check() error {
	r := v.reader()
	for r.next() {
		v.values += r.count
		switch r.kind {
		case kindField, kindTrailer:
		case kindOrigin:
			if r.name != "" || r.count != 1 {
				r.fail("malformed origin")
			}
		default:
			r.fail("field of unknown kind")
		}
		for range r.count {
			r.value()
		}
	}
	if r.fault != "" {
		return &AnswerError{answerHead + r.at, r.fault}
	}
	return nil
}

func (v *view) reader() fieldReader { return fieldReader{text: v.fields} }

// fieldReader walks over fields: next, then value as often as count says.
type fieldReader struct {
	text  string
	at    int
	fault string

	kind  byte
	name  string
	count int
}

// next goes to the next field. It returns false at the end, and at a fault.
func (r *fieldReader) next() bool {
	if r.fault != "" || r.at == len(r.text) {
		return false
	}
	r.kind = r.text[r.at]
	r.at++
	r.name = r.string()
	r.count = r.number()
	// Each value takes a byte at least: a count beyond that is a fault, and
	// must not make anybody allocate for it.
	if r.count > len(r.text)-r.at {
		r.fail("more values than bytes")
	}
	return r.fault == ""
}

// value returns the field's next value.
func (r *fieldReader) value() string { return r.string() }

func (r *fieldReader) string() string {
	n := r.number()
	if n > len(r.text)-r.at {
		r.fail("text that runs over the end")
		return ""
	}
	s := r.text[r.at : r.at+n]
	r.at += n
	return s
}

// number reads a uvarint. Answers are shorter than 2^31 bytes, so what does not
// fit four full bytes of it is a fault.
func (r *fieldReader) number() (n int) {
	for shift := 0; shift < 28 && r.at < len(r.text) && r.fault == ""; shift += 7 {
		c := r.text[r.at]
		r.at++
		n |= int(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	r.fail("malformed number")
	return 0
}

// fail keeps the first fault and stops the walk.
func (r *fieldReader) fail(fault string) {
	if r.fault == "" {
		r.fault = fault
	}
	r.count = 0
}

package umavezhttp

import (
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
)

// The stored form of a request, version 1. All numbers are big endian.
//
//	offset  bytes
//	0       1      version: 1
//	1       1      flags: 1, the URL has an empty query ("/pay?")
//	2       8      the announced length of the body; all ones: none
//	10      4      F, the length of the fields
//	14      4      B, the length of the body
//	18      F      fields
//	18+F    B      body
//	18+F+B  8      check over everything before it, as that of an answer
//
// Fields are spelled as those of an answer (answer_codec.go), and come in the
// order of their kinds and names, each once, so that equal requests have equal
// bytes. A text that is empty is left out.
const (
	requestVersion = 1
	requestHead    = 18
	requestCheck   = answerCheck

	flagForceQuery = 1
	noLength       = ^uint64(0)
)

// The kinds of a request's fields. Those of header and trailer have as many
// values as there are lines, the others one.
const (
	kindText      = 1
	kindPathValue = 2
	kindRequest   = 3 // of the header
	kindAfter     = 4 // of the trailer
)

// requestSheet is a request in parts, on its way into the stored form.
type requestSheet struct {
	flags  byte
	length int64
	fields []kindedField
	body   []byte
}

type kindedField struct {
	kind byte
	field
}

// sheet takes a request apart.
func (q *Request) sheet() *requestSheet {
	s := &requestSheet{length: q.ContentLength, body: q.Body}
	if q.URL.ForceQuery {
		s.flags = flagForceQuery
	}
	for _, t := range q.texts() {
		if *t.text != "" {
			s.fields = append(s.fields, kindedField{kindText, field{t.name, []string{*t.text}}})
		}
	}
	for name, value := range q.PathValues {
		s.fields = append(s.fields, kindedField{kindPathValue, field{name, []string{value}}})
	}
	for name, values := range q.Header {
		s.fields = append(s.fields, kindedField{kindRequest, field{name, values}})
	}
	for name, values := range q.Trailer {
		s.fields = append(s.fields, kindedField{kindAfter, field{name, values}})
	}
	slices.SortFunc(s.fields, func(a, b kindedField) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind)
		}
		return strings.Compare(a.name, b.name)
	})
	return s
}

func (s *requestSheet) fieldsSize() (n int) {
	for i := range s.fields {
		n += s.fields[i].size()
	}
	return n
}

func (s *requestSheet) size() int {
	return requestHead + s.fieldsSize() + len(s.body) + requestCheck
}

func (s *requestSheet) append(b []byte) []byte {
	start := len(b)
	b = append(b, requestVersion, s.flags)
	b = binary.BigEndian.AppendUint64(b, uint64(s.length)) // -1 is all ones
	b = binary.BigEndian.AppendUint32(b, uint32(s.fieldsSize()))
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.body)))
	for i := range s.fields {
		b = s.fields[i].append(b, s.fields[i].kind)
	}
	b = append(b, s.body...)
	return binary.BigEndian.AppendUint64(b, checkOf(b[start:]))
}

// openRequest reads a stored request from end to end.
func openRequest(b []byte) (Request, error) {
	if len(b) < requestHead+requestCheck {
		return Request{}, &RequestError{len(b), "it ends too early"}
	}
	if b[0] != requestVersion {
		return Request{}, &RequestError{0, "unknown version"}
	}
	fields, body := int64(binary.BigEndian.Uint32(b[10:])), int64(binary.BigEndian.Uint32(b[14:]))
	end := requestHead + fields + body
	if end+requestCheck != int64(len(b)) {
		return Request{}, &RequestError{10, "lengths that do not fit"}
	}
	if checkOf(b[:end]) != binary.BigEndian.Uint64(b[end:]) {
		return Request{}, &RequestError{int(end), "the check does not match"}
	}
	if b[1]&^flagForceQuery != 0 {
		return Request{}, &RequestError{1, "unknown flags"}
	}
	length := binary.BigEndian.Uint64(b[2:])
	if length != noLength && int64(length) < 0 {
		return Request{}, &RequestError{2, "impossible length"}
	}
	q := Request{ContentLength: int64(length), Header: http.Header{}, Body: b[requestHead+fields : end : end]}
	q.URL.ForceQuery = b[1]&flagForceQuery != 0
	r := fieldReader{text: string(b[requestHead : requestHead+fields])}
	q.readFields(&r)
	if r.fault != "" {
		return Request{}, &RequestError{requestHead + r.at, r.fault}
	}
	if q.Method == "" || q.Principal == "" || q.Key == "" {
		return Request{}, &RequestError{requestHead, "no method, principal or key"}
	}
	return q, nil
}

// readFields reads all fields. What is wrong with them is the reader's fault.
func (q *Request) readFields(r *fieldReader) {
	texts := q.texts()
	var lastKind byte
	var lastName string
	for r.next() {
		if r.kind < lastKind || r.kind == lastKind && r.name <= lastName && lastKind != 0 {
			r.fail("a field out of order")
			return
		}
		lastKind, lastName = r.kind, r.name
		values := make([]string, 0, r.count)
		for range r.count {
			values = append(values, r.value())
		}
		single := r.kind == kindText || r.kind == kindPathValue
		if r.fault != "" || single && len(values) != 1 {
			r.fail("a text that is none")
			return
		}
		switch r.kind {
		case kindText:
			i := slices.IndexFunc(texts, func(t requestText) bool { return t.name == r.name })
			if i < 0 || values[0] == "" {
				r.fail("unknown text")
				return
			}
			*texts[i].text = values[0]
		case kindPathValue:
			if q.PathValues == nil {
				q.PathValues = map[string]string{}
			}
			q.PathValues[r.name] = values[0]
		case kindRequest:
			q.Header[r.name] = values
		case kindAfter:
			if q.Trailer == nil {
				q.Trailer = http.Header{}
			}
			q.Trailer[r.name] = values
		default:
			r.fail("field of unknown kind")
			return
		}
	}
}

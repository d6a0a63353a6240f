package umavezhttp

import (
	"fmt"
	"net/http"
	"slices"
)

// Answer is what a record keeps of an HTTP answer, and what every other attempt
// gets. Its binary form (answer_codec.go) is what lies in the store.
type Answer struct {
	// Status is the final status code, 200–999; also 101, of an answer that is
	// not kept whole.
	Status int
	// Header holds the kept fields: names as the operation wrote them, values
	// in order and unsplit. A name without values stands for a field that the
	// operation removed, or kept net/http from adding.
	Header http.Header
	// Body is the body as the operation wrote it. Empty unless Kept is KeptWhole.
	Body []byte
	// Trailer holds the trailer fields, under the names by which a handler of
	// net/http sets them: plain when Header announces them in its Trailer
	// field, and with [http.TrailerPrefix] when not.
	Trailer http.Header
	// Kept says how much of the answer is here.
	Kept Kept
	// Origin is the Origin of the request that got this answer first. It is
	// kept only with [Options].KeepCORS (rule A7).
	Origin string
}

// Kept says how much of an answer a record holds.
type Kept uint8

// How much of an answer is kept.
const (
	// KeptWhole: all of it. Only such an answer is replayed.
	KeptWhole Kept = iota
	// KeptWithoutBody: the operation is done, and its body was not kept: it was
	// over the cap, a stream, a part of something (206, 304, 101), or must not
	// be kept. A retry is told the status and the Location (rule R9).
	KeptWithoutBody
	// NotKeptYet: the answer is going out live and has not ended. A record whose
	// attempt is lost and whose last word says this broke off in the middle.
	NotKeptYet

	keptCount
)

var keptNames = [keptCount]string{"whole", "without body", "not yet"}

// String says how much is kept, in words.
func (k Kept) String() string {
	if k < keptCount {
		return keptNames[k]
	}
	return "invalid"
}

// AnswerError says what is wrong with the stored form of an answer, and where.
type AnswerError struct {
	// At is the offset of the first byte that makes no sense, from 0.
	At int
	// Fault says what is wrong with it.
	Fault string
}

// Error names the fault and the place.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("umavez: stored answer: %s at byte %d", e.Fault, e.At)
}

// AppendBinary appends the stored form of the answer. It refuses what could not
// be read back: a status that is none, or a body with an answer that says it
// has none.
func (a *Answer) AppendBinary(b []byte) ([]byte, error) {
	switch {
	case a.Kept >= keptCount:
		return b, errorf("answer with an invalid Kept: %d", a.Kept)
	case !possible(a.Status, a.Kept):
		return b, errorf("answer that is kept %v, with status %d", a.Kept, a.Status)
	case a.Kept != KeptWhole && len(a.Body) > 0:
		return b, errorf("answer that is kept %v, with a body of %d bytes", a.Kept, len(a.Body))
	}
	s := sheet{
		status: a.Status, kept: a.Kept, origin: a.Origin,
		fields: sortedFields(a.Header), trailers: sortedFields(a.Trailer), body: a.Body,
	}
	return s.append(slices.Grow(b, s.size())), nil
}

// MarshalBinary returns the stored form of the answer.
func (a *Answer) MarshalBinary() ([]byte, error) { return a.AppendBinary(nil) }

// UnmarshalBinary reads the stored form: all of it or, with an [*AnswerError],
// nothing. Body is a part of b, which must not be changed afterwards.
func (a *Answer) UnmarshalBinary(b []byte) error {
	v, err := openAnswer(b)
	if err != nil {
		return err
	}
	*a = Answer{Status: v.status, Kept: v.kept, Body: v.body, Header: http.Header{}}
	for r := v.reader(); r.next(); {
		values := make([]string, 0, r.count)
		for range r.count {
			values = append(values, r.value())
		}
		switch r.kind {
		case kindField:
			a.Header[r.name] = values
		case kindTrailer:
			if a.Trailer == nil {
				a.Trailer = http.Header{}
			}
			a.Trailer[r.name] = values
		case kindOrigin:
			a.Origin = values[0]
		}
	}
	return nil
}

// field is a header or trailer field with all its values.
type field struct {
	name   string
	values []string
}

// sortedFields lists a header by name, so that equal answers have equal bytes.
func sortedFields(h http.Header) []field {
	list := make([]field, 0, len(h))
	for name, values := range h {
		list = append(list, field{name, values})
	}
	sortFields(list)
	return list
}

// sortFields sorts by name. Answers have few fields, for which sorting by
// insertion is the quickest.
func sortFields(list []field) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && list[j].name < list[j-1].name; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

package sqlitestore

import (
	"database/sql/driver"
	"fmt"
)

// scanner reads a row's values one after the other and keeps the first error.
// The tables are STRICT, so that a value of another kind means a damaged file
// or a program that wrote into it.
type scanner struct {
	values []driver.Value
	next   int
	err    error
}

func (s *scanner) note(err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("column %d: %w", s.next, err)
	}
}

func (s *scanner) value() driver.Value {
	v := s.values[s.next]
	s.next++
	return v
}

func (s *scanner) integer() int64 {
	v := s.value()
	n, ok := v.(int64)
	if !ok {
		s.note(fmt.Errorf("%T instead of an integer", v))
	}
	return n
}

// within is an integer of a small range.
func (s *scanner) within(most int64) uint8 {
	n := s.integer()
	if n < 0 || n > most {
		s.note(fmt.Errorf("%d is not between 0 and %d", n, most))
		return 0
	}
	return uint8(n)
}

func (s *scanner) text() string {
	v := s.value()
	t, ok := v.(string)
	if !ok {
		s.note(fmt.Errorf("%T instead of a text", v))
	}
	return t
}

// blob returns nil for NULL, and an empty slice for an empty blob.
func (s *scanner) blob() []byte {
	switch v := s.value().(type) {
	case nil:
		return nil
	case []byte:
		if v == nil {
			return []byte{} // what the driver makes of an empty blob
		}
		return v
	default:
		s.note(fmt.Errorf("%T instead of a blob", v))
		return nil
	}
}

// into copies a blob of exactly dst's length; NULL leaves dst as it is.
func (s *scanner) into(dst []byte) {
	b := s.blob()
	switch {
	case b == nil:
	case len(b) != len(dst):
		s.note(fmt.Errorf("%d bytes instead of %d", len(b), len(dst)))
	default:
		copy(dst, b)
	}
}

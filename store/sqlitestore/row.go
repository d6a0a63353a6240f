package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"

	"github.com/umavez/umavez"
)

// errDamaged: a stored row cannot be read. It is never taken for a vacant key.
var errDamaged = errors.New("umavez: sqlite: the stored record is damaged")

// encode puts a row into dst in the order of columns.
func encode(dst []driver.NamedValue, row *umavez.Row) {
	put := func(i int, v driver.Value) { dst[i].Value = v }
	put(0, int64(row.Phase))
	put(1, int64(row.Policy))
	put(2, boolean(row.Settled))
	put(3, int64(row.Tries))
	put(4, row.Attempt[:])
	put(5, fingerprint(row.Fingerprint))
	put(6, int64(row.Fence))
	put(7, row.Namespace)
	put(8, zeroIsNull((*[16]byte)(&row.Scope)))
	put(9, row.Route)
	put(10, row.Label)
	put(11, string(row.Ended))
	put(12, int64(row.Claimed))
	put(13, int64(row.Since))
	put(14, int64(row.Until))
	put(15, int64(row.Gone))
	put(16, int64(row.HeldUntil))
	put(17, zeroIsNull((*[16]byte)(&row.Holder)))
	put(18, zeroIsNull((*[16]byte)(&row.Overruled)))
	put(19, boolean(row.Contradicted))
	put(20, stepsValue(row))
	put(21, blob(row.Answer))
	put(22, blob(row.Last))
	put(23, blob(row.Request))
}

func stepsValue(row *umavez.Row) driver.Value {
	if len(row.Steps) == 0 {
		return nil
	}
	return encodeSteps(row.Steps)
}

// zeroIsNull keeps a name that is not there in one byte instead of seventeen.
func zeroIsNull(name *[16]byte) driver.Value {
	if *name == ([16]byte{}) {
		return nil
	}
	return name[:]
}

// blob keeps nil and empty apart: NULL, and a blob without bytes.
func blob(b []byte) driver.Value {
	if b == nil {
		return nil
	}
	return b
}

func boolean(b bool) driver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}

func fingerprint(f umavez.Fingerprint) driver.Value {
	if f == (umavez.Fingerprint{}) {
		return nil
	}
	b, _ := f.AppendBinary(nil) // has no error to give
	return b
}

// due is when purging has something to do with the row: forget the answer, or
// drop the row. NULL for a running one: it never goes.
func due(row *umavez.Row) driver.Value {
	switch {
	case row.Phase == umavez.PhaseVacant, row.Phase == umavez.PhaseDone && row.Answer != nil:
		return int64(row.Until)
	case row.Phase == umavez.PhaseDone:
		return int64(max(row.Until, row.Gone))
	}
	return nil
}

// decode reads a row from values in the order of columns: of all of them, or of
// those that a list reads.
func decode(v []driver.Value) (umavez.Row, error) {
	var row umavez.Row
	s := scanner{values: v}
	row.Phase = umavez.Phase(s.within(int64(umavez.PhaseDone)))
	row.Policy = umavez.Policy(s.within(math.MaxUint8))
	row.Settled = s.integer() != 0
	row.Tries = int32(s.integer())
	s.into(row.Attempt[:])
	if b := s.blob(); b != nil {
		s.note(row.Fingerprint.UnmarshalBinary(b))
	}
	row.Fence = umavez.Fence(s.integer())
	row.Namespace = s.text()
	s.into(row.Scope[:])
	row.Route = s.text()
	row.Label = s.text()
	row.Ended = umavez.Reason(s.text())
	row.Claimed = umavez.Instant(s.integer())
	row.Since = umavez.Instant(s.integer())
	row.Until = umavez.Instant(s.integer())
	row.Gone = umavez.Instant(s.integer())
	row.HeldUntil = umavez.Instant(s.integer())
	s.into(row.Holder[:])
	s.into(row.Overruled[:])
	row.Contradicted = s.integer() != 0
	if b := s.blob(); b != nil {
		var err error
		row.Steps, err = decodeSteps(b)
		s.note(err)
	}
	if s.next < len(v) {
		row.Answer, row.Last, row.Request = s.blob(), s.blob(), s.blob()
	}
	if s.err != nil {
		return umavez.Row{}, fmt.Errorf("%w: %w", errDamaged, s.err)
	}
	return row, nil
}

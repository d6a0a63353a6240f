package memstore

import (
	"reflect"
	"testing"

	"github.com/umavez/umavez"
)

func equalRows(a, b umavez.Row) bool { return reflect.DeepEqual(a, b) }

// TestResidentKnowsEveryField fails when umavez.Row gets a field that resident
// does not keep: each field is set alone, and must come back.
func TestResidentKnowsEveryField(t *testing.T) {
	kind := reflect.TypeFor[umavez.Row]()
	for i := range kind.NumField() {
		var row umavez.Row
		set(reflect.ValueOf(&row).Elem().Field(i))
		var r resident
		r.set(row)
		if got := r.row(); !equalRows(got, row) {
			t.Errorf("Row.%s is not kept", kind.Field(i).Name)
		}
	}
}

// set gives a field a value that is not its zero value.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(1)
	case reflect.Array:
		set(v.Index(0))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			set(v.Field(i))
		}
	default:
		panic("a Row has a field of a kind that this test does not know: " + v.Type().String())
	}
}

// TestResidentKeepsRows: nothing of a row is lost by the form that it has in memory.
func TestResidentKeepsRows(t *testing.T) {
	full := umavez.Row{
		Phase: umavez.PhaseRunning, Policy: umavez.Stepped, Settled: true, Tries: 3,
		Attempt: umavez.NewAttemptID(), Fence: 4, Route: "r", Ended: umavez.ReasonReset,
		Fingerprint: umavez.Fingerprint{Recipe: 1, Sum: [32]byte{2}, Parts: [umavez.FingerprintParts]uint32{3}},
		Claimed:     5, Since: 6, Until: 7, Gone: 8,
		Steps: []umavez.KeptStep{{Name: "s", Result: []byte("x")}}, Answer: []byte("a"), Last: []byte("l"), Request: []byte("q"),
		Holder: umavez.NewAttemptID(), HeldUntil: 9,
	}
	bare := full
	bare.Ended, bare.Steps, bare.Last, bare.Request = "", nil, nil, nil
	bare.Holder, bare.HeldUntil = umavez.AttemptID{}, 0
	r := &resident{}
	for _, row := range []umavez.Row{full, bare, {}, full} {
		r.set(row)
		if got := r.row(); !equalRows(got, row) {
			t.Errorf("%+v came back as %+v", row, got)
		}
	}
	if r.set(bare); r.rare != nil {
		t.Error("a row without rare fields takes room for them")
	}
}

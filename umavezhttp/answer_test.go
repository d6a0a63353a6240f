package umavezhttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// sampleAnswers are answers of every kind.
func sampleAnswers() []Answer {
	return []Answer{
		{Status: 201, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/pagamentos/42"}}, Body: []byte(`{"id":"42"}`)},
		{Status: 204, Header: http.Header{}},
		{Status: 200, Header: http.Header{"X-Two": {"a, b", "c"}, "Gone": {}, "X-Empty": {""}}, Body: bytes.Repeat([]byte("x"), 300)},
		{Status: 200, Header: http.Header{"Trailer": {"X-Sum"}}, Body: []byte{0, 255}, Trailer: http.Header{"X-Sum": {"1"}, "Trailer:X-More": {"2"}}},
		{Status: 202, Header: http.Header{"Location": {"/x"}}, Kept: NotKeptYet},
		{Status: 101, Header: http.Header{}, Kept: KeptWithoutBody},
		{Status: 999, Header: http.Header{"Access-Control-Allow-Origin": {"https://loja.example"}}, Origin: "https://loja.example"},
		{Status: 200, Header: http.Header{"Content-Type": {}}, Body: []byte("no type")},
	}
}

func mustMarshal(t testing.TB, a Answer) []byte {
	t.Helper()
	b, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnswerComesBackAsItWas(t *testing.T) {
	for _, a := range sampleAnswers() {
		b := mustMarshal(t, a)
		var got Answer
		if err := got.UnmarshalBinary(b); err != nil {
			t.Errorf("%+v: %v", a, err)
			continue
		}
		if !sameAnswer(a, got) {
			t.Errorf("in:  %+v\nout: %+v", a, got)
		}
		if again := mustMarshal(t, got); !bytes.Equal(again, b) {
			t.Errorf("%+v: equal answers have different bytes", a)
		}
		if grown, err := a.AppendBinary([]byte("before")); err != nil || !bytes.Equal(grown, append([]byte("before"), b...)) {
			t.Errorf("AppendBinary: %v", err)
		}
	}
}

func sameAnswer(a, b Answer) bool {
	if len(a.Body) == 0 && len(b.Body) == 0 {
		a.Body, b.Body = nil, nil
	}
	if len(a.Header) == 0 && len(b.Header) == 0 {
		a.Header, b.Header = nil, nil
	}
	if len(a.Trailer) == 0 && len(b.Trailer) == 0 {
		a.Trailer, b.Trailer = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// TestAnswerFormat pins the bytes: records outlive the process that wrote them.
func TestAnswerFormat(t *testing.T) {
	a := Answer{
		Status: 201, Header: http.Header{"Location": {"/42"}, "B": {"1", "2"}}, Body: []byte("body"),
		Trailer: http.Header{"T": {"x"}}, Origin: "o",
	}
	want := "\x01\x00\x00\xc9" + "\x00\x00\x00\x22" + "\x00\x00\x00\x04" +
		"\x03\x00\x01\x01o" +
		"\x01\x01B\x02\x011\x012" +
		"\x01\x08Location\x01\x03/42" +
		"\x02\x01T\x01\x01x" +
		"body" +
		"\xa9\xb8\x92\x7a\xf9\x2b\xa0\x7f"
	if got := mustMarshal(t, a); string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAnswerRefusesWhatCannotBeReadBack(t *testing.T) {
	for _, a := range []Answer{
		{Status: 0},
		{Status: 99, Kept: KeptWithoutBody},
		{Status: 1000},
		{Status: 101},
		{Status: 200, Kept: 3},
		{Status: 200, Kept: KeptWithoutBody, Body: []byte("x")},
		{Status: 200, Kept: NotKeptYet, Body: []byte("x")},
	} {
		if _, err := a.MarshalBinary(); err == nil {
			t.Errorf("took %+v", a)
		}
	}
}

// TestI11_WholeOrAbsent: no cut and no flipped bit gives an answer.
func TestI11_WholeOrAbsent(t *testing.T) {
	for _, a := range sampleAnswers() {
		b := mustMarshal(t, a)
		for n := range b {
			mustNotOpen(t, b[:n])
		}
		mustNotOpen(t, append(bytes.Clone(b), 0))
		for bit := range 8 * len(b) {
			flipped := bytes.Clone(b)
			flipped[bit/8] ^= 1 << (bit % 8)
			mustNotOpen(t, flipped)
		}
	}
}

func mustNotOpen(t *testing.T, b []byte) {
	t.Helper()
	var a Answer
	err := a.UnmarshalBinary(b)
	if _, ok := errors.AsType[*AnswerError](err); !ok {
		t.Fatalf("%q: %+v, %v", b, a, err)
	}
	if !reflect.DeepEqual(a, Answer{}) {
		t.Fatalf("%q: left %+v behind", b, a)
	}
}

// TestAnswerErrorNamesThePlace: an operator can look there.
func TestAnswerErrorNamesThePlace(t *testing.T) {
	const head = "\x01\x00\x00\xc9"
	for want, b := range map[string]string{
		"it ends too early at byte 3":                head[:3],
		"unknown version at byte 0":                  "\x02" + strings.Repeat("\x00", 30),
		"lengths that do not fit at byte 4":          head + "\x00\x00\x00\x01\x00\x00\x00\x00" + "12345678",
		"the check does not match at byte 12":        head + "\x00\x00\x00\x00\x00\x00\x00\x00" + "12345678",
		"unknown flags at byte 1":                    checked("\x01\x04\x00\xc9", "", ""),
		"impossible status at byte 2":                checked("\x01\x00\x00\x63", "", ""),
		"a body that should not be there at byte 12": checked("\x01\x01\x00\xc9", "", "x"),
		"field of unknown kind at byte 15":           checked(head, "\x04\x00\x00", ""),
		"malformed origin at byte 15":                checked(head, "\x03\x00\x00", ""),
		"malformed number at byte 13":                checked(head, "\x01", ""),
		"malformed number at byte 17":                checked(head, "\x01\xff\xff\xff\xff\x01", ""),
		"text that runs over the end at byte 14":     checked(head, "\x01\x05", ""),
		"more values than bytes at byte 15":          checked(head, "\x01\x00\x7f", ""),
		"text that runs over the end at byte 17":     checked(head, "\x01\x01B\x01\x09", ""),
		"more values than bytes at byte 18":          checked(head, "\x01\x00\xff\xff\xff\x3f", ""),
	} {
		var a Answer
		if err := a.UnmarshalBinary([]byte(b)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want … %s", b, err, want)
		}
	}
}

// checked gives made-up bytes lengths and a check that fit.
func checked(head, fields, body string) string {
	b := []byte(head)
	b = binary.BigEndian.AppendUint32(b, uint32(len(fields)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = append(append(b, fields...), body...)
	return string(binary.BigEndian.AppendUint64(b, checkOf(b)))
}

// FuzzAnswer feeds the decoder what it never wrote: fields and a body at will,
// under lengths and a check that fit. Whatever it takes must come back the same
// after another round; and no damage of it may be taken.
func FuzzAnswer(f *testing.F) {
	for _, a := range sampleAnswers() {
		b := mustMarshal(f, a)
		n := binary.BigEndian.Uint32(b[4:])
		f.Add(b[:4], b[answerHead:answerHead+n], b[answerHead+n:len(b)-answerCheck], uint32(17))
	}
	f.Add([]byte("\x01\x00\x00\xc9"), []byte("\x01\x00\xff\xff\xff\x3f"), []byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, head, fields, body []byte, damage uint32) {
		if len(head) != 4 {
			return
		}
		b := []byte(checked(string(head), string(fields), string(body)))
		var a, again Answer
		err := a.UnmarshalBinary(b)
		if err != nil {
			if at, ok := errors.AsType[*AnswerError](err); !ok || at.At < 0 || at.At > len(b) {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		if err := again.UnmarshalBinary(mustMarshal(t, a)); err != nil || !sameAnswer(a, again) {
			t.Fatalf("first  %+v\nsecond %+v, %v", a, again, err)
		}
		b[int(damage/8)%len(b)] ^= 1 << (damage % 8)
		if err := again.UnmarshalBinary(b); err == nil {
			t.Fatalf("took a flipped bit: %q", b)
		}
	})
}

// BenchmarkCheck is why the check is what it is.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{250, 4 << 10, 1 << 20} {
		data := make([]byte, size)
		b.Run(fmt.Sprint("two-crcs/", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				checkOf(data)
			}
		})
		b.Run(fmt.Sprint("sha256/", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				sha256.Sum256(data)
			}
		})
	}
}

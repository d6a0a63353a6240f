package umavezhttp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// sampleRequests are requests of every kind, as they come back.
func sampleRequests() []Request {
	return []Request{
		{
			Method: "POST", Target: "/pagamentos/7?moeda=BRL", Host: "loja.example", Proto: "HTTP/1.1",
			URL: url.URL{Path: "/pagamentos/7", RawQuery: "moeda=BRL"}, RemoteAddr: "192.0.2.1:4242",
			Pattern: "POST /pagamentos/{id}", PathValues: map[string]string{"id": "7"},
			Header:        http.Header{"Content-Type": {"application/json"}, "X-Two": {"a, b", "c"}, "X-Empty": {""}},
			ContentLength: 14, Body: []byte(`{"valor":1990}`), Principal: "3:jwt,4:acme,", Key: "pedido-42",
		},
		{
			Method: "PATCH", Target: "http://loja.example/a%2Fb?", Proto: "HTTP/2.0", ContentLength: -1,
			URL:    url.URL{Scheme: "http", Host: "loja.example", Path: "/a/b", RawPath: "/a%2Fb", ForceQuery: true},
			Header: http.Header{}, Body: []byte{0, 255, 0}, Trailer: http.Header{"X-Sum": {"1"}},
			Pattern: "/{rest...}", PathValues: map[string]string{"rest": ""}, Principal: "p", Key: `k"\`,
		},
		{Method: "POST", Header: http.Header{}, Principal: "p", Key: "k"},
	}
}

func mustMarshalRequest(t testing.TB, q Request) []byte {
	t.Helper()
	b, err := q.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sameRequest(a, b Request) bool {
	if len(a.Body) == 0 && len(b.Body) == 0 {
		a.Body, b.Body = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func TestRequestComesBackAsItWas(t *testing.T) {
	for _, q := range sampleRequests() {
		b := mustMarshalRequest(t, q)
		var got Request
		if err := got.UnmarshalBinary(b); err != nil || !sameRequest(q, got) {
			t.Errorf("in:  %+v\nout: %+v, %v", q, got, err)
			continue
		}
		if again := mustMarshalRequest(t, got); !bytes.Equal(again, b) {
			t.Errorf("%+v: equal requests have different bytes", q)
		}
		if grown, err := q.AppendBinary([]byte("before")); err != nil || !bytes.Equal(grown, append([]byte("before"), b...)) {
			t.Errorf("AppendBinary: %v", err)
		}
	}
}

// TestRequestKeepsEveryText: a field that somebody adds to Request and forgets in
// its stored form would be lost to whoever completes the operation.
func TestRequestKeepsEveryText(t *testing.T) {
	var q Request
	v := reflect.ValueOf(&q).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String {
			f.SetString("text of " + v.Type().Field(i).Name)
		}
	}
	q.Header = http.Header{}
	var got Request
	if err := got.UnmarshalBinary(mustMarshalRequest(t, q)); err != nil || !sameRequest(q, got) {
		t.Errorf("in:  %+v\nout: %+v, %v", q, got, err)
	}
}

// TestRequestFormat pins the bytes: records outlive the process that wrote them.
func TestRequestFormat(t *testing.T) {
	q := Request{
		Method: "POST", URL: url.URL{Path: "/p", ForceQuery: true}, PathValues: map[string]string{"id": "7"},
		Header: http.Header{"B": {"1", "2"}}, Trailer: http.Header{"T": {"x"}},
		ContentLength: -1, Body: []byte("body"), Principal: "a", Key: "k",
	}
	want := "\x01\x01" + "\xff\xff\xff\xff\xff\xff\xff\xff" + "\x00\x00\x00\x43" + "\x00\x00\x00\x04" +
		"\x01\x03key\x01\x01k" +
		"\x01\x06method\x01\x04POST" +
		"\x01\x04path\x01\x02/p" +
		"\x01\x09principal\x01\x01a" +
		"\x02\x02id\x01\x017" +
		"\x03\x01B\x02\x011\x012" +
		"\x04\x01T\x01\x01x" +
		"body"
	got := mustMarshalRequest(t, q)
	if len(got) != len(want)+8 || string(got[:len(want)]) != want || binary.BigEndian.Uint64(got[len(want):]) != checkOf([]byte(want)) {
		t.Errorf("got  %q\nwant %q and a check", got, want)
	}
}

func TestRequestRefusesWhatCannotBeMatched(t *testing.T) {
	for _, q := range []Request{
		{Principal: "p", Key: "k"},
		{Method: "POST", Key: "k"},
		{Method: "POST", Principal: "p"},
		{Method: "POST", Principal: "p", Key: "k", ContentLength: -2},
	} {
		if _, err := q.MarshalBinary(); err == nil {
			t.Errorf("took %+v", q)
		}
	}
}

// TestRequestWholeOrAbsent: no cut and no flipped bit gives a request.
func TestRequestWholeOrAbsent(t *testing.T) {
	for _, q := range sampleRequests() {
		b := mustMarshalRequest(t, q)
		for n := range b {
			mustNotOpenRequest(t, b[:n])
		}
		mustNotOpenRequest(t, append(bytes.Clone(b), 0))
		for bit := range 8 * len(b) {
			flipped := bytes.Clone(b)
			flipped[bit/8] ^= 1 << (bit % 8)
			mustNotOpenRequest(t, flipped)
		}
	}
}

func mustNotOpenRequest(t *testing.T, b []byte) {
	t.Helper()
	var q Request
	err := q.UnmarshalBinary(b)
	if _, ok := errors.AsType[*RequestError](err); !ok || !reflect.DeepEqual(q, Request{}) {
		t.Fatalf("%q: left %+v behind, %v", b, q, err)
	}
}

// TestRequestErrorNamesThePlace: an operator can look there.
func TestRequestErrorNamesThePlace(t *testing.T) {
	const (
		head = "\x01\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"
		key  = "\x01\x03key\x01\x01k"
	)
	for want, b := range map[string]string{
		"it ends too early at byte 3":            head[:3],
		"unknown version at byte 0":              checked("\x02"+head[1:], "", ""),
		"lengths that do not fit at byte 10":     head + "\x00\x00\x00\x01\x00\x00\x00\x00" + "12345678",
		"the check does not match at byte 18":    head + "\x00\x00\x00\x00\x00\x00\x00\x00" + "12345678",
		"unknown flags at byte 1":                checked("\x01\x02"+head[2:], "", ""),
		"impossible length at byte 2":            checked("\x01\x00\xff"+head[3:], "", ""),
		"no method, principal or key at byte 18": checked(head, key, ""),
		"field of unknown kind at byte 21":       checked(head, "\x05\x00\x00", ""),
		"unknown text at byte 24":                checked(head, "\x01\x01x\x01\x01y", ""),
		"a field out of order at byte 33":        checked(head, key+"\x01\x04host\x01\x01h", ""),
		"a text that is none at byte 24":         checked(head, "\x01\x03key\x00", ""),
		"text that runs over the end at byte 20": checked(head, "\x03\x05", ""),
		"more values than bytes at byte 24":      checked(head, "\x03\x00\xff\xff\xff\x3f", ""),
	} {
		var q Request
		if err := q.UnmarshalBinary([]byte(b)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want … %s", b, err, want)
		}
	}
}

// FuzzRequest feeds the decoder what it never wrote: fields and a body at will,
// under lengths and a check that fit. Whatever it takes must come back the same
// after another round; and no damage of it may be taken.
func FuzzRequest(f *testing.F) {
	for _, q := range sampleRequests() {
		b := mustMarshalRequest(f, q)
		n := binary.BigEndian.Uint32(b[10:])
		f.Add(b[:10], b[requestHead:requestHead+n], b[requestHead+n:len(b)-requestCheck], uint32(17))
	}
	f.Fuzz(func(t *testing.T, head, fields, body []byte, damage uint32) {
		if len(head) != 10 {
			return
		}
		b := []byte(checked(string(head), string(fields), string(body)))
		var q, again Request
		err := q.UnmarshalBinary(b)
		if err != nil {
			if at, ok := errors.AsType[*RequestError](err); !ok || at.At < 0 || at.At > len(b) {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		if err := again.UnmarshalBinary(mustMarshalRequest(t, q)); err != nil || !sameRequest(q, again) {
			t.Fatalf("first  %+v\nsecond %+v, %v", q, again, err)
		}
		b[int(damage/8)%len(b)] ^= 1 << (damage % 8)
		if err := again.UnmarshalBinary(b); err == nil {
			t.Fatalf("took a flipped bit: %q", b)
		}
	})
}

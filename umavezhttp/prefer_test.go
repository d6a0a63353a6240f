package umavezhttp

import (
	"net/http"
	"testing"
	"time"
)

func TestR2_Prefer(t *testing.T) {
	const most = 30 * time.Second
	for _, c := range []struct {
		lines []string
		want  time.Duration
		ok    bool
	}{
		{nil, 0, false},
		{[]string{""}, 0, false},
		{[]string{"wait=10"}, 10 * time.Second, true},
		{[]string{"wait=0"}, 0, true},
		{[]string{"WAIT = 7 "}, 7 * time.Second, true},
		{[]string{`wait="7"`}, 7 * time.Second, true},
		{[]string{"wait=10;foo=bar"}, 10 * time.Second, true},
		{[]string{"respond-async, wait=10"}, 10 * time.Second, true},
		{[]string{"respond-async", "wait=10"}, 10 * time.Second, true},
		{[]string{`foo="a,wait=1;b\",wait=2", wait=3`}, 3 * time.Second, true},
		{[]string{"wait=31"}, most, true},
		{[]string{"wait=99999999999999999999999999999999999"}, most, true},
		{[]string{"wait=3, wait=9"}, 3 * time.Second, true},
		{[]string{"wait=x, wait=9"}, 0, false}, // the first one counts, and is none
		{[]string{"wait"}, 0, false},
		{[]string{"wait="}, 0, false},
		{[]string{`wait=""`}, 0, false},
		{[]string{`wait="`}, 0, false},
		{[]string{"wait=-1"}, 0, false},
		{[]string{"wait=1.5"}, 0, false},
		{[]string{"waiting=1"}, 0, false},
		{[]string{"foo;wait=1"}, 0, false},
		{[]string{",,;,wait=2,"}, 2 * time.Second, true},
	} {
		got, ok := preferredWait(http.Header{"Prefer": c.lines}, most)
		if got != c.want || ok != c.ok {
			t.Errorf("%q: %v, %v; want %v, %v", c.lines, got, ok, c.want, c.ok)
		}
	}
}

// FuzzPrefer: whatever a client sends, it waits no longer than it may.
func FuzzPrefer(f *testing.F) {
	f.Add(`foo="a\"b", wait=10;x`)
	f.Add("wait=999999999999999999999")
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := preferredWait(http.Header{"Prefer": {line}}, time.Minute)
		if got < 0 || got > time.Minute || !ok && got != 0 {
			t.Errorf("%q: %v, %v", line, got, ok)
		}
	})
}

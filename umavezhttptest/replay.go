package umavezhttptest

import (
	"bytes"
	"net/http"
	"slices"
	"sync"

	"github.com/umavez/umavez/umavezhttp"
)

// Replay sends a request through h, and then again, and fails the test unless
// the second answer is a replay of the first one: marked as one, with the same
// status, the same body byte by byte, and every header of it the first one's. It
// returns the first answer.
//
// A request without an Idempotency-Key gets one that nobody has used.
func Replay(t T, h http.Handler, r *http.Request) umavezhttp.Answer {
	t.Helper()
	tpl := newTemplate(t, r)
	first := tpl.send(h)
	if replayed(first) {
		t.Fatalf("umavezhttptest: the first answer is a replay already (%d): has the key %q been used before?",
			first.Status, tpl.request.Header.Get(keyHeader))
	}
	mustReplay(t, first, tpl.send(h))
	return first
}

// Race sends a request n times at once, and fails the test unless exactly one
// answer is the operation's and all the others are replays of it. It returns the
// first one. The others wait for it as long as the service lets them: by default
// 5 s, and at most 128 of them.
func Race(t T, h http.Handler, r *http.Request, n int) umavezhttp.Answer {
	t.Helper()
	tpl := newTemplate(t, r)
	answers := make([]umavezhttp.Answer, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { answers[i] = tpl.send(h) })
	}
	group.Wait()
	i := slices.IndexFunc(answers, func(a umavezhttp.Answer) bool { return !replayed(a) })
	if i < 0 {
		t.Fatalf("umavezhttptest: all %d answers are replays: has the key been used before?", n)
	}
	first := answers[i]
	for j, a := range answers {
		if j != i {
			mustReplay(t, first, a)
		}
	}
	return first
}

// replayed reports whether an answer says that it comes from the record.
func replayed(a umavezhttp.Answer) bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// mustReplay fails the test unless an answer is a replay of the first one.
func mustReplay(t T, first, again umavezhttp.Answer) {
	t.Helper()
	switch {
	case !replayed(again):
		t.Fatalf("umavezhttptest: not a replay: %d %q\nthe first answer was %d %q",
			again.Status, again.Body, first.Status, first.Body)
	case again.Status != first.Status:
		t.Fatalf("umavezhttptest: replayed with status %d, first %d", again.Status, first.Status)
	case !bytes.Equal(again.Body, first.Body):
		t.Fatalf("umavezhttptest: replayed body:\n%q\nfirst body:\n%q", again.Body, first.Body)
	}
	// The first answer may have more headers: those that are never stored. What
	// the replay has must be the first one's.
	for name, values := range again.Header {
		if want := first.Header[name]; !ownHeader(name) && !slices.Equal(values, want) {
			t.Fatalf("umavezhttptest: replayed header %s: %q, first %q", name, values, want)
		}
	}
}

// ownHeader reports whether a header is about the request or the moment, so that
// it may differ from answer to answer.
func ownHeader(name string) bool {
	switch name {
	case keyHeader, "Idempotent-Replayed", "Idempotency-Status", "Preference-Applied", "Date":
		return true
	}
	return false
}

package umavezhttp

import (
	"io"
	"net/http"
	"testing"
)

// TestEveryFace: each of the 32 types has exactly the methods of its number.
func TestEveryFace(t *testing.T) {
	for i, face := range faces {
		w := face(new(recorder))
		_, flusher := w.(http.Flusher)
		_, flushError := w.(interface{ FlushError() error })
		_, hijacker := w.(http.Hijacker)
		_, readerFrom := w.(io.ReaderFrom)
		_, pusher := w.(http.Pusher)
		_, notifier := w.(closeNotifier)
		got := 0
		for bit, has := range []bool{flusher, hijacker, readerFrom, pusher, notifier} {
			if has {
				got |= 1 << bit
			}
		}
		if got != i || flushError != flusher {
			t.Errorf("face %05b has %05b", i, got)
		}
		if _, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok {
			t.Errorf("face %05b has no Unwrap", i)
		}
		if _, ok := w.(io.StringWriter); !ok {
			t.Errorf("face %05b has no WriteString", i)
		}
	}
}

// TestFaceCostsNothing: choosing a face allocates nothing.
func TestFaceCostsNothing(t *testing.T) {
	w := new(recorder)
	for i, face := range faces {
		var out http.ResponseWriter
		if n := testing.AllocsPerRun(100, func() { out = face(w) }); n != 0 {
			t.Errorf("face %05b: %v allocations", i, n)
		}
		if out == nil {
			t.Error("no face")
		}
	}
}

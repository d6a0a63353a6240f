package umavezhttp_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
)

// TestAllocations holds the middleware, engine and store to their allocations
// over the bare harness of BenchmarkFlow: 15 for a first execution, one for a
// replay, which runs no handler, and none for a request without a key.
func TestAllocations(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector makes pools forget at random")
	}
	bare := http.HandlerFunc(benchHandler)
	protected := setup{}.opaque(t, benchHandler)
	measure := func(h http.Handler, key func() string) float64 {
		return testing.AllocsPerRun(2000, func() { thinRequest(h, key()) })
	}
	n := 0
	fresh := func() string { n++; return "key-" + strconv.Itoa(n) }
	same := func() string { return "same" }
	none := func() string { return "" }
	thinRequest(protected, same())
	for _, c := range []struct {
		name string
		key  func() string
		most float64
	}{{"first", fresh, 15}, {"replay", same, 1}, {"no key", none, 0}} {
		got := measure(protected, c.key) - measure(bare, c.key)
		t.Logf("%s: %v allocations over the bare harness", c.name, got)
		if got > c.most {
			t.Errorf("%s: %v allocations over the bare harness, at most %v", c.name, got, c.most)
		}
	}
}

// TestLargeAnswer: an answer of 5 MiB passes with less than 2 MiB of extra heap.
func TestLargeAnswer(t *testing.T) {
	piece := make([]byte, 32<<10)
	const pieces = 5 << 20 / (32 << 10)
	var highest uint64
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) {
		for range pieces {
			if _, err := w.Write(piece); err != nil {
				t.Error(err)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapAlloc)
		}
	})
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := &thinWriter{header: make(http.Header)}
	h.ServeHTTP(w, newRequest("k"))
	if w.length != 5<<20 {
		t.Errorf("%d bytes went out", w.length)
	}
	extra := int64(highest) - int64(before.HeapAlloc)
	t.Logf("%d KiB of extra heap", extra>>10)
	if extra >= 2<<20 {
		t.Errorf("%d KiB of extra heap", extra>>10)
	}
	post(h, "k").mustRefuse(t, 409, "replay-unavailable")
}

// TestLargeAnswerThatIsKept: one that just fits is recorded once, and stored once.
func TestLargeAnswerThatIsKept(t *testing.T) {
	body := make([]byte, 1<<20)
	h := setup{}.opaque(t, func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
	first := httptest.NewRecorder()
	h.ServeHTTP(first, newRequest("k"))
	again := httptest.NewRecorder()
	h.ServeHTTP(again, newRequest("k"))
	if first.Body.String() != string(body) || again.Body.String() != string(body) || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("first %d bytes, replay %d bytes", first.Body.Len(), again.Body.Len())
	}
}

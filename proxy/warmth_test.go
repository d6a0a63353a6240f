package proxy

import (
	"testing"
	"time"
)

// TestP11_Learning: what the upstream does with idle connections decides for how
// long they count as warm.
func TestP11_Learning(t *testing.T) {
	const ms = time.Millisecond
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fresh := func() *warmth { return &warmth{now: func() time.Time { return now }} }
	want := func(what string, w *warmth, limit time.Duration) {
		t.Helper()
		if got := w.limit(); got != limit {
			t.Errorf("%s: the limit is %v, want %v", what, got, limit)
		}
	}
	w := fresh()
	want("nothing is known", w, 100*ms)
	w.stayedOpen()
	want("one stayed open", w, 2*time.Second)
	w.closed(300 * ms)
	want("one was closed after 300 ms", w, 150*ms)
	w.stayedOpen()
	want("another one stayed open", w, 150*ms)
	w.closed(5 * time.Second)
	want("another one was closed after 5 s", w, 150*ms)
	w.closed(ms)
	want("one was closed at once, as at a restart", w, 100*ms)
	now = now.Add(4 * time.Minute)
	w.closed(400 * ms)
	now = now.Add(2 * time.Minute)
	want("the restart is six minutes ago, the last close two", w, 100*ms)
	now = now.Add(4 * time.Minute)
	want("no close for five minutes", w, 100*ms)
	w.stayedOpen()
	want("and one that stayed open", w, 2*time.Second)

	w = fresh()
	w.closed(2 * time.Second)
	want("closes after two seconds, as Gunicorn does", w, time.Second)
	w = fresh()
	w.closed(5 * time.Second)
	want("closes after five seconds, as Node does", w, 2*time.Second)

	w = fresh()
	w.closed(0)
	w.closed(0)
	want("closed at once, twice", w, 100*ms)
	w.closed(0)
	want("closed at once again and again", w, 0)
	now = now.Add(time.Hour)
	want("and nothing since", w, 0)
	w.stayedOpen()
	want("and one that stayed open", w, 2*time.Second)
}

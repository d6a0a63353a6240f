package bench

import "testing"

// side is one of the two that are compared.
type side struct {
	name string
	// bare sends a request with this key through the harness and the handler
	// alone, and once through the middleware too. They return the status.
	bare, once func(key string) int
	// renew replaces the store by an empty one.
	renew func()
	// ran counts the runs of the handler.
	ran *int
}

// TestSides: both sides do what the benchmarks take them to do.
func TestSides(t *testing.T) {
	for _, s := range []*side{umavezSide(t), fiberSide(t)} {
		s.check(t)
	}
}

// check makes sure that a side does what is about to be measured: the handler
// runs for each bare request and for the first with a key, and for no replay.
func (s *side) check(tb testing.TB) {
	tb.Helper()
	s.renew()
	key := newKeys(1)[0]
	for _, step := range []struct {
		what string
		send func(string) int
		runs int
	}{
		{"bare", s.bare, 1},
		{"bare again", s.bare, 1},
		{"first", s.once, 1},
		{"replay", s.once, 0},
		{"replay again", s.once, 0},
	} {
		before := *s.ran
		got := step.send(key)
		if got != status || *s.ran-before != step.runs {
			tb.Fatalf("%s, %s: status %d, the handler ran %d times; want %d and %d",
				s.name, step.what, got, *s.ran-before, status, step.runs)
		}
	}
}

func (s *side) send(tb testing.TB, through func(string) int, keys []string) {
	for _, key := range keys {
		if got := through(key); got != status {
			tb.Fatalf("%s: status %d", s.name, got)
		}
	}
}

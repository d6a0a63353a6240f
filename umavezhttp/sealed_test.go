package umavezhttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/store/memstore"
)

// newRing draws a ring of one key.
func newRing(t *testing.T) *keyring.Ring {
	t.Helper()
	line, err := keyring.Generate("a")
	if err != nil {
		t.Fatal(err)
	}
	r, err := keyring.Parse([]byte(line), false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSealedAnswersReplay: with a ring, HTTP behaves as without.
func TestSealedAnswersReplay(t *testing.T) {
	var runs atomic.Int64
	store := memstore.New(memstore.Options{})
	h := setup{store: store, engine: umavez.Options{Sealer: newRing(t)}}.opaque(t, counted(&runs, pay))
	first := post(h, "k")
	again := post(h, "k")
	again.mustEqual(t, first)
	if !again.replayed() || runs.Load() != 1 {
		t.Errorf("replayed %v after %d runs", again.replayed(), runs.Load())
	}
}

// TestUnreadableAnswerIsNotRunAgain: a done record whose answer does not open is
// refused, for ever, and the log says why and shows nothing.
func TestUnreadableAnswerIsNotRunAgain(t *testing.T) {
	var log bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(was)
	var runs atomic.Int64
	store := memstore.New(memstore.Options{})
	h := setup{store: store, engine: umavez.Options{Sealer: newRing(t)}}.opaque(t, counted(&runs, answers(201, "very secret")))
	post(h, "k")
	bend := func(_ umavez.ID, rec *umavez.Record) error {
		rec.Answer = bytes.Clone(rec.Answer)
		rec.Answer[len(rec.Answer)-1] ^= 1
		return nil
	}
	if _, err := store.Rewrite(t.Context(), umavez.ID{}, 10, bend); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		post(h, "k").mustRefuse(t, http.StatusConflict, "replay-unavailable")
	}
	if runs.Load() != 1 {
		t.Errorf("it ran %d times", runs.Load())
	}
	if said := log.String(); !strings.Contains(said, "cannot be opened") || strings.Contains(said, "very secret") {
		t.Errorf("the log says %q", said)
	}
}

// TestAnotherRingRunsNothing: a process with other keys cannot tell whose keys
// those in the store are, and refuses every request with one.
func TestAnotherRingRunsNothing(t *testing.T) {
	var runs atomic.Int64
	store := memstore.New(memstore.Options{})
	post(setup{store: store, engine: umavez.Options{Sealer: newRing(t)}}.opaque(t, counted(&runs, pay)), "k")
	for _, sealer := range []umavez.Sealer{newRing(t), nil} {
		h := setup{store: store, engine: umavez.Options{Sealer: sealer}}.opaque(t, counted(&runs, pay))
		for _, key := range []string{"k", "another"} {
			post(h, key).mustRefuse(t, http.StatusServiceUnavailable, "store-unavailable")
		}
	}
	if runs.Load() != 1 {
		t.Errorf("it ran %d times", runs.Load())
	}
}

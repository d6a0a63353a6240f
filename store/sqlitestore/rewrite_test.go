package sqlitestore

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// seal puts a letter in front of all that a record holds.
func seal(rec *umavez.Record) {
	for _, b := range []*[]byte{&rec.Answer, &rec.Last, &rec.Request} {
		if *b != nil {
			*b = append([]byte("S"), *b...)
		}
	}
	for i := range rec.Steps {
		rec.Steps[i].Result = append([]byte("S"), rec.Steps[i].Result...)
	}
}

// A record that changes while it is being rewritten is handed over again, and
// nothing that was written meanwhile is lost.
func TestRewriteMeetsAChange(t *testing.T) {
	s, _ := fresh(t)
	l := claim(t, s, "k", request())
	if err := s.Checkpoint(t.Context(), l, "a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	calls := 0
	last, err := s.Rewrite(t.Context(), umavez.ID{}, 10, func(_ umavez.ID, rec *umavez.Record) error {
		if calls++; calls == 1 {
			if err := s.Checkpoint(t.Context(), l, "b", []byte("2")); err != nil {
				t.Fatal(err)
			}
		}
		seal(rec)
		return nil
	})
	if err != nil || last != (umavez.ID{}) || calls != 2 {
		t.Errorf("rewrite: last %v, %v, %d calls", last, err, calls)
	}
	rec := get(t, s, "k")
	if len(rec.Steps) != 2 || string(rec.Steps[0].Result) != "S1" || string(rec.Steps[1].Result) != "S2" {
		t.Errorf("the steps are %q", rec.Steps)
	}
}

// One that never stands still is an error in the end; one that has gone is none.
func TestRewriteGivesUp(t *testing.T) {
	s, c := fresh(t)
	l := claim(t, s, "k", request())
	calls := 0
	_, err := s.Rewrite(t.Context(), umavez.ID{}, 10, func(_ umavez.ID, rec *umavez.Record) error {
		calls++
		if err := s.Checkpoint(t.Context(), l, fmt.Sprint(calls), []byte("1")); err != nil {
			t.Fatal(err)
		}
		seal(rec)
		rec.Last = []byte("x")
		return nil
	})
	wantApplied(t, err, umavez.No)
	if calls != rewriteTries {
		t.Errorf("it was tried %d times", calls)
	}
	done(t, s, "gone", []byte("answer"))
	if _, err := s.Rewrite(t.Context(), umavez.ID{}, 10, func(id umavez.ID, rec *umavez.Record) error {
		if id == idOf("gone") {
			c.advance(keep.Retain + keep.Tombstone)
			purge(t, s, 10, 1)
		}
		seal(rec)
		return nil
	}); err != nil {
		t.Errorf("a record that was purged meanwhile: %v", err)
	}
}

// What is over and not purged yet is in the file, and so it is rewritten; the
// time of nothing changes by it, nor what the writer remembers.
func TestRewriteOfWhatIsOver(t *testing.T) {
	s, c := fresh(t)
	done(t, s, "expired", []byte("secret"))
	running := claim(t, s, "running", func() umavez.ClaimRequest { r := request(); r.Request = []byte("secret"); return r }())
	if err := s.Release(t.Context(), claim(t, s, "released", request())); err != nil {
		t.Fatal(err)
	}
	for range 2 { // within its tombstone, and past it
		c.advance(keep.Retain)
		handed := 0
		if _, err := s.Rewrite(t.Context(), umavez.ID{}, 10, func(id umavez.ID, rec *umavez.Record) error {
			if handed++; rec.Fence == 0 || id == idOf("released") {
				t.Errorf("handed out: %+v", rec)
			}
			seal(rec)
			return nil
		}); err != nil || handed != 2 {
			t.Errorf("%d records, %v", handed, err)
		}
	}
	row, _, err := s.writer.c.row(idOf("expired"))
	if err != nil || string(row.Answer) != "SSsecret" {
		t.Errorf("the expired answer is kept as %q, %v", row.Answer, err)
	}
	if err := s.Extend(t.Context(), running, time.Hour); err != nil { // the writer rewrites what it remembers
		t.Fatal(err)
	}
	if err := s.Abandon(t.Context(), running, umavez.ReasonPanic, nil); err != nil {
		t.Fatal(err)
	}
	if rec := get(t, s, "running"); string(rec.Request) != "SSsecret" {
		t.Errorf("the running record's request is %q", rec.Request)
	}
	purge(t, s, 10, 2)
}

// Batches are small in rows and in bytes, so that claims do not wait behind a
// large one.
func TestRewriteInBatches(t *testing.T) {
	s, _ := fresh(t)
	large := bytes.Repeat([]byte("x"), rewriteBytes/4)
	keepRows(t, s, 10, func(_ int, now umavez.Instant) umavez.Row {
		return umavez.Row{Phase: umavez.PhaseDone, Fence: 1, Until: now.Add(time.Hour), Gone: now.Add(time.Hour), Answer: large}
	})
	var after umavez.ID
	var sizes []int
	for {
		n := 0
		last, err := s.Rewrite(t.Context(), after, 1000, func(umavez.ID, *umavez.Record) error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
		if after = last; last == (umavez.ID{}) {
			break
		}
	}
	if fmt.Sprint(sizes) != "[4 4 2]" {
		t.Errorf("batches of %v records of a quarter of the bound", sizes)
	}
	if n := s.Stats().Commits; n != 1 {
		t.Errorf("rewriting nothing took %d commits", n-1)
	}
}

func TestRewriteSettings(t *testing.T) {
	s, _ := fresh(t)
	was := map[string]umavez.Settings{}
	for _, name := range []string{"loja", "", "lo\x00ja"} {
		var err error
		if was[name], err = s.Settings(t.Context(), name, proposal("r")); err != nil {
			t.Fatal(err)
		}
	}
	sealed := func(k string) string { return "sealed " + k }
	err := s.RewriteSettings(t.Context(), func(name string, set *umavez.Settings) error {
		if *set != was[name] {
			t.Errorf("namespace %q is handed out as %+v", name, set)
		}
		set.HashKey, set.Recipe, set.Epoch = sealed(set.HashKey), "other", [16]byte{}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range was {
		want.HashKey = sealed(want.HashKey)
		if got, err := s.Settings(t.Context(), name, proposal("x")); err != nil || got != want {
			t.Errorf("namespace %q is %+v, %v, want %+v", name, got, err, want)
		}
	}
	// An error ends it; a key that has changed meanwhile is left alone; one that
	// does not fit is refused.
	errStop, before := errors.New("stop"), s.Stats().Commits
	if err := s.RewriteSettings(t.Context(), func(_ string, set *umavez.Settings) error {
		set.HashKey = "x"
		return errStop
	}); !errors.Is(err, errStop) || s.Stats().Commits != before {
		t.Errorf("with an error: %v, %d commits", err, s.Stats().Commits-before)
	}
	if err := s.writeHashKey(t.Context(), "loja", was["loja"].HashKey, sealed("other")); err == nil {
		t.Error("a hash key was replaced that was another one by then")
	}
	if err := s.RewriteSettings(t.Context(), func(_ string, set *umavez.Settings) error {
		set.HashKey = string(make([]byte, umavez.MaxHashKey+1))
		return nil
	}); err == nil {
		t.Error("a hash key was kept for which there is no room")
	}
}

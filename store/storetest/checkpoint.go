package storetest

import (
	"bytes"
	"strings"

	"github.com/umavez/umavez"
)

// checkpointRules say how the results of steps, and the last word, are kept.
var checkpointRules = []rule{
	{
		name:  "checkpoint/keeps results in order",
		why:   "an attempt that resumes finds each step's result under its name; a result that is lost is a foreign call made again",
		check: checkpointKeeps,
	},
	{
		name:  "checkpoint/names are exact",
		why:   "step names are compared as bytes: names that differ in case or white space are two steps",
		check: checkpointNames,
	},
	{
		name:  "checkpoint/same result again is a no-op",
		why:   "a checkpoint whose reply was lost is repeated",
		check: checkpointRepeat,
	},
	{
		name:  "checkpoint/first result stands",
		why:   "what a step gave is kept once; another result for the same step is ErrStepKept, since two results mean that it ran twice",
		check: checkpointFirstStands,
	},
	{
		name:  "checkpoint/late is kept",
		why:   "a step that ended after the lease ran out, or after the attempt was abandoned, did happen all the same, and the next attempt must know",
		check: checkpointLate,
	},
	{
		name:  "checkpoint/not of this attempt",
		why:   "a record that does not carry the attempt keeps nothing of it",
		check: checkpointForeign,
	},
	{
		name:  "checkpoint/last word is noted",
		why:   "the latest note becomes the record's Last, which is what others are told when the attempt is lost; it is no step",
		check: lastWordNoted,
	},
	{
		name:  "checkpoint/last word after abandon is refused",
		why:   "a note that arrives after the end would overwrite the word with which the attempt ended",
		check: lastWordAfterAbandon,
	},
}

func checkpointKeeps(f *fixture) {
	h := f.running(umavez.Stepped)
	want := []umavez.KeptStep{
		{Name: "reservar", Result: []byte("r-1")},
		{Name: "cobrar", Result: nil},
		{Name: "avisar", Result: bytes.Repeat([]byte{0, 0xff, '\'', '\n'}, 20_000)},
	}
	for i, s := range want {
		f.answers("checkpoint "+s.Name, f.store.Checkpoint(f.Context(), h.Lease, s.Name, s.Result), nil)
		if got := f.get(h.ID).Steps; len(got) != i+1 || !sameStep(got[i], s) {
			f.Fatalf("after %d checkpoints the record has %d steps; want the last one to be %s with %s", i+1, len(got), s.Name, cut(s.Result))
		}
	}
	rec := f.get(h.ID)
	for i, s := range want {
		if !sameStep(rec.Steps[i], s) {
			f.Fatalf("step %d is %q with %s, want %q with %s", i, rec.Steps[i].Name, cut(rec.Steps[i].Result), s.Name, cut(s.Result))
		}
	}
}

func checkpointNames(f *fixture) {
	h := f.running(umavez.Stepped)
	names := []string{"a", "A", "a ", " a", "a\x00", "á", "a\u0301", "a\xff", strings.Repeat("a", 255)}
	for _, name := range names {
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, name, []byte(name)), nil)
	}
	steps := f.get(h.ID).Steps
	if len(steps) != len(names) {
		f.Fatalf("the record has %d steps, want %d: names were merged", len(steps), len(names))
	}
	for i, s := range steps {
		if s.Name != names[i] || string(s.Result) != names[i] {
			f.Fatalf("step %d is %q with %s, want %q", i, s.Name, cut(s.Result), names[i])
		}
	}
}

func checkpointRepeat(f *fixture) {
	h := f.running(umavez.Stepped)
	for range 2 {
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
	}
	if got := f.get(h.ID).Steps; len(got) != 1 {
		f.Fatalf("the record has %d steps, want 1", len(got))
	}
}

func checkpointFirstStands(f *fixture) {
	h := f.running(umavez.Stepped)
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-2")), umavez.ErrStepKept)
	if got := f.get(h.ID).Steps; len(got) != 1 || string(got[0].Result) != "c-1" {
		f.Fatalf("the steps are %q, want the first result alone", got)
	}
}

func checkpointLate(f *fixture) {
	for _, h := range []held{f.lost(umavez.Stepped), f.abandoned(umavez.Stepped)} {
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "cobrar", []byte("c-1")), nil)
		if rec := f.is(h.ID, umavez.Lost); len(rec.Steps) != 1 {
			f.Fatalf("the record has %d steps, want 1", len(rec.Steps))
		}
	}
}

func checkpointForeign(f *fixture) {
	running, done := f.running(umavez.Stepped), f.done("a", kept())
	vacant, released := umavez.Lease{ID: f.key(), Attempt: umavez.NewAttemptID()}, f.running(umavez.Stepped)
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	other := running.Lease
	other.Attempt = umavez.NewAttemptID()

	for _, l := range []umavez.Lease{vacant, released.Lease, other, done.Lease} {
		before := f.get(l.ID)
		for _, step := range []string{"cobrar", umavez.LastWord} {
			f.answers("checkpoint", f.store.Checkpoint(f.Context(), l, step, []byte("c-1")), umavez.ErrLeaseLost)
		}
		f.same("the record", f.get(l.ID), before)
	}
}

func lastWordNoted(f *fixture) {
	h := f.running(umavez.Opaque)
	for _, word := range []string{"first", "second"} {
		f.answers("last word", f.store.Checkpoint(f.Context(), h.Lease, umavez.LastWord, []byte(word)), nil)
		if rec := f.get(h.ID); string(rec.Last) != word || len(rec.Steps) != 0 {
			f.Fatalf("the last word is %q and there are %d steps, want %q and none", rec.Last, len(rec.Steps), word)
		}
	}
	late := f.lost(umavez.Opaque)
	f.answers("late last word", f.store.Checkpoint(f.Context(), late.Lease, umavez.LastWord, []byte("late")), nil)
	if rec := f.is(late.ID, umavez.Lost); string(rec.Last) != "late" {
		f.Fatalf("the last word is %q, want %q", rec.Last, "late")
	}
}

func lastWordAfterAbandon(f *fixture) {
	h := f.running(umavez.Opaque)
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonStatus, []byte("503")), nil)
	f.answers("last word", f.store.Checkpoint(f.Context(), h.Lease, umavez.LastWord, []byte("201")), umavez.ErrLeaseLost)
	if rec := f.get(h.ID); string(rec.Last) != "503" {
		f.Fatalf("the last word is %q, want %q", rec.Last, "503")
	}
}

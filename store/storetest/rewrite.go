package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/umavez/umavez"
)

// rewriteRules hold for stores whose records can be sealed anew.
var rewriteRules = []rule{
	{
		name:  "rewrite/hands out every record, and keeps what comes back",
		why:   "a record that is left out keeps its old key, and cannot be opened when that is taken away",
		alone: true,
		check: rewriteKeeps,
	},
	{
		name:  "rewrite/pages in the order of IDs",
		why:   "a rewriting of a large store goes on where it stopped; the zero ID, and nothing else, says that it is at its end",
		alone: true,
		check: rewritePages,
	},
	{
		name:  "rewrite/changes nothing else",
		why:   "a rewriting is no transition: what a record says, and how long its lease and retention are, is none of its business",
		alone: true,
		check: rewriteNothingElse,
	},
	{
		name:  "rewrite/an error leaves the record",
		why:   "what could not be sealed anew stays as it is, and the caller learns of it",
		alone: true,
		check: rewriteError,
	},
	{
		name:  "rewrite/settings keep all but the hash key",
		why:   "the hash key of each namespace is sealed anew, too; another epoch or recipe would make every kept fingerprint void",
		alone: true,
		check: rewriteSettings,
	},
	{
		name:  "race/rewrite against checkpoints",
		why:   "a step that is kept while its record is sealed anew must not be lost: the call that it stands for would be made again",
		check: raceRewrite,
	},
}

// rewriter returns the store as a Rewriter, or skips the rule.
func (f *fixture) rewriter() umavez.Rewriter {
	f.Helper()
	w, ok := f.store.(umavez.Rewriter)
	if !ok {
		f.Skipf("the store's records cannot be sealed anew (it is no umavez.Rewriter)")
	}
	return w
}

// sealMark begins what the suite's rewriting has made of bytes.
var sealMark = []byte("anew \x00\xff ")

// seal puts the mark in front of all that a rewriting may change.
func seal(rec *umavez.Record) {
	mark := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		return append(slices.Clone(sealMark), b...)
	}
	rec.Answer, rec.Last, rec.Request = mark(rec.Answer), mark(rec.Last), mark(rec.Request)
	for i := range rec.Steps {
		rec.Steps[i].Result = mark(rec.Steps[i].Result)
	}
}

// rewrite goes through the whole store, in pages, and returns the IDs that were
// handed out.
func (f *fixture) rewrite(limit int, rewrite func(umavez.ID, *umavez.Record) error) (seen []umavez.ID) {
	f.Helper()
	var after umavez.ID
	for range 1000 {
		before := len(seen)
		last, err := f.rewriter().Rewrite(f.Context(), after, limit, func(id umavez.ID, rec *umavez.Record) error {
			if !slices.Contains(seen[before:], id) { // it may be handed out again when it has changed
				seen = append(seen, id)
			}
			return rewrite(id, rec)
		})
		if err != nil || len(seen)-before > limit {
			f.Fatalf("rewrite: %d records of at most %d, error %v", len(seen)-before, limit, err)
		}
		if last == (umavez.ID{}) {
			return seen
		}
		if bytes.Compare(last[:], after[:]) <= 0 {
			f.Fatalf("rewrite went from %v to %v", after, last)
		}
		after = last
	}
	f.Fatalf("rewrite does not end")
	return nil
}

// sealable makes records that hold all that can be sealed.
func (f *fixture) sealable() []held {
	f.Helper()
	ctx := f.Context()
	running, lost, done := f.running(umavez.Stepped), f.running(umavez.Stepped), f.done("aprovado", kept())
	for _, h := range []held{running, lost} {
		f.answers("checkpoint", f.store.Checkpoint(ctx, h.Lease, "reservar", []byte("r-1\x00")), nil)
		f.answers("checkpoint", f.store.Checkpoint(ctx, h.Lease, "cobrar", []byte{}), nil)
		f.answers("last word", f.store.Checkpoint(ctx, h.Lease, umavez.LastWord, []byte("half")), nil)
	}
	f.answers("abandon", f.store.Abandon(ctx, lost.Lease, umavez.ReasonReset, []byte("502")), nil)
	return []held{running, lost, done, f.abandoned(umavez.Opaque), f.running(umavez.Opaque)}
}

func rewriteKeeps(f *fixture) {
	f.rewriter()
	keys := f.sealable()
	released := f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), released.Lease), nil)
	var want []umavez.Record
	var all []umavez.ID
	for _, h := range keys {
		rec := f.get(h.ID)
		rec.Steps = slices.Clone(rec.Steps)
		seal(&rec)
		want, all = append(want, rec), append(all, h.ID)
	}
	seen := f.rewrite(100, func(_ umavez.ID, rec *umavez.Record) error {
		seal(rec)
		return nil
	})
	seen = slices.DeleteFunc(seen, func(id umavez.ID) bool { return id == released.ID }) // a store may hand it out or not
	if !slices.Equal(seen, sortedIDs(all)) {
		f.Fatalf("rewrite handed out %d records, want the %d that there are, in the order of their IDs", len(seen), len(all))
	}
	for i, h := range keys {
		rec := f.get(h.ID)
		f.same("the record that was sealed anew", rec, want[i])
		f.answers("complete", f.completeAgain(h, rec), nil)
	}
}

// completeAgain completes a record, as the attempt that has it, with the answer
// that it has, if any.
func (f *fixture) completeAgain(h held, rec umavez.Record) error {
	answer := rec.Answer
	if rec.State != umavez.Done {
		answer = []byte("a")
	}
	return f.store.Complete(f.Context(), h.Lease, answer, kept())
}

func rewritePages(f *fixture) {
	f.rewriter()
	var all []umavez.ID
	for range 12 {
		all = append(all, f.running(umavez.Opaque).ID)
	}
	all = sortedIDs(all)
	for _, limit := range []int{1, 5, 6, 12, 100} {
		if seen := f.rewrite(limit, func(umavez.ID, *umavez.Record) error { return nil }); !slices.Equal(seen, all) {
			f.Fatalf("in pages of %d rewrite handed out %d records, want the %d that there are, in the order of their IDs", limit, len(seen), len(all))
		}
	}
}

func rewriteNothingElse(f *fixture) {
	f.rewriter()
	keys := f.sealable()
	before := map[umavez.ID]umavez.Record{}
	for _, h := range keys {
		before[h.ID] = f.get(h.ID)
	}
	f.rewrite(100, func(_ umavez.ID, rec *umavez.Record) error {
		*rec = umavez.Record{
			State: umavez.Expired, Policy: umavez.Atomic, Namespace: "x", Scope: umavez.ScopeID{9}, Route: "x", Label: "x",
			Attempt: umavez.NewAttemptID(), Fence: rec.Fence + 1, Tries: 77, Reason: umavez.ReasonParked, Settled: true, Contradicted: true,
			Steps: rec.Steps, Answer: rec.Answer, Last: rec.Last, Request: rec.Request, LeaseLeft: 1, RetainLeft: 1,
		}
		return nil
	})
	for _, h := range keys {
		rec, was := f.get(h.ID), before[h.ID]
		f.same("the record", rec, was)
		f.leftAbout("the lease", rec.LeaseLeft, was.LeaseLeft)
		f.leftAbout("the retention", rec.RetainLeft, was.RetainLeft)
	}
}

func rewriteError(f *fixture) {
	w := f.rewriter()
	keys := f.sealable()
	all := make([]umavez.ID, len(keys))
	before := map[umavez.ID]umavez.Record{}
	for i, h := range keys {
		all[i], before[h.ID] = h.ID, f.get(h.ID)
	}
	broken := sortedIDs(all)[2]
	sealed := map[umavez.ID]bool{}
	errBroken := errors.New("the key is not in the ring")
	_, err := w.Rewrite(f.Context(), umavez.ID{}, 100, func(id umavez.ID, rec *umavez.Record) error {
		seal(rec)
		if id == broken {
			return errBroken
		}
		sealed[id] = true
		return nil
	})
	if !errors.Is(err, errBroken) {
		f.Fatalf("rewrite: %v, want the error that it was given", err)
	}
	for _, id := range all {
		want := before[id]
		want.Steps = slices.Clone(want.Steps)
		if sealed[id] {
			seal(&want)
		}
		f.same(fmt.Sprintf("the record, sealed %v,", sealed[id]), f.get(id), want)
	}
	for _, id := range sortedIDs(all)[:2] {
		if !sealed[id] {
			f.Fatalf("a record before the one that failed was not handed out")
		}
	}
}

func rewriteSettings(f *fixture) {
	w, k := f.rewriter(), f.keeper(f.store)
	want := map[string]umavez.Settings{}
	for range 3 {
		name := namespace()
		want[name] = f.settings(k, name, proposal())
	}
	seen := map[string]int{}
	err := w.RewriteSettings(f.Context(), func(name string, s *umavez.Settings) error {
		seen[name]++
		if s.HashKey != want[name].HashKey {
			f.Errorf("the hash key of %q was handed out as %q", name, s.HashKey)
		}
		*s = umavez.Settings{HashKey: "anew \xff" + s.HashKey, Recipe: "x", Format: 99}
		return nil
	})
	if err != nil || len(seen) != len(want) {
		f.Fatalf("rewrite-settings: %d namespaces, error %v; want %d", len(seen), err, len(want))
	}
	for name, s := range want {
		s.HashKey = "anew \xff" + s.HashKey
		if got := f.settings(k, name, proposal()); got != s {
			f.Fatalf("the settings of %q are %+v, want %+v", name, got, s)
		}
	}
	errBroken := errors.New("the key is not in the ring")
	err = w.RewriteSettings(f.Context(), func(string, *umavez.Settings) error { return errBroken })
	if !errors.Is(err, errBroken) {
		f.Fatalf("rewrite-settings: %v, want the error that it was given", err)
	}
}

// raceRewrite rewrites while steps are kept, from another client where there is
// one. Each step that was acknowledged must be there, sealed or not.
func raceRewrite(f *fixture) {
	f.rewriter()
	clients := f.clients()
	h := f.running(umavez.Stepped)
	const steps = 30
	// Just before the record's own page, so that other rules' keys are left alone.
	before := h.ID
	for i := len(before) - 1; i >= 0; i-- {
		if before[i]--; before[i] != 0xff {
			break
		}
	}
	// Each step is kept when a rewriting has begun, so that the two meet; and the
	// next rewriting begins when it was kept, so that none meets many.
	begun, answered := make(chan struct{}), make(chan struct{})
	together(
		func() {
			for i := range steps {
				<-begun
				f.stillAnswers(clients[0].Checkpoint(f.Context(), h.Lease, fmt.Sprintf("step %d", i), []byte("kept")))
				answered <- struct{}{}
			}
		},
		func() {
			for range steps {
				var once sync.Once
				begin := func() { begun <- struct{}{} }
				f.stillAnswers(f.rewriteFrom(clients[len(clients)-1], before, func(_ umavez.ID, rec *umavez.Record) error {
					once.Do(begin) // it may be handed out again
					for i := range rec.Steps {
						rec.Steps[i].Result = append(slices.Clone(sealMark), rec.Steps[i].Result...)
					}
					return nil
				}))
				once.Do(begin) // it was not handed out at all
				<-answered
			}
		})
	kept := f.get(h.ID).Steps
	for i := range steps {
		at := slices.IndexFunc(kept, func(s umavez.KeptStep) bool { return s.Name == fmt.Sprintf("step %d", i) })
		if at < 0 || !bytes.HasSuffix(kept[at].Result, []byte("kept")) {
			f.Fatalf("step %d of %d was acknowledged, and is not there: the record has %d steps", i, steps, len(kept))
		}
	}
}

// rewriteFrom rewrites one record, through one of the data's clients.
func (f *fixture) rewriteFrom(s umavez.Store, after umavez.ID, rewrite func(umavez.ID, *umavez.Record) error) error {
	w, ok := s.(umavez.Rewriter)
	if !ok {
		return errors.New("another client of the same data is no umavez.Rewriter")
	}
	_, err := w.Rewrite(f.Context(), after, 1, rewrite)
	return err
}

// stillAnswers is for calls on goroutines of their own, which must not end the test.
func (f *fixture) stillAnswers(err error) {
	if err != nil {
		f.Errorf("a call in a race: %v", err)
	}
}

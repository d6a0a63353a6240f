package umavez_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// sealedEngine is an engine on a store, with a ring of these keys; none: without
// a ring.
func sealedEngine(t *testing.T, base umavez.Store, allowPlain bool, ids ...string) *umavez.Engine {
	t.Helper()
	o := umavez.Options{}
	if len(ids) > 0 {
		o.Sealer = ringOf(t, allowPlain, ids...)
	}
	e, err := umavez.New(base, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// answered runs an operation that answers with this text.
func answered(t *testing.T, e *umavez.Engine, name, answer string) {
	t.Helper()
	a, rec, err := e.Claim(t.Context(), opaque(name))
	if err != nil || a == nil {
		t.Fatalf("claim of %s: %v, record %+v", name, err, rec)
	}
	if err := a.Complete([]byte(answer)); err != nil {
		t.Fatal(err)
	}
}

// replay asks for a record that is done.
func replay(t *testing.T, e *umavez.Engine, name string) umavez.Record {
	t.Helper()
	a, rec, err := e.Claim(t.Context(), opaque(name))
	if err != nil || a != nil || rec.State != umavez.Done {
		t.Fatalf("%s: attempt %v, %v, record %+v; want it done", name, a, err, rec)
	}
	return rec
}

func reseal(t *testing.T, e *umavez.Engine) umavez.Resealed {
	t.Helper()
	done, err := e.Reseal(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestRotation: old answers replay after a new key came first, and once all is
// sealed anew the old key can go.
func TestRotation(t *testing.T) {
	base := memstore.New(memstore.Options{})
	first := sealedEngine(t, base, false, "old")
	before, err := first.Namespace(t.Context(), "loja", "r")
	if err != nil {
		t.Fatal(err)
	}
	const records = 200 // several batches
	for i := range records {
		answered(t, first, fmt.Sprint(i), fmt.Sprint("answer ", i))
	}
	second := sealedEngine(t, base, false, "new", "old")
	if rec := replay(t, second, "7"); string(rec.Answer) != "answer 7" {
		t.Errorf("with a new key first, the answer is %q", rec.Answer)
	}
	answered(t, second, "fresh", "fresh answer")
	if rec := replay(t, sealedEngine(t, base, false, "new"), "7"); !errors.Is(rec.Unreadable, umavez.ErrUnreadable) || rec.Answer != nil {
		t.Errorf("without the old key, before all is sealed anew: %+v", rec)
	}
	var told []umavez.Resealed
	done, err := second.Reseal(t.Context(), func(r umavez.Resealed) { told = append(told, r) })
	if want := (umavez.Resealed{Seen: records + 1, Sealed: records, Namespaces: 1}); err != nil || done != want {
		t.Errorf("sealed anew: %+v, %v, want %+v", done, err, want)
	}
	if len(told) < 3 || told[0].Seen == 0 || told[len(told)-1] != done {
		t.Errorf("progress was told as %+v", told)
	}
	if again := reseal(t, second); again.Sealed != 0 || again.Namespaces != 0 || again.Seen != records+1 {
		t.Errorf("the second time: %+v, want nothing left to do", again)
	}
	third := sealedEngine(t, base, false, "new")
	for i := range records {
		if rec := replay(t, third, fmt.Sprint(i)); string(rec.Answer) != fmt.Sprint("answer ", i) {
			t.Fatalf("record %d, without the old key: %q, %v", i, rec.Answer, rec.Unreadable)
		}
	}
	if after, err := third.Namespace(t.Context(), "loja", "r"); err != nil || after != before {
		t.Errorf("the namespace's settings are %+v, %v; they were %+v", after, err, before)
	}
}

// TestResealAllFields: running and lost records too, with every field and each
// step's own fence.
func TestResealAllFields(t *testing.T) {
	w := newSealedWorld(t)
	s := w.behind("old")
	first := w.fill(s, "k")
	second := w.claim(s, "k", first.Fence, nil)
	w.must(s.Checkpoint(t.Context(), second, "avisar", []byte("mail of k")))
	w.must(s.Checkpoint(t.Context(), second, umavez.LastWord, []byte("half of k")))
	want, err := s.Get(t.Context(), first.ID)
	w.must(err)
	if done := reseal(t, sealedEngine(t, w.base, false, "new", "old")); done.Sealed != 1 || done.Unreadable != 0 {
		t.Fatalf("sealed anew: %+v", done)
	}
	after := w.behind("new")
	got, err := after.Get(t.Context(), first.ID)
	w.must(err)
	if fmt.Sprintf("%q %q %q", got.Steps, got.Last, got.Request) != fmt.Sprintf("%q %q %q", want.Steps, want.Last, want.Request) {
		t.Errorf("holds %q %q %q, want %q %q %q", got.Steps, got.Last, got.Request, want.Steps, want.Last, want.Request)
	}
	// Its owner goes on, by a process that has not heard of any of this.
	w.must(s.Checkpoint(t.Context(), second, "fechar", []byte("end")))
	w.must(w.behind("old", "new").Checkpoint(t.Context(), second, "avisar", []byte("mail of k")))
	w.must(after.Complete(t.Context(), second, []byte("aprovado"), sealedKeep))
}

// TestResealOfPlain makes a store that was not sealed into one that is.
func TestResealOfPlain(t *testing.T) {
	base := memstore.New(memstore.Options{})
	plain := sealedEngine(t, base, false)
	before, err := plain.Namespace(t.Context(), "loja", "r")
	if err != nil {
		t.Fatal(err)
	}
	answered(t, plain, "k", "aprovado")
	a, _, err := plain.Claim(t.Context(), steppedOp("s"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := umavez.Step(a.Context(), "cobrar", func(context.Context, string) (string, error) { return "c-1", nil }); err != nil {
		t.Fatal(err)
	}
	if err := a.Abandon(umavez.ReasonReset, []byte("last")); err != nil {
		t.Fatal(err)
	}
	strict := sealedEngine(t, base, false, "a")
	if rec := replay(t, strict, "k"); !errors.Is(rec.Unreadable, umavez.ErrUnreadable) || rec.Answer != nil {
		t.Errorf("what lies in plain is taken: %+v", rec)
	}
	if _, err := strict.Namespace(t.Context(), "loja", "r"); !errors.Is(err, umavez.ErrUnreadable) {
		t.Errorf("a hash key in plain: %v, want ErrUnreadable", err)
	}
	if done := reseal(t, strict); done.Sealed != 0 || done.Unreadable != 3 || !errors.Is(done.FirstUnreadable, umavez.ErrUnreadable) {
		t.Errorf("sealed what it must not read: %+v", done)
	}
	moving := sealedEngine(t, base, true, "a")
	if rec := replay(t, moving, "k"); string(rec.Answer) != "aprovado" {
		t.Errorf("while it moves: %+v", rec)
	}
	if done := reseal(t, moving); done.Sealed != 2 || done.Namespaces != 1 || done.Unreadable != 0 {
		t.Errorf("sealed anew: %+v", done)
	}
	if rec := replay(t, strict, "k"); string(rec.Answer) != "aprovado" || rec.Unreadable != nil {
		t.Errorf("afterwards: %+v", rec)
	}
	if after, err := strict.Namespace(t.Context(), "loja", "r"); err != nil || after != before {
		t.Errorf("settings %+v, %v, want %+v", after, err, before)
	}
	lost, err := strict.Get(t.Context(), steppedOp("s").Key)
	if err != nil || len(lost.Steps) != 1 || !strings.Contains(string(lost.Steps[0].Result), "value") || string(lost.Last) != "last" {
		t.Errorf("the lost record: %+v, %v", lost, err)
	}
}

// TestWithoutTheRing: a process that was started without a ring on a store that
// is sealed makes no fingerprints with the sealed hash key.
func TestWithoutTheRing(t *testing.T) {
	base := memstore.New(memstore.Options{})
	if _, err := sealedEngine(t, base, false, "a").Namespace(t.Context(), "loja", "r"); err != nil {
		t.Fatal(err)
	}
	if s, err := sealedEngine(t, base, false).Namespace(t.Context(), "loja", "r"); err == nil || !strings.Contains(err.Error(), "key ring") {
		t.Errorf("settings %+v, error %v; want one that asks for the key ring", s, err)
	}
}

// TestHashKeyOfAnotherNamespace: a sealed hash key does not open elsewhere.
func TestHashKeyOfAnotherNamespace(t *testing.T) {
	base := memstore.New(memstore.Options{})
	e := sealedEngine(t, base, false, "a")
	for _, name := range []string{"loja", "outra"} {
		if _, err := e.Namespace(t.Context(), name, "r"); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[string]string{}
	exchange := func(name string, s *umavez.Settings) error {
		if kept, ok := keys["loja"]; ok && name == "outra" {
			s.HashKey = kept
		}
		keys[name] = s.HashKey
		return nil
	}
	if err := base.RewriteSettings(t.Context(), exchange); err != nil {
		t.Fatal(err)
	}
	if keys["loja"] != keys["outra"] || len(keys["loja"]) > umavez.MaxHashKey {
		t.Fatalf("the test has not moved it: %q", keys)
	}
	if _, err := e.Namespace(t.Context(), "outra", "r"); !errors.Is(err, umavez.ErrUnreadable) {
		t.Errorf("moved, and opened: %v", err)
	}
}

func TestResealIsRefused(t *testing.T) {
	if _, err := sealedEngine(t, memstore.New(memstore.Options{}), false).Reseal(t.Context(), nil); err == nil {
		t.Error("sealed anew without a ring")
	}
	plainStore := struct{ umavez.Store }{memstore.New(memstore.Options{})}
	if _, err := sealedEngine(t, plainStore, false, "a").Reseal(t.Context(), nil); !errors.Is(err, umavez.ErrNotOffered) {
		t.Errorf("a store that cannot: %v, want ErrNotOffered", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sealedEngine(t, memstore.New(memstore.Options{}), false, "a").Reseal(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}

// TestResealLeavesWhatIsUnreadable: what no key opens stays as it is, byte by
// byte, and is counted; all else is sealed anew.
func TestResealLeavesWhatIsUnreadable(t *testing.T) {
	w := newSealedWorld(t)
	gone := w.fill(w.behind("gone"), "k")
	w.fill(w.behind("old"), "other")
	before, err := w.base.Get(t.Context(), gone.ID)
	w.must(err)
	done := reseal(t, sealedEngine(t, w.base, false, "new", "old"))
	if done.Seen != 2 || done.Sealed != 1 || done.Unreadable != 1 || !strings.Contains(done.FirstUnreadable.Error(), gone.ID.String()) {
		t.Errorf("sealed anew: %+v", done)
	}
	after, err := w.base.Get(t.Context(), gone.ID)
	w.must(err)
	if !bytes.Equal(after.Request, before.Request) || !bytes.Equal(after.Steps[1].Result, before.Steps[1].Result) {
		t.Error("what could not be opened was changed")
	}
	if rec, err := w.behind("gone").Get(t.Context(), gone.ID); err != nil || string(rec.Request) != "request of k" {
		t.Errorf("with its key: %+v, %v", rec, err)
	}
}

// TestResealDuringTraffic seals anew, over and over and with changing keys, what
// other goroutines are writing: no step and no answer is lost or mixed up.
func TestResealDuringTraffic(t *testing.T) {
	base := memstore.New(memstore.Options{})
	rings := [][]string{{"a", "b"}, {"b", "a"}}
	engines := []*umavez.Engine{sealedEngine(t, base, false, rings[0]...), sealedEngine(t, base, false, rings[1]...)}
	const writers, each = 8, 40
	var writing, resealing sync.WaitGroup
	stop := make(chan struct{})
	for i := range engines {
		resealing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if done, err := engines[i].Reseal(context.Background(), nil); err != nil || done.Unreadable != 0 {
					t.Errorf("reseal: %+v, %v", done, err)
					return
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%d/%d", w, i)
				if err := stepThrough(t.Context(), engines[i%2], name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	resealing.Wait()
	for w := range writers {
		for i := range each {
			name := fmt.Sprintf("%d/%d", w, i)
			rec, err := engines[0].Get(t.Context(), steppedOp(name).Key)
			if err != nil || string(rec.Answer) != "answer of "+name {
				t.Fatalf("%s: %v, record %+v", name, err, rec)
			}
		}
	}
}

// stepThrough runs an operation of two steps, reading what is kept in between.
func stepThrough(ctx context.Context, e *umavez.Engine, name string) error {
	op := steppedOp(name)
	op.Request = []byte("request of " + name)
	a, _, err := e.Claim(ctx, op)
	if err != nil || a == nil {
		return fmt.Errorf("claim: %v, %w", a, err)
	}
	for _, step := range []string{"cobrar", "enviar"} {
		if _, err := umavez.Step(a.Context(), step, func(context.Context, string) (string, error) { return step + " " + name, nil }); err != nil {
			return err
		}
	}
	rec, err := e.Get(ctx, op.Key)
	if err != nil || len(rec.Steps) != 2 || string(rec.Request) != "request of "+name {
		return fmt.Errorf("record %+v: %w", rec, err)
	}
	return a.Complete([]byte("answer of " + name))
}

// twiceHanded is a store that hands each record to rewrite twice, as one does
// whose record has changed meanwhile.
type twiceHanded struct{ *memstore.Store }

func (s twiceHanded) Rewrite(ctx context.Context, after umavez.ID, limit int, rewrite func(umavez.ID, *umavez.Record) error) (umavez.ID, error) {
	return s.Store.Rewrite(ctx, after, limit, func(id umavez.ID, rec *umavez.Record) error {
		first := *rec
		if err := rewrite(id, &first); err != nil {
			return err
		}
		return rewrite(id, rec)
	})
}

func TestResealCountsARecordOnce(t *testing.T) {
	base := twiceHanded{memstore.New(memstore.Options{})}
	answered(t, sealedEngine(t, base, false, "old"), "k", "aprovado")
	if done := reseal(t, sealedEngine(t, base, false, "new", "old")); done.Seen != 1 || done.Sealed != 1 {
		t.Errorf("sealed anew: %+v", done)
	}
}

// TestResealPurgesFirst: an answer that has expired is shown to nobody, nor to
// what seals anew, and must not keep an old key alive.
func TestResealPurgesFirst(t *testing.T) {
	w := newSealedWorld(t)
	s := w.behind("old")
	for i := range 3 {
		l := w.claim(s, fmt.Sprint(i), 0, nil)
		w.must(s.Complete(t.Context(), l, []byte("aprovado"), umavez.Retention{Retain: time.Minute}))
	}
	w.advance(time.Hour)
	reseal(t, sealedEngine(t, w.base, false, "new"))
	if n := w.base.Len(); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

func steppedOp(name string) umavez.Operation {
	op := opaque(name)
	op.Policy = umavez.Stepped
	return op
}

// TestEngineLeavesUnreadableSteps: a lost operation whose steps do not open is
// not taken over, not even to give it up again; where they open, it goes on.
func TestEngineLeavesUnreadableSteps(t *testing.T) {
	base := memstore.New(memstore.Options{})
	first := sealedEngine(t, base, false, "old")
	a := mustClaim(t, first, steppedOp("k"))
	charge := func(context.Context, string) (string, error) { return "c-1", nil }
	if _, err := umavez.Step(a.Context(), "cobrar", charge); err != nil {
		t.Fatal(err)
	}
	if err := a.Abandon(umavez.ReasonReset, nil); err != nil {
		t.Fatal(err)
	}
	b, rec, err := sealedEngine(t, base, false, "new").Claim(t.Context(), steppedOp("k"))
	if err != nil || b != nil || rec.State != umavez.Lost || !errors.Is(rec.Unreadable, umavez.ErrUnreadable) {
		t.Fatalf("attempt %v, error %v, record %+v; want it lost", b, err, rec)
	}
	if rec, err := first.Get(t.Context(), steppedOp("k").Key); err != nil || rec.Tries != 1 || rec.Reason != umavez.ReasonReset {
		t.Errorf("the record is %+v, %v; want it as it was", rec, err)
	}
	b = mustClaim(t, sealedEngine(t, base, false, "new", "old"), steppedOp("k"))
	again := func(context.Context, string) (string, error) { return "", errors.New("the step runs again") }
	if got, err := umavez.Step(b.Context(), "cobrar", again); err != nil || got != "c-1" {
		t.Errorf("the kept step: %q, %v", got, err)
	}
	if err := b.Complete([]byte("aprovado")); err != nil {
		t.Error(err)
	}
}

// TestOperatorsGetPastWhatIsUnreadable: they see the record, and can settle it.
func TestOperatorsGetPastWhatIsUnreadable(t *testing.T) {
	w := newSealedWorld(t)
	l := w.fill(w.behind("gone"), "k")
	e := sealedEngine(t, w.base, false, "new")
	rec, _, err := e.Inspect(t.Context(), l.ID)
	if err != nil || rec.State != umavez.Lost || rec.Unreadable == nil || len(rec.Steps) != 2 {
		t.Fatalf("inspected %+v, %v", rec, err)
	}
	err = e.Settle(t.Context(), l.ID, umavez.Settlement{
		Action: umavez.ActionHappened, Fence: l.Fence, Answer: []byte("aprovado"), Who: "ana", Why: "the key is gone",
	})
	if err != nil {
		t.Fatal(err)
	}
	if rec, _, err := e.Inspect(t.Context(), l.ID); err != nil || string(rec.Answer) != "aprovado" || rec.Unreadable != nil {
		t.Errorf("settled: %+v, %v", rec, err)
	}
}

// TestDoOfAnUnreadableAnswer: the operation is not run again.
func TestDoOfAnUnreadableAnswer(t *testing.T) {
	base := memstore.New(memstore.Options{})
	run := func(context.Context) (string, error) { return "aprovado", nil }
	if _, err := umavez.Do(t.Context(), sealedEngine(t, base, false, "old"), opaque("k"), run); err != nil {
		t.Fatal(err)
	}
	never := func(context.Context) (string, error) { t.Error("it runs again"); return "", nil }
	_, err := umavez.Do(t.Context(), sealedEngine(t, base, false, "new"), opaque("k"), never)
	if !errors.Is(err, umavez.ErrNotKept) || !errors.Is(err, umavez.ErrUnreadable) || strings.Contains(err.Error(), "aprovado") {
		t.Errorf("answered %v, want ErrNotKept, since it is unreadable", err)
	}
}

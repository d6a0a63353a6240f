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
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/store/storetest"
)

// ring makes a ring of named keys. The same name is the same key, in every call.
func ring(t testing.TB, ids ...string) *keyring.Ring {
	t.Helper()
	return ringOf(t, false, ids...)
}

func ringOf(t testing.TB, allowPlain bool, ids ...string) *keyring.Ring {
	t.Helper()
	var text strings.Builder
	for _, id := range ids {
		line, err := keyring.Generate(id)
		if err != nil {
			t.Fatal(err)
		}
		kept, _ := ringLines.LoadOrStore(id, line)
		text.WriteString(kept.(string) + "\n")
	}
	r, err := keyring.Parse([]byte(text.String()), allowPlain)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var ringLines sync.Map

// sealedSuite is a sealed store as the suite needs it: with what its base can do
// beside, and with the fence in every lease. Here and there the suite names a
// lease by its attempt alone. An engine never does.
type sealedSuite struct {
	sealed
	umavez.Purger
	umavez.Lister
	umavez.SettingsKeeper
	fences sync.Map // by attempt
}

type sealed interface {
	umavez.Store
	umavez.Settler
}

func newSealedSuite(t testing.TB, base *memstore.Store, r umavez.Sealer) *sealedSuite {
	t.Helper()
	return &sealedSuite{
		sealed: umavez.SealedStore(base, r).(sealed),
		Purger: base, Lister: base, SettingsKeeper: base,
	}
}

func (s *sealedSuite) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	rec, acquired, err := s.sealed.Claim(ctx, id, req)
	if acquired {
		s.fences.Store(req.Attempt, rec.Fence)
	}
	return rec, acquired, err
}

func (s *sealedSuite) whole(l umavez.Lease) umavez.Lease {
	if fence, ok := s.fences.Load(l.Attempt); ok && l.Fence == 0 {
		l.Fence = fence.(umavez.Fence)
	}
	return l
}

func (s *sealedSuite) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.sealed.Checkpoint(ctx, s.whole(l), step, result)
}

func (s *sealedSuite) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.sealed.Complete(ctx, s.whole(l), answer, keep)
}

func (s *sealedSuite) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	return s.sealed.Abandon(ctx, s.whole(l), reason, last)
}

// TestContractSealed holds the sealed store to the contract of every store, with
// one key and in the middle of a change of keys.
func TestContractSealed(t *testing.T) {
	for _, ids := range [][]string{{"a"}, {"b", "a"}} {
		t.Run(strings.Join(ids, ","), func(t *testing.T) {
			open := func(t *testing.T) storetest.Opened {
				c := &suiteClock{}
				base := memstore.New(memstore.Options{Now: c.now})
				return storetest.Opened{Store: newSealedSuite(t, base, ring(t, ids...)), Advance: c.advance}
			}
			storetest.Run(t, storetest.Config{Open: open})
			// One record is settled twice here, the second time with the answer
			// that its late owner has, sealed under another fence.
			storetest.Run(t, storetest.Config{Open: open, Seed: 10650691527197231080})
		})
	}
}

// TestContractSealedWhileKeysChange: two processes, of which one has the new key
// first and the other still the old one, are two clients of one store.
func TestContractSealedWhileKeysChange(t *testing.T) {
	storetest.Run(t, storetest.Config{Open: func(t *testing.T) storetest.Opened {
		c := &suiteClock{}
		base := memstore.New(memstore.Options{Now: c.now})
		first := newSealedSuite(t, base, ring(t, "a", "b"))
		return storetest.Opened{
			Store: first, Advance: c.advance,
			Peer: func(t *testing.T) umavez.Store {
				peer := newSealedSuite(t, base, ring(t, "b", "a"))
				return &peerSuite{peer, first}
			},
		}
	}})
}

// peerSuite is a second client that knows the fences of the first one's claims.
type peerSuite struct {
	*sealedSuite
	first *sealedSuite
}

func (p *peerSuite) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	rec, acquired, err := p.sealedSuite.Claim(ctx, id, req)
	if acquired {
		p.first.fences.Store(req.Attempt, rec.Fence)
	}
	return rec, acquired, err
}

func (p *peerSuite) whole(l umavez.Lease) umavez.Lease { return p.first.whole(p.sealedSuite.whole(l)) }

func (p *peerSuite) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return p.sealedSuite.Checkpoint(ctx, p.whole(l), step, result)
}

func (p *peerSuite) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return p.sealedSuite.Complete(ctx, p.whole(l), answer, keep)
}

func (p *peerSuite) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	return p.sealedSuite.Abandon(ctx, p.whole(l), reason, last)
}

// suiteClock stands still until it is moved.
type suiteClock struct {
	mu     sync.Mutex
	passed time.Duration
}

func (c *suiteClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC).Add(c.passed)
}

func (c *suiteClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

// sealedWorld is one store, behind rings of the test's choosing.
type sealedWorld struct {
	t    *testing.T
	base *memstore.Store
	suiteClock
}

func newSealedWorld(t *testing.T) *sealedWorld {
	w := &sealedWorld{t: t}
	w.base = memstore.New(memstore.Options{Now: w.now})
	return w
}

func (w *sealedWorld) behind(ids ...string) sealed {
	return umavez.SealedStore(w.base, ring(w.t, ids...)).(sealed)
}

// claim claims a key of this name, and fails when it is not granted.
func (w *sealedWorld) claim(s umavez.Store, name string, over umavez.Fence, request []byte) umavez.Lease {
	w.t.Helper()
	id := umavez.Key{Name: name}.ID()
	req := umavez.ClaimRequest{
		Attempt: umavez.NewAttemptID(), Policy: umavez.Stepped, Lease: time.Minute, TakeOver: over, Request: request,
	}
	rec, acquired, err := s.Claim(w.t.Context(), id, req)
	if err != nil || !acquired {
		w.t.Fatalf("claim of %s: acquired %v, error %v", name, acquired, err)
	}
	return umavez.Lease{ID: id, Attempt: req.Attempt, Fence: rec.Fence}
}

func (w *sealedWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var sealedKeep = umavez.Retention{Retain: time.Hour, Tombstone: time.Hour}

// fill makes a record that holds a step, a request and a last word of its own.
func (w *sealedWorld) fill(s umavez.Store, name string) umavez.Lease {
	w.t.Helper()
	l := w.claim(s, name, 0, []byte("request of "+name))
	w.must(s.Checkpoint(w.t.Context(), l, "cobrar", []byte("charge of "+name)))
	w.must(s.Checkpoint(w.t.Context(), l, "enviar", []byte("parcel of "+name)))
	w.must(s.Abandon(w.t.Context(), l, umavez.ReasonReset, []byte("last of "+name)))
	return l
}

// bend changes what the base holds of a record, as somebody could who writes to
// the database.
func (w *sealedWorld) bend(id umavez.ID, change func(rec *umavez.Record)) {
	w.t.Helper()
	found := false
	for after := (umavez.ID{}); ; {
		last, err := w.base.Rewrite(w.t.Context(), after, 100, func(at umavez.ID, rec *umavez.Record) error {
			if at == id {
				found = true
				change(rec)
			}
			return nil
		})
		w.must(err)
		if last == (umavez.ID{}) {
			break
		}
		after = last
	}
	if !found {
		w.t.Fatal("the record to bend is not there")
	}
}

// TestNothingSealedOpensElsewhere moves each sealed text to wherever else it
// could be put: another record, another field, another step, another fence.
func TestNothingSealedOpensElsewhere(t *testing.T) {
	w := newSealedWorld(t)
	s := w.behind("a")
	mine, other := w.fill(s, "mine"), w.fill(s, "other")
	done := w.claim(s, "done", 0, nil)
	w.must(s.Complete(t.Context(), done, []byte("aprovado"), sealedKeep))
	kept := func(id umavez.ID) umavez.Record {
		rec, err := w.base.Get(t.Context(), id)
		w.must(err)
		return rec
	}
	a, b, d := kept(mine.ID), kept(other.ID), kept(done.ID)
	fenceOf := func(sealed []byte, fence umavez.Fence) []byte {
		moved := bytes.Clone(sealed)
		for i := range 8 {
			moved[4+i] = byte(fence >> (56 - 8*i))
		}
		return moved
	}
	setStep := func(result []byte) func(*umavez.Record) {
		return func(rec *umavez.Record) { rec.Steps[0].Result = result }
	}
	for _, c := range []struct {
		name string
		into umavez.Lease
		move func(rec *umavez.Record)
	}{
		{"a step of another record", mine, setStep(b.Steps[0].Result)},
		{"another step of this record", mine, setStep(a.Steps[1].Result)},
		{"a request in a step's place", mine, setStep(a.Request)},
		{"an answer in a step's place", mine, setStep(d.Answer)},
		{"a step with an earlier fence", mine, setStep(fenceOf(a.Steps[0].Result, 1))},
		{"a step with a later fence", mine, setStep(fenceOf(a.Steps[0].Result, mine.Fence+1))},
		{"a step without its frame", mine, setStep(a.Steps[0].Result[12:])},
		{"a step in plain", mine, setStep([]byte("charge of mine"))},
		{"a step that is empty", mine, setStep(nil)},
		{"a request of another record", mine, func(rec *umavez.Record) { rec.Request = b.Request }},
		{"a last word in a request's place", mine, func(rec *umavez.Record) { rec.Request = a.Last }},
		{"a request with a fence", mine, func(rec *umavez.Record) { rec.Request = fenceOf(a.Request, mine.Fence) }},
		{"a request in plain", mine, func(rec *umavez.Record) { rec.Request = []byte("request of mine") }},
		{"a last word of another record", mine, func(rec *umavez.Record) { rec.Last = b.Last }},
		{"a request in a last word's place", mine, func(rec *umavez.Record) { rec.Last = a.Request }},
		{"a last word in an answer's place", done, func(rec *umavez.Record) { rec.Answer = a.Last }},
		{"a step in an answer's place", done, func(rec *umavez.Record) { rec.Answer = a.Steps[0].Result }},
		{"an answer with another fence", done, func(rec *umavez.Record) { rec.Answer = fenceOf(d.Answer, done.Fence-1) }},
		{"an answer in plain", done, func(rec *umavez.Record) { rec.Answer = []byte("aprovado") }},
		{"no answer", done, func(rec *umavez.Record) { rec.Answer = nil }},
	} {
		before := kept(c.into.ID)
		w.bend(c.into.ID, c.move)
		rec, err := s.Get(t.Context(), c.into.ID)
		if !errors.Is(err, umavez.ErrUnreadable) || umavez.AppliedOf(err) != umavez.No || rec.Unreadable == nil {
			t.Errorf("%s: it opens: %v, record %+v", c.name, err, rec)
		}
		for _, text := range []string{"aprovado", "of mine", "of other"} {
			if strings.Contains(fmt.Sprint(err), text) {
				t.Errorf("%s: the error shows a text: %v", c.name, err)
			}
		}
		w.bend(c.into.ID, func(rec *umavez.Record) {
			rec.Answer, rec.Last, rec.Request = before.Answer, before.Last, before.Request
			rec.Steps = before.Steps
		})
		if _, err := s.Get(t.Context(), c.into.ID); err != nil {
			t.Fatalf("%s: back in its place it does not open: %v", c.name, err)
		}
	}
}

// TestAnswerOfAnEarlierClaim: a key that was released and claimed again does not
// take the answer that an earlier claim of it was settled with.
func TestAnswerOfAnEarlierClaim(t *testing.T) {
	w := newSealedWorld(t)
	s := w.behind("a")
	first := w.claim(s, "k", 0, nil)
	w.must(s.Complete(t.Context(), first, []byte("old answer"), umavez.Retention{Retain: time.Minute}))
	old, err := w.base.Get(t.Context(), first.ID)
	w.must(err)
	w.advance(2 * time.Minute)
	second := w.claim(s, "k", 0, nil)
	w.must(s.Complete(t.Context(), second, []byte("new answer"), sealedKeep))
	w.bend(second.ID, func(rec *umavez.Record) { rec.Answer = old.Answer })
	if rec, err := s.Get(t.Context(), second.ID); !errors.Is(err, umavez.ErrUnreadable) || rec.Answer != nil {
		t.Errorf("the earlier claim's answer is given: %q, %v", rec.Answer, err)
	}
}

// TestLastWordIsNoAnswer: what an attempt noted of an answer that was still going
// out does not pass for the answer, though record and fence are the same.
func TestLastWordIsNoAnswer(t *testing.T) {
	w := newSealedWorld(t)
	s := w.behind("a")
	l := w.claim(s, "k", 0, nil)
	w.must(s.Checkpoint(t.Context(), l, umavez.LastWord, []byte("half")))
	noted, err := w.base.Get(t.Context(), l.ID)
	w.must(err)
	w.must(s.Complete(t.Context(), l, []byte("whole"), sealedKeep))
	w.bend(l.ID, func(rec *umavez.Record) { rec.Answer = noted.Last })
	if rec, err := s.Get(t.Context(), l.ID); !errors.Is(err, umavez.ErrUnreadable) || rec.Answer != nil {
		t.Errorf("the last word is given as the answer: %q, %v", rec.Answer, err)
	}
}

// TestStepOfALaterClaim: a step that was kept under a later claim of the key is
// not taken for one that this claim, or one before it, has kept.
func TestStepOfALaterClaim(t *testing.T) {
	now, later := newSealedWorld(t), newSealedWorld(t)
	later.advance(time.Hour) // so that its fences are higher
	mine := now.fill(now.behind("a"), "k")
	theirs := later.fill(later.behind("a"), "k")
	rec, err := later.base.Get(t.Context(), theirs.ID)
	now.must(err)
	if theirs.ID != mine.ID || theirs.Fence <= mine.Fence {
		t.Fatalf("fences %d and %d; want the second one higher", mine.Fence, theirs.Fence)
	}
	now.bend(mine.ID, func(bent *umavez.Record) { bent.Steps[0].Result = rec.Steps[0].Result })
	if rec, err := now.behind("a").Get(t.Context(), mine.ID); !errors.Is(err, umavez.ErrUnreadable) {
		t.Errorf("it opens: %q, %v", rec.Steps, err)
	}
}

// TestStepsOutliveTheirClaim: a takeover reads what earlier claims kept.
func TestStepsOutliveTheirClaim(t *testing.T) {
	w := newSealedWorld(t)
	s := w.behind("a")
	first := w.fill(s, "k")
	second := w.claim(s, "k", first.Fence, nil)
	w.must(s.Checkpoint(t.Context(), second, "avisar", []byte("mail")))
	w.must(s.Checkpoint(t.Context(), second, "cobrar", []byte("charge of k"))) // kept already, under another fence
	if err := s.Checkpoint(t.Context(), second, "cobrar", []byte("another charge")); !errors.Is(err, umavez.ErrStepKept) {
		t.Errorf("another result for a kept step: %v, want ErrStepKept", err)
	}
	rec, err := s.Get(t.Context(), first.ID)
	w.must(err)
	if got := fmt.Sprintf("%q %q", rec.Steps, rec.Request); got != `[{"cobrar" "charge of k"} {"enviar" "parcel of k"} {"avisar" "mail"}] "request of k"` {
		t.Errorf("the record holds %s", got)
	}
}

// TestUnreadableSteps: a claim that is granted does not run on steps that it
// cannot read, and the record is there for whoever can.
func TestUnreadableSteps(t *testing.T) {
	w := newSealedWorld(t)
	first := w.fill(w.behind("a"), "k")
	s := w.behind("b")
	req := umavez.ClaimRequest{Attempt: umavez.NewAttemptID(), Policy: umavez.Stepped, Lease: time.Minute}
	rec, acquired, err := s.Claim(t.Context(), first.ID, req)
	if err != nil || acquired || rec.State != umavez.Lost || !errors.Is(rec.Unreadable, umavez.ErrUnreadable) ||
		len(rec.Steps) != 2 || rec.Steps[0].Name != "cobrar" || rec.Steps[0].Result != nil || rec.Last != nil {
		t.Fatalf("acquired %v, error %v, record %+v; want it lost, with nothing in it but the steps' names", acquired, err, rec)
	}
	req.TakeOver = first.Fence
	rec, acquired, err = s.Claim(t.Context(), first.ID, req)
	if acquired || !errors.Is(err, umavez.ErrUnreadable) || umavez.AppliedOf(err) != umavez.No {
		t.Fatalf("takeover: acquired %v, error %v, record %+v", acquired, err, rec)
	}
	kept, err := w.base.Get(t.Context(), first.ID)
	w.must(err)
	if kept.State != umavez.Lost || kept.Reason != umavez.ReasonUnreadable || len(kept.Steps) != 2 {
		t.Fatalf("the record is %v (%s), want it given up, with its steps", kept.State, kept.Reason)
	}
	able := w.behind("a")
	second := w.claim(able, "k", kept.Fence, nil)
	if rec, err = able.Get(t.Context(), second.ID); err != nil || string(rec.Steps[0].Result) != "charge of k" {
		t.Errorf("with the key: %v, record %+v", err, rec)
	}
}

// TestRepeatsAcrossAChangeOfKeys: a call that is repeated by a process with
// another key first is the same call.
func TestRepeatsAcrossAChangeOfKeys(t *testing.T) {
	w := newSealedWorld(t)
	before, after, only := w.behind("a", "b"), w.behind("b", "a"), w.behind("b")
	l := w.claim(before, "k", 0, []byte("request"))
	w.must(before.Checkpoint(t.Context(), l, "cobrar", []byte("charge")))
	w.must(after.Checkpoint(t.Context(), l, "cobrar", []byte("charge")))
	if err := after.Checkpoint(t.Context(), l, "cobrar", []byte("other")); !errors.Is(err, umavez.ErrStepKept) {
		t.Errorf("another result: %v, want ErrStepKept", err)
	}
	w.must(before.Complete(t.Context(), l, []byte("aprovado"), sealedKeep))
	w.must(after.Complete(t.Context(), l, []byte("aprovado"), sealedKeep))
	for name, err := range map[string]error{
		"another answer":                      after.Complete(t.Context(), l, []byte("negado"), sealedKeep),
		"a stranger":                          after.Complete(t.Context(), umavez.Lease{ID: l.ID, Attempt: umavez.NewAttemptID(), Fence: l.Fence}, []byte("aprovado"), sealedKeep),
		"the same, which cannot be told here": only.Complete(t.Context(), l, []byte("aprovado"), sealedKeep),
	} {
		if !errors.Is(err, umavez.ErrLeaseLost) {
			t.Errorf("%s: %v, want ErrLeaseLost", name, err)
		}
	}
	if rec, err := after.Get(t.Context(), l.ID); err != nil || string(rec.Answer) != "aprovado" {
		t.Errorf("the record: %v, answer %q", err, rec.Answer)
	}
}

// failingGet is a store whose reads fail, and so is every look behind a refusal.
type failingGet struct{ *memstore.Store }

func (failingGet) Get(context.Context, umavez.ID) (umavez.Record, error) {
	return umavez.Record{}, &umavez.StoreError{Op: "get", Applied: umavez.No, Err: errors.New("away")}
}

// TestRefusalThatCannotBeJudged: as long as nobody knows whether the refused
// answer is the kept one, it is not lost.
func TestRefusalThatCannotBeJudged(t *testing.T) {
	w := newSealedWorld(t)
	before := w.behind("a")
	l := w.claim(before, "k", 0, nil)
	w.must(before.Complete(t.Context(), l, []byte("aprovado"), sealedKeep))
	after := umavez.SealedStore(failingGet{w.base}, ring(t, "b"))
	err := after.Complete(t.Context(), l, []byte("aprovado"), sealedKeep)
	if errors.Is(err, umavez.ErrLeaseLost) || err == nil {
		t.Errorf("answered %v, want the failure of the read", err)
	}
}

// TestSameAnswerIsNoContradiction: a late owner with another key first, whose
// record was settled with its own answer, contradicts nobody; with another
// answer it does.
func TestSameAnswerIsNoContradiction(t *testing.T) {
	for answer, want := range map[string]int{"aprovado": 1, "negado": 2} {
		w := newSealedWorld(t)
		owner, settler := w.behind("b", "a"), w.behind("a", "b")
		l := w.claim(owner, "k", 0, nil)
		w.advance(time.Hour)
		w.must(settler.Settle(t.Context(), l.ID, umavez.Settlement{
			ID: umavez.NewAttemptID(), Action: umavez.ActionHappened, Fence: l.Fence,
			Answer: []byte("aprovado"), Keep: sealedKeep, Who: "ana", Why: "seen at the gateway",
		}))
		err := owner.Complete(t.Context(), l, []byte(answer), sealedKeep)
		if !errors.Is(err, umavez.ErrLeaseLost) || errors.Is(err, umavez.ErrContradicted) != (answer == "negado") {
			t.Errorf("late with %q: %v", answer, err)
		}
		if trail, err := owner.Trail(t.Context(), l.ID); err != nil || len(trail) != want {
			t.Errorf("late with %q: the audit trail has %d entries, want %d; %v", answer, len(trail), want, err)
		}
		if rec, err := owner.Get(t.Context(), l.ID); err != nil || string(rec.Answer) != "aprovado" {
			t.Errorf("late with %q: answer %q, %v", answer, rec.Answer, err)
		}
	}
}

// brokenSealer seals nothing.
type brokenSealer struct{ umavez.Sealer }

func (brokenSealer) Seal(_, _ []byte) ([]byte, error) { return nil, errors.New("no entropy") }

// TestWhatCannotBeSealedIsNotWritten: never in plain instead.
func TestWhatCannotBeSealedIsNotWritten(t *testing.T) {
	w := newSealedWorld(t)
	good := w.behind("a")
	bad := umavez.SealedStore(w.base, brokenSealer{ring(t, "a")}).(sealed)
	l := w.claim(good, "k", 0, nil)
	_, acquired, err := bad.Claim(t.Context(), umavez.Key{Name: "n"}.ID(),
		umavez.ClaimRequest{Attempt: umavez.NewAttemptID(), Lease: time.Minute, Request: []byte("r")})
	if acquired {
		t.Error("claimed, with a request that was not sealed")
	}
	for name, err := range map[string]error{
		"claim":      err,
		"checkpoint": bad.Checkpoint(t.Context(), l, "cobrar", []byte("s")),
		"last word":  bad.Checkpoint(t.Context(), l, umavez.LastWord, []byte("s")),
		"complete":   bad.Complete(t.Context(), l, []byte("s"), sealedKeep),
		"abandon":    bad.Abandon(t.Context(), l, umavez.ReasonReset, []byte("s")),
		"settle":     bad.Settle(t.Context(), l.ID, umavez.Settlement{Action: umavez.ActionHappened, Fence: l.Fence, Answer: []byte("s")}),
	} {
		if err == nil || umavez.AppliedOf(err) != umavez.No {
			t.Errorf("%s: %v, want a StoreError that says that nothing was written", name, err)
		}
	}
	if rec, err := w.base.Get(t.Context(), l.ID); err != nil || rec.State != umavez.Running || len(rec.Steps) != 0 || rec.Last != nil {
		t.Errorf("the record is %+v, %v", rec, err)
	}
}

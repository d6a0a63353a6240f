package keys

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// answerOf is the answer that a record holds.
func (s *shop) answerOf(l umavez.Lease) (a umavezhttp.Answer) {
	s.t.Helper()
	rec, err := s.store.Get(s.t.Context(), l.ID)
	s.must(err)
	s.must(a.UnmarshalBinary(rec.Answer))
	return a
}

// TestSettleHappened: every attempt gets the answer that was given.
func TestSettleHappened(t *testing.T) {
	s := newShop(t)
	s.desk.Keep = func(route string) umavez.Retention {
		if route != "POST /pagamentos" {
			t.Errorf("kept for the route %q", route)
		}
		return umavez.Retention{Retain: 48 * time.Hour, Tombstone: time.Hour}
	}
	for name, desk := range s.carriers() {
		l := s.unknown("happened " + name)
		s.must(settle(t.Context(), desk, Change{
			ID: refTo(l), Action: "happened", Status: 201,
			Header: []string{"Location: /pagamentos/7", "x-pedido:42", "X-Pedido: 43"}, Body: []byte(`{"id":7}`),
		}))
		a := s.answerOf(l)
		if a.Status != 201 || string(a.Body) != `{"id":7}` || a.Kept != umavezhttp.KeptWhole {
			t.Errorf("%s: %+v", name, a)
		}
		want := "map[Content-Type:[application/json] Location:[/pagamentos/7] X-Pedido:[42 43]]"
		if got := fmt.Sprint(a.Header); got != want {
			t.Errorf("%s: header %s, want %s", name, got, want)
		}
		shown := show(t, desk, refTo(l))
		if shown.State != "done" || !shown.Settled || shown.AnswerStatus != 201 || shown.Retain != 48*3600 {
			t.Errorf("%s: shown as %+v", name, shown)
		}
		who := "ana@caixa"
		if name == "remote" {
			who += " via admin"
		}
		if e := shown.Trail[0]; len(shown.Trail) != 1 || e.Action != "happened" || e.Who != who || e.Why != "found in the gateway's ledger" ||
			e.Before != "lost" || e.BeforeReason != "5xx" || e.After != "done" || e.Fence != int64(l.Fence) || e.At != "2026-03-01T12:00:00Z" {
			t.Errorf("%s: trail %+v", name, shown.Trail)
		}
	}
}

// TestBodiesSayWhatTheyAre, where nobody says it in a header.
func TestBodiesSayWhatTheyAre(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":1}`: "[application/json]", "ok?": "[text/plain; charset=utf-8]", "\xff": "[application/octet-stream]", "": "[]",
	} {
		s := newShop(t)
		l := s.unknown("k")
		s.must(settle(t.Context(), s.desk, Change{ID: refTo(l), Action: "happened", Status: 200, Body: []byte(body)}))
		if got := fmt.Sprint(s.answerOf(l).Header["Content-Type"]); got != want {
			t.Errorf("%q is %s, want %s", body, got, want)
		}
	}
}

// TestChangesThatMakeNoSense are refused before anything is looked at.
func TestChangesThatMakeNoSense(t *testing.T) {
	s := newShop(t)
	l := s.unknown("k")
	happened := func(status int, body string, header ...string) Change {
		return Change{Action: "happened", Status: status, Body: []byte(body), Header: header}
	}
	for _, c := range []struct {
		change Change
		says   string
	}{
		{Change{ID: l.ID.String(), Action: "park"}, "ends before its fence"},
		{Change{ID: "abc.1", Action: "park"}, "has 64 hexadecimal digits"},
		{Change{ID: refTo(l)[:65] + "0", Action: "forget"}, "is a number from 1 up"},
		{Change{Action: "cancel"}, `action "cancel": must be happened, cannot-happen, park or forget`},
		{Change{Action: "contradicted"}, "must be happened"},
		{Change{Action: "park", Reason: " \n"}, "--reason: must say why"},
		{Change{Action: "park", Reason: strings.Repeat("x", MaxReason+1)}, "--reason: must say why"},
		{Change{Action: "park", Who: strings.Repeat("x", umavez.MaxWho+1)}, "must say who"},
		{Change{Action: "park", Reason: "a\xff"}, "must be text in UTF-8"},
		{Change{Action: "park", Who: "a\x00"}, "must be text in UTF-8"},
		{Change{Action: "park", Force: true}, "--force: goes with --cannot-happen only"},
		{Change{Action: "cannot-happen", Status: 201}, "go with --happened only"},
		{Change{Action: "park", Settlement: "1"}, "must be 32 hexadecimal digits"},
		{happened(0, ""), "--status is missing"},
		{happened(199, ""), "--status 199: must be from 200 to 599"},
		{happened(206, "a"), "--status 206: must be"},
		{happened(304, ""), "--status 304: must be"},
		{happened(600, ""), "--status 600: must be"},
		{happened(204, "a"), "--status 204: goes without --body"},
		{happened(201, strings.Repeat("x", MaxBody+1)), "--body: has 1048577 bytes, at most 1048576"},
		{happened(201, "", "Location"), "must be 'Name: value'"},
		{happened(201, "", "Loc ation: x"), "must be 'Name: value'"},
		{happened(201, "", "X: a\r\nSet-Cookie: b"), "must be 'Name: value'"},
		{happened(201, "", "Set-Cookie: a=b"), "is not replayed"},
		{happened(201, "", "content-length: 3"), "is not replayed"},
	} {
		for name, desk := range s.carriers() {
			if c.change.ID == "" {
				c.change.ID = refTo(l)
			}
			refused(t, name, settle(t.Context(), desk, c.change), CodeUsage, c.says)
		}
	}
	if shown := show(t, s.desk, refTo(l)); shown.State != "unknown" || len(shown.Trail) != 0 {
		t.Errorf("something was changed: %+v", shown)
	}
}

// TestTwoOperators: of two who settle one key from the same listing, one does,
// and the other is told what became of it. Nothing of hers is in the trail.
func TestTwoOperators(t *testing.T) {
	s := newShop(t)
	for name, desk := range s.carriers() {
		l := s.unknown("two " + name)
		s.later(3 * time.Minute)
		s.must(settle(t.Context(), desk, Change{ID: refTo(l), Action: "happened", Status: 201, Who: "ana"}))
		s.later(2 * time.Minute)
		err := settle(t.Context(), desk, Change{ID: refTo(l), Action: "cannot-happen", Force: true, Who: "bia"})
		refused(t, name, err, CodeMoved, "the record has moved: it was lost (5xx) when it was listed, it is done now (happened by ana",
			"2m ago: found in the gateway's ledger)")
		if shown := show(t, desk, refTo(l)); len(shown.Trail) != 1 || shown.AnswerStatus != 201 {
			t.Errorf("%s: shown as %+v", name, shown)
		}
	}
}

// TestManyOperatorsAtOnce: whoever is first, there is one settlement.
func TestManyOperatorsAtOnce(t *testing.T) {
	s := newShop(t)
	l := s.unknown("k")
	done := make([]error, 16)
	var all sync.WaitGroup
	for i := range done {
		all.Go(func() {
			c := Change{ID: refTo(l), Action: "happened", Status: 201, Who: fmt.Sprint("operator ", i)}
			if i%2 == 0 {
				c.Action, c.Status, c.Force = "cannot-happen", 0, true
			}
			done[i] = settle(context.Background(), s.desk, c)
		})
	}
	all.Wait()
	n := 0
	for _, err := range done {
		if err == nil {
			n++
		} else if code, _ := codeOf(err); code != CodeMoved {
			t.Errorf("refused with %v", err)
		}
	}
	if shown := show(t, s.desk, refTo(l)); n != 1 || len(shown.Trail) != 1 {
		t.Errorf("%d settled it, and the trail is %+v", n, shown.Trail)
	}
}

// TestLostReply: the same settlement again changes nothing and is no error, and
// an equal one of somebody else is refused.
func TestLostReply(t *testing.T) {
	s := newShop(t)
	for name, desk := range s.carriers() {
		l := s.unknown("reply " + name)
		c := Change{ID: refTo(l), Action: "happened", Status: 201, Settlement: umavez.NewAttemptID().String()}
		s.must(settle(t.Context(), desk, c))
		s.must(settle(t.Context(), desk, c))
		c.Settlement = umavez.NewAttemptID().String()
		refused(t, name, settle(t.Context(), desk, c), CodeMoved)
		if n := len(show(t, desk, refTo(l)).Trail); n != 1 {
			t.Errorf("%s: %d entries, want 1", name, n)
		}
	}
}

// TestLiveLeaseIsNeverSettled, whatever is said and forced.
func TestLiveLeaseIsNeverSettled(t *testing.T) {
	s := newShop(t)
	l := s.claim("k")
	for name, desk := range s.carriers() {
		for _, c := range []Change{{Action: "happened", Status: 201}, {Action: "cannot-happen", Force: true}, {Action: "park"}} {
			c.ID = refTo(l)
			refused(t, name+" "+c.Action, settle(t.Context(), desk, c), CodeLive, "it is running", "another 15s")
		}
		refused(t, name, settle(t.Context(), desk, Change{ID: refTo(l), Action: "forget"}), CodeMoved, "it is running now: only what is done can be forgotten")
	}
	if shown := show(t, s.desk, refTo(l)); shown.State != "running" || len(shown.Trail) != 0 {
		t.Errorf("shown as %+v", shown)
	}
}

// TestQuiet: that it cannot happen is said too early for ten minutes after the
// loss, or for as long as an attempt may run, and by force only then.
func TestQuiet(t *testing.T) {
	s := newShop(t)
	for name, desk := range s.carriers() {
		l := s.unknown("quiet " + name)
		c := Change{ID: refTo(l), Action: "cannot-happen"}
		s.later(10*time.Minute - time.Second)
		refused(t, name, settle(t.Context(), desk, c), CodeNotQuiet, "it was lost 9m59s ago", "on its way for 10m", "--force")
		s.later(time.Second)
		s.must(settle(t.Context(), desk, c))
		if shown := show(t, desk, refTo(l)); shown.State != "vacant" || shown.Trail[0].After != "vacant" {
			t.Errorf("%s: shown as %+v", name, shown)
		}
		l = s.unknown("force " + name)
		s.must(settle(t.Context(), desk, Change{ID: refTo(l), Action: "cannot-happen", Force: true}))
	}
	l := s.unknown("said")
	s.later(time.Hour)
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Change{Action: "park"}, ": unknown (5xx) → unknown (parked)\n"},
		{Change{Action: "cannot-happen"}, ": unknown (parked) → vacant\n  went by a quiet time of 10m since the loss\n"},
	} {
		c.change.ID, c.change.Who, c.change.Reason = refTo(l), "ana", "r"
		done, err := s.carriers()["remote"].Settle(t.Context(), c.change)
		s.must(err)
		var text strings.Builder
		s.must(done.Text(&text))
		if text.String() != refTo(l)+c.want {
			t.Errorf("it says %q, want %q", text.String(), c.want)
		}
	}
	l = s.unknown("long")
	s.later(30 * time.Minute)
	slow := s.over(umavez.Options{MaxRun: time.Hour})
	refused(t, "max-run", settle(t.Context(), slow, Change{ID: refTo(l), Action: "cannot-happen"}), CodeNotQuiet, "for 1h")
}

// TestMovedInOtherWays: the refusal says what is known.
func TestMovedInOtherWays(t *testing.T) {
	s := newShop(t)
	ctx := t.Context()
	late := s.unknown("late")
	s.must(s.store.Complete(ctx, late, stored(t, 201, "late"), umavez.Retention{Retain: time.Hour}))
	refused(t, "completed late", settle(ctx, s.desk, Change{ID: refTo(late), Action: "happened", Status: 200}), CodeMoved,
		"it was running or lost when it was listed, it is done now (its own attempt completed it, 0s ago)")

	again := s.unknown("again")
	s.must(settle(ctx, s.desk, Change{ID: refTo(again), Action: "cannot-happen", Force: true}))
	s.claim("again", func(r *umavez.ClaimRequest) { r.Attempt = umavez.AttemptID{2} })
	refused(t, "claimed again", settle(ctx, s.desk, Change{ID: refTo(again), Action: "park"}), CodeMoved,
		"it is running now (another attempt has claimed it since)")

	refused(t, "never there", settle(ctx, s.desk, Change{ID: umavez.Ref{Fence: 1}.String(), Action: "park"}), CodeNotFound, "there is no such record")
	_, err := s.desk.Show(ctx, umavez.ID{}.String())
	refused(t, "never there", err, CodeNotFound, "there is no such record")
	_, err = s.desk.Show(ctx, "k")
	refused(t, "no ID", err, CodeUsage, "64 hexadecimal digits")
}

// TestForget: the answer goes, the tombstone and the trail stay.
func TestForget(t *testing.T) {
	s := newShop(t)
	for name, desk := range s.carriers() {
		l := s.done("forget " + name)
		s.must(settle(t.Context(), desk, Change{ID: refTo(l), Action: "forget", Reason: "the customer asked"}))
		shown := show(t, desk, refTo(l))
		if shown.State != "expired" || shown.AnswerBytes != 0 || shown.Trail[0].Action != "forget" || shown.Trail[0].Before != "done" {
			t.Errorf("%s: shown as %+v", name, shown)
		}
		u := s.unknown("no " + name)
		refused(t, name, settle(t.Context(), desk, Change{ID: refTo(u), Action: "forget"}), CodeMoved, "it is unknown now: only what is done can be forgotten")
	}
}

// TestPurge drops what is over, however much that is.
func TestPurge(t *testing.T) {
	s := newShop(t)
	for i := range purgeBatch*purgeBatches + 7 {
		s.done(fmt.Sprint("k", i))
	}
	s.unknown("stays")
	s.later(3 * time.Hour)
	rows, rounds := 0, 0
	for more := true; more; rounds++ {
		p, err := s.carriers()["remote"].Purge(t.Context())
		s.must(err)
		rows, more = rows+p.Rows, p.More
	}
	if rows != purgeBatch*purgeBatches+7 || rounds != 2 {
		t.Errorf("%d rows in %d rounds", rows, rounds)
	}
	if left := all(t, s.desk, Filter{}); len(left) != 1 || left[0].State != "unknown" {
		t.Errorf("left: %+v", left)
	}
}

// TestChangesThatFail say whether they may have been made all the same.
func TestChangesThatFail(t *testing.T) {
	s := newShop(t)
	s.store = memstore.New(memstore.Options{Now: s.clock, MaxAudit: 1})
	s.desk = s.over(umavez.Options{})
	s.must(settle(t.Context(), s.desk, Change{ID: refTo(s.unknown("a")), Action: "park"}))
	b := refTo(s.unknown("b"))
	refused(t, "full", settle(t.Context(), s.desk, Change{ID: b, Action: "park"}), CodeFailed, "umavez: the change was not made: ")
	engine, err := umavez.New(lost{s.store}, umavez.Options{SaveTimeout: time.Millisecond})
	s.must(err)
	s.desk.Engine = engine
	refused(t, "lost", settle(t.Context(), s.desk, Change{ID: b, Action: "park"}), CodeFailed, "it is not known whether the change was made; show tells")
}

// lost is a store whose answers to settlements get lost.
type lost struct{ *memstore.Store }

func (lost) Settle(context.Context, umavez.ID, umavez.Settlement) error {
	return &umavez.StoreError{Op: "settle", Err: context.DeadlineExceeded}
}

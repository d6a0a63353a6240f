package browsertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestDemoAtADesk is the whole story in English, on a wide screen.
func TestDemoAtADesk(t *testing.T) {
	p := open(t, desktop, "en")
	s := &story{page: p, words: english, press: p.pressButton}
	s.withKeys(t)
	p.picture(t, "demo-desktop.png")
	s.withoutKeys(t)
}

// TestDemoOnAPhone is the same in Brazilian Portuguese, on a narrow screen.
func TestDemoOnAPhone(t *testing.T) {
	p := open(t, phone, "pt-BR")
	s := &story{page: p, words: portuguese, press: p.pressButton}
	s.withKeys(t)
	p.picture(t, "demo-phone-pt-BR.png")
	p.typeAt(t, portuguese.other) // a finger leaves a glow, which would be in the picture
	if read := p.waitFor(t, `s.lang === "en"`); read.Numbers["protected"] != english.number(4, 4) {
		t.Errorf("in English the page shows %+v", read)
	}
	p.fits(t)
	p.picture(t, "demo-phone.png")
	p.pressButton(t, english.other)
	p.waitFor(t, `s.lang === "pt-BR"`)
	s.withoutKeys(t)
}

// story is what happens to payments on the page. Each is made, meets its trouble,
// and is sent once more.
type story struct {
	*page
	words *words
	// press presses the first button of a name: by a mouse, or by keys.
	press func(t *testing.T, name string)
	// made is how many payments there are.
	made int
}

// withKeys: the unprotected side charges for every attempt, also of a server that
// was killed; the protected one once for each payment.
func (s *story) withKeys(t *testing.T) {
	t.Helper()
	w := s.words
	if first := s.waitReady(t, w, 0); first.Lang != w.lang {
		t.Errorf("the page is in %q, want %q", first.Lang, w.lang)
	}
	s.accessible(t)

	s.expect(t, s.pay(t, w.pay), 1, 1, sides{{w.once, w.approved}, {w.once, w.approved}})
	s.expect(t, s.pay(t, w.twice), 3, 2, sides{{w.charged2, w.approved, w.approved}, {w.once, w.approved, w.kept}})

	s.expect(t, s.pay(t, w.drop), 4, 3, sides{{w.once, w.doubt}, {w.once, w.doubt}})
	s.expect(t, s.retry(t), 5, 3, sides{{w.charged2, w.doubt, w.approved}, {w.once, w.doubt, w.approved}})

	s.expect(t, s.killed(t), 6, 4, sides{{w.once, w.noAnswer}, {w.once, w.noAnswer}})
	last := s.retry(t)
	s.expect(t, last, 7, 4, sides{{w.charged2, w.noAnswer, w.approved}, {w.once, w.noAnswer, w.approved}})
	for _, one := range last.Payments {
		if one.State != w.done {
			t.Errorf("%s is %q at the end, want %q", one.Title, one.State, w.done)
		}
	}
}

// withoutKeys: this gateway tells no two attempts from one, so the payment that was
// killed stays unknown until somebody asks; nothing is charged twice.
func (s *story) withoutKeys(t *testing.T) {
	t.Helper()
	w := s.words
	s.press(t, w.without)
	s.waitFor(t, "s.switched && s.payments.length === 0")
	s.made = 0
	s.waitReady(t, w, 0)

	s.expect(t, s.killed(t), 1, 1, sides{{w.once, w.noAnswer}, {w.once, w.noAnswer}})
	lost := s.retry(t)
	s.expect(t, lost, 2, 1, sides{{w.charged2, w.noAnswer, w.approved}, {w.once, w.noAnswer, w.nobody}})
	if got := lost.Payments[0]; got.State != w.unknown || !slices.Contains(got.Buttons, w.settle) {
		t.Fatalf("the killed payment is %q with %q, want %q and a button that settles it", got.State, got.Buttons, w.unknown)
	}

	s.press(t, w.settle)
	s.waitFor(t, fmt.Sprintf("s.payments[0].state === %q", w.done))
	settled := s.waitReady(t, w, 1)
	s.expect(t, settled, 2, 1, sides{{w.charged2, w.noAnswer, w.approved}, {w.once, w.noAnswer, w.nobody}})
	if says := settled.Payments[0].Says; !strings.Contains(says, w.settled) {
		t.Errorf("of the settled payment the page says %q, want %q", says, w.settled)
	}
	s.expect(t, s.retry(t), 3, 1, sides{{w.charged3, w.noAnswer, w.approved, w.approved}, {w.once, w.noAnswer, w.nobody, w.kept}})
}

// pay makes a payment and waits for what comes of it.
func (s *story) pay(t *testing.T, button string) shown {
	t.Helper()
	s.press(t, button)
	s.made++
	return s.waitReady(t, s.words, s.made)
}

// killed makes a payment whose servers are killed in the middle, and looks whether
// they were.
func (s *story) killed(t *testing.T) shown {
	t.Helper()
	roles := []string{"unprotected", "protected", "gateway"}
	before := make(map[string]int)
	for _, role := range roles {
		before[role] = s.demo.process(t, role)
	}
	got := s.pay(t, s.words.kill)
	for _, role := range roles {
		if before[role] == 0 {
			continue
		}
		now := s.demo.process(t, role)
		if killed := now != before[role]; killed != (role != "gateway") {
			t.Errorf("the %s process was %d and is %d", role, before[role], now)
		}
	}
	for side, says := range got.Alive {
		if says != s.words.alive {
			t.Errorf("of the %s server the page says %q, want %q", side, says, s.words.alive)
		}
	}
	return got
}

// retry sends the latest payment once more, and waits for its answers.
func (s *story) retry(t *testing.T) shown {
	t.Helper()
	lines := s.read(t).Payments[0].Sides["protected"]
	s.press(t, s.words.retry)
	s.waitFor(t, fmt.Sprintf("s.payments[0].sides.protected.length === %d", len(lines)+1))
	return s.waitReady(t, s.words, s.made)
}

// sides are the lines of the latest payment: of the unprotected side, and of the
// protected one. The first says how often it was charged; of attempts that were
// made at once either may come first.
type sides [2][]string

// expect holds the numbers at the top, and the latest payment, against what must
// be there.
func (s *story) expect(t *testing.T, got shown, unprotected, protected int, latest sides) {
	t.Helper()
	for side, charges := range map[string]int{"unprotected": unprotected, "protected": protected} {
		if want := s.words.number(charges, s.made); got.Numbers[side] != want {
			t.Errorf("the %s number is %q, want %q", side, got.Numbers[side], want)
		}
	}
	for i, side := range []string{"unprotected", "protected"} {
		lines := slices.Clone(got.Payments[0].Sides[side])
		if len(lines) > 0 {
			slices.Sort(lines[1:])
		}
		want := slices.Clone(latest[i])
		slices.Sort(want[1:])
		if !slices.Equal(lines, want) {
			t.Errorf("the latest payment's %s side shows %q, want %q", side, lines, want)
		}
	}
	if t.Failed() {
		t.Fatalf("the page shows:\n%s", s.describe(t))
	}
	s.fits(t)
}

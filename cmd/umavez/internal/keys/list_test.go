package keys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/umavez/umavez"
)

// everyState fills a shop with a key in each state, all an hour apart.
func everyState(t *testing.T) *shop {
	t.Helper()
	s := newShop(t)
	expired := s.done("expired")
	s.later(90 * time.Minute)
	settled := s.unknown("settled")
	s.later(10 * time.Minute)
	s.must(settle(t.Context(), s.desk, Change{ID: refTo(settled), Action: "happened", Status: 201, Body: []byte(`{"id":7}`)}))
	s.later(time.Second)
	if err := s.store.Complete(t.Context(), settled, stored(t, 409, "no"), umavez.Retention{}); err == nil {
		t.Fatal("a late owner that says otherwise was not told so")
	}
	s.unknown("unknown", func(r *umavez.ClaimRequest) {
		r.Label = `"default" "5:basic,3:ana," "unknown"`
		r.Request = []byte("kept")
	})
	stepped := s.claim("stepped", func(r *umavez.ClaimRequest) { r.Policy = umavez.Stepped; r.Route = "POST /pedidos/{id}/estorno" })
	s.must(s.store.Checkpoint(t.Context(), stepped, "cobrar", []byte("1")))
	s.must(s.store.Checkpoint(t.Context(), stepped, "emitir", []byte("2")))
	parked := s.claim("parked", func(r *umavez.ClaimRequest) { r.Policy = umavez.Rerunnable })
	s.later(time.Minute) // the leases of both run out
	s.must(s.store.Hold(t.Context(), stepped.ID, stepped.Fence, umavez.AttemptID{1}, 30*time.Second))
	s.must(settle(t.Context(), s.desk, Change{ID: refTo(parked), Action: "park", Reason: "the gateway is away until Monday"}))
	s.later(time.Second)
	s.claim("running")
	s.must(s.store.Abandon(t.Context(), s.claim("long", func(r *umavez.ClaimRequest) {
		r.Route = strings.Repeat("/long", 20)
		r.Namespace = "other"
	}), umavez.ReasonStepInDoubt, nil))
	_ = expired
	return s
}

// TestGoldenList: the table and the JSON are contracts.
func TestGoldenList(t *testing.T) {
	s := everyState(t)
	for name, desk := range s.carriers() {
		t.Run(name, func(t *testing.T) {
			keys := all(t, desk, Filter{})
			var table, lines bytes.Buffer
			TableHead(&table)
			for i := range keys {
				TableRow(&table, &keys[i])
				line, err := json.Marshal(keys[i])
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&lines, "%s\n", line)
			}
			golden(t, "list.txt", table.String())
			golden(t, "list.jsonl", lines.String())
			for line := range strings.Lines(table.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("a line of the table has %d columns: %s", n, line)
				}
			}
		})
	}
}

// TestGoldenShow: one of each kind, for people and for scripts.
func TestGoldenShow(t *testing.T) {
	s := everyState(t)
	for name, desk := range s.carriers() {
		t.Run(name, func(t *testing.T) {
			var text, documents strings.Builder
			for _, key := range []string{"expired", "settled", "unknown", "stepped", "parked", "running", "long"} {
				id := umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: "ana"}, Name: key}.ID()
				shown := show(t, desk, id.String())
				fmt.Fprintf(&text, "$ umavez keys show %s\n", key)
				if err := shown.Text(&text); err != nil {
					t.Fatal(err)
				}
				text.WriteString("\n")
				documents.WriteString(asJSON(t, shown))
			}
			golden(t, "show.txt", text.String())
			golden(t, "show.json", documents.String())
		})
	}
}

// TestFilters: each filter alone finds what it is for, also a page at a time.
func TestFilters(t *testing.T) {
	s := everyState(t)
	scope := umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: "ana"}, Name: "x"}.ScopeID().String()
	names := map[string]string{}
	for _, key := range []string{"expired", "settled", "unknown", "stepped", "parked", "running", "long"} {
		names[umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: "ana"}, Name: key}.ID().String()] = key
	}
	for _, c := range []struct {
		filter Filter
		want   string
	}{
		{Filter{}, "expired long parked running settled stepped unknown"},
		{Filter{States: []string{"unknown"}}, "long parked unknown"},
		{Filter{States: []string{"lost"}}, "stepped"},
		{Filter{States: []string{"lost", "unknown"}}, "long parked stepped unknown"},
		{Filter{States: []string{"unknown", "running"}}, "long parked running unknown"},
		{Filter{States: []string{"running"}}, "running"},
		{Filter{States: []string{"done"}}, "settled"},
		{Filter{States: []string{"expired", "done"}}, "expired settled"},
		{Filter{Reason: "parked"}, "parked"},
		{Filter{Reason: "killed"}, "stepped"},
		{Filter{Reason: "nonsense"}, ""},
		{Filter{Route: "POST /pedidos/{id}/estorno"}, "stepped"},
		{Filter{Namespace: "other"}, "long"},
		{Filter{Namespace: "loja", Scope: scope}, "expired parked running settled stepped unknown"},
		{Filter{OlderThan: time.Hour}, "expired"},
	} {
		for carrier, desk := range s.carriers() {
			for _, limit := range []int{0, 1, 2} {
				f := c.filter
				f.Limit = limit
				var got []string
				for _, k := range all(t, desk, f) {
					id, _, _ := strings.Cut(k.ID, ".")
					got = append(got, names[id])
				}
				slices.Sort(got)
				if text := strings.Join(got, " "); text != c.want {
					t.Errorf("%s: %+v: %s, want %s", carrier, f, text, c.want)
				}
			}
		}
	}
}

func TestFiltersThatMakeNoSense(t *testing.T) {
	s := newShop(t)
	for carrier, desk := range s.carriers() {
		for says, f := range map[string]Filter{
			"--state gone: must be unknown, lost, running, done or expired": {States: []string{"done", "gone"}},
			"--scope abc: must be the 32 hexadecimal digits":                {Scope: "abc"},
			"--older-than -1s: must not be negative":                        {OlderThan: -time.Second},
			"--limit -1: must be 1 or more":                                 {Limit: -1},
			"after zz: must be what the page before said":                   {After: "zz"},
		} {
			_, err := desk.List(t.Context(), f)
			refused(t, carrier, err, CodeUsage, says)
		}
	}
}

// TestTerminalIsNotSteered: what clients and operators wrote is shown, and does
// nothing to the screen.
func TestTerminalIsNotSteered(t *testing.T) {
	s := newShop(t)
	l := s.unknown("k", func(r *umavez.ClaimRequest) { r.Route, r.Label = "r\x1b[2J", "l\r\nid  forged" })
	s.must(settle(t.Context(), s.desk, Change{ID: refTo(l), Action: "park", Who: "eve\x1b]0;x\x07", Reason: "a\u009b31m\u202eb"}))
	shown := show(t, s.desk, refTo(l))
	var text bytes.Buffer
	s.must(shown.Text(&text))
	TableRow(&text, &shown.Key)
	if i := strings.IndexFunc(text.String(), func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e') }); i >= 0 {
		t.Errorf("a control character stands at %d:\n%q", i, text.String())
	}
	if strings.Contains(text.String(), "\nid  forged") {
		t.Errorf("a label made a line:\n%s", text.String())
	}
}

func TestShortDurations(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "59s": 59 * time.Second, "1m": time.Minute, "1m1s": 61 * time.Second, "2h": 2 * time.Hour,
		"2h10m": 130 * time.Minute, "1d": 24 * time.Hour, "3d4h": 76 * time.Hour, "400d": 400 * 24 * time.Hour,
	} {
		if got := short(d); got != want {
			t.Errorf("%v is spelled %s, want %s", d, got, want)
		}
	}
}

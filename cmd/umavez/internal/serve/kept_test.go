package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/store/memstore"
)

func TestKeptDefaults(t *testing.T) {
	c, err := fromYAML(t, enough)
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxUnsettled != 1000 || c.KeepNames || c.Status || c.AdminToken != "" || c.Keyring.File != "" || c.Keyring.AllowPlain {
		t.Errorf("%+v", c)
	}
	if c, err = fromYAML(t, enough+"max-unsettled: 0\n"); err != nil || c.MaxUnsettled >= 0 {
		t.Errorf("no bound: %d, %v", c.MaxUnsettled, err)
	}
}

func TestKeptSettingsThatAreWrong(t *testing.T) {
	for yaml, want := range map[string]string{
		"keyring: a\nkeyring-command: [b]":      "--keyring a: cannot go with keyring-command",
		"keyring-allow-plain: true":             "keyring-allow-plain: does nothing without --keyring or keyring-command",
		"keyring-command: ['']":                 "keyring-command: names no program",
		"max-unsettled: -1":                     "max-unsettled -1: must be between 0 (no bound) and 1000000",
		"max-unsettled: 1000001":                "max-unsettled 1000001: must be between",
		"admin-token: a\nadmin: ''":             "--admin-token a: opens nothing without --admin",
		"status: perhaps":                       ":4: ",
		"keyring-command: vault read -field=it": ":4: ",
	} {
		_, err := fromYAML(t, enough+yaml+"\n")
		if _, usage := errors.AsType[*UsageError](err); !usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}

// TestRingsThatDoNotLoad: a file is a setting; a command may work next time. No
// error shows a key.
func TestRingsThatDoNotLoad(t *testing.T) {
	line, err := keyring.Generate("k")
	if err != nil {
		t.Fatal(err)
	}
	twice := writeFile(t, "ring", []byte(line+"\n"+line+"\n"))
	secret := line[2:]
	for _, c := range []struct {
		source keyring.Source
		usage  bool
		want   string
	}{
		{keyring.Source{File: "/does/not/exist"}, true, "umavez: --keyring /does/not/exist: "},
		{keyring.Source{File: twice}, true, "umavez: --keyring " + twice + ": "},
		{keyring.Source{Command: []string{"false"}}, false, "umavez: keyring-command: "},
		{keyring.Source{Command: []string{"/does/not/exist"}}, false, "umavez: keyring-command: "},
		{keyring.Source{Command: []string{"cat", twice}}, false, "umavez: keyring-command: "},
	} {
		_, err := Config{Keyring: c.source}.loadRing(t.Context(), &bytes.Buffer{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v, want %s", c.source, err, c.want)
		}
		if _, usage := errors.AsType[*UsageError](err); usage != c.usage {
			t.Errorf("%+v: is wrong usage %v, want %v", c.source, usage, c.usage)
		}
	}
	if sealer(nil) != nil {
		t.Error("no ring is a sealer")
	}
}

// TestAnnouncedDangers: what opens the store's content or its keys is said.
func TestAnnouncedDangers(t *testing.T) {
	for _, c := range []struct {
		admin string
		plain bool
		want  int
	}{
		{"127.0.0.1:9091", false, 0},
		{"localhost:9091", false, 0},
		{"[::1]:9091", false, 0},
		{"0.0.0.0:9091", false, 1},
		{":9091", false, 1},
		{"admin.internal:9091", false, 1},
		{"127.0.0.1:9091", true, 1},
	} {
		var log bytes.Buffer
		p := &process{cfg: Config{Admin: c.admin, AdminToken: "token", Keyring: keyring.Source{AllowPlain: c.plain}}, log: slog.New(slog.NewTextHandler(&log, nil))}
		p.announceKept()
		if n := strings.Count(log.String(), "level=WARN"); n != c.want {
			t.Errorf("%+v: %d warnings, want %d:\n%s", c, n, c.want, log.String())
		}
	}
}

// moody is a store that does not list when it does not want to.
type moody struct {
	*memstore.Store
	unwilling atomic.Bool
}

// List fails, or lists.
func (m *moody) List(ctx context.Context, q umavez.Query) ([]umavez.Listed, error) {
	if m.unwilling.Load() {
		return nil, errors.New("unwilling")
	}
	return m.Store.List(ctx, q)
}

// TestUnsettledIsNotMadeUp: when the store does not answer there is no number,
// and not the one of a while ago.
func TestUnsettledIsNotMadeUp(t *testing.T) {
	store := &moody{Store: memstore.New(memstore.Options{})}
	engine, err := umavez.New(store, umavez.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{store: store, engine: engine, metrics: newMetrics(), life: t.Context(), log: slog.New(slog.DiscardHandler)}
	for _, unwilling := range []bool{false, true, false} {
		store.unwilling.Store(unwilling)
		p.countUnsettled(t.Context())
		families, err := p.metrics.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.Contains(fmt.Sprint(families), "umavez_unsettled")
		if shown == unwilling {
			t.Errorf("unwilling %v: the gauge is shown: %v", unwilling, shown)
		}
	}
}

// TestUnsettledIsCountedAgain each minute, over all pages.
func TestUnsettledIsCountedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		engine, err := umavez.New(store, umavez.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := &process{cfg: Config{Namespace: "loja"}, store: store, engine: engine, metrics: newMetrics(), life: t.Context(), log: slog.New(slog.DiscardHandler)}
		p.watchUnsettled(t.Context())
		claim := func(name, namespace string, policy umavez.Policy) {
			_, _, err := store.Claim(t.Context(), umavez.Key{Name: name}.ID(), umavez.ClaimRequest{
				Attempt: umavez.NewAttemptID(), Lease: 90 * time.Second, Namespace: namespace, Policy: policy,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string, unknown, lost, running int) {
			t.Helper()
			synctest.Wait()
			counts, err := countUnsettled(t.Context(), engine, "loja")
			if err != nil || counts["unknown"] != unknown || counts["lost"] != lost || counts["running"] != running {
				t.Errorf("%s: %v, %v", when, counts, err)
			}
		}
		gauge := func(when string, unknown float64) {
			t.Helper()
			synctest.Wait()
			if got := gaugeOf(t, p.metrics, "unknown"); got != unknown {
				t.Errorf("%s: the gauge is %v, want %v", when, got, unknown)
			}
		}
		for i := range umavez.MaxPage + 5 {
			claim("opaque"+strings.Repeat("x", i), "loja", umavez.Opaque)
		}
		claim("rerunnable", "loja", umavez.Rerunnable)
		claim("elsewhere", "other", umavez.Opaque)
		check("running", 0, 0, umavez.MaxPage+6)
		gauge("at the start", 0)
		time.Sleep(time.Minute)
		gauge("after a minute", 0)
		time.Sleep(time.Minute)
		check("lost", umavez.MaxPage+5, 1, 0)
		gauge("after two", umavez.MaxPage+5)
	})
}

// gaugeOf is a value of umavez_unsettled, as a scraper reads it.
func gaugeOf(t *testing.T, m *metrics, state string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "umavez_unsettled" && metric.GetLabel()[0].GetValue() == state {
				return metric.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("umavez_unsettled has no series for %s", state)
	return 0
}

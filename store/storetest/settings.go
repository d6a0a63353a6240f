package storetest

import (
	"sync"

	"github.com/umavez/umavez"
)

// settingsRules hold for stores that keep what the processes of a namespace
// must agree on.
var settingsRules = []rule{
	{
		name:  "settings/first proposal is kept",
		why:   "all processes of a namespace work with the same row: a second one makes other fingerprints, and every retry looks like another request",
		check: settingsFirstKept,
	},
	{
		name:  "settings/concurrent callers agree",
		why:   "processes that start together all get the one row that was kept",
		check: settingsAgree,
	},
	{
		name:  "settings/namespaces are apart",
		why:   "namespaces are compared as bytes, and share nothing",
		check: settingsApart,
	},
	{
		name:  "settings/accept changes the recipe alone",
		why:   "accepting a recipe leaves epoch and fingerprint key as they are, or every kept fingerprint would be void",
		check: settingsAccept,
	},
	{
		name:  "settings/accept needs a row",
		why:   "there is nothing to accept in a namespace that nobody has used; most likely its name is mistyped",
		check: settingsAcceptNeedsRow,
	},
}

// keeper returns the store as a SettingsKeeper, or skips the rule.
func (f *fixture) keeper(s umavez.Store) umavez.SettingsKeeper {
	f.Helper()
	k, ok := s.(umavez.SettingsKeeper)
	if !ok {
		f.Skipf("the store keeps no settings (it is no umavez.SettingsKeeper)")
	}
	return k
}

// proposal draws settings, as a process does that starts.
func proposal() umavez.Settings {
	s := umavez.Settings{Format: umavez.Format, Recipe: "principal v1 \x00\xff"}
	s.Epoch = umavez.NewAttemptID()
	first, second := umavez.NewAttemptID(), umavez.NewAttemptID()
	s.HashKey = string(first[:]) + string(second[:])
	return s
}

// settings asks for a namespace's row.
func (f *fixture) settings(k umavez.SettingsKeeper, namespace string, propose umavez.Settings) umavez.Settings {
	f.Helper()
	got, err := k.Settings(f.Context(), namespace, propose)
	if err != nil {
		f.Fatalf("settings of namespace %q: %v", namespace, err)
	}
	return got
}

// namespace returns a name that nobody has used.
func namespace() string { return "ns-" + umavez.NewAttemptID().String() }

func settingsFirstKept(f *fixture) {
	k, name, first := f.keeper(f.store), namespace(), proposal()
	for i := range 3 {
		propose := first
		if i > 0 {
			propose = proposal()
		}
		if got := f.settings(k, name, propose); got != first {
			f.Fatalf("call %d returned %+v, want the first proposal %+v", i+1, got, first)
		}
	}
}

func settingsAgree(f *fixture) {
	name, proposed := namespace(), map[umavez.Settings]bool{}
	got := make([]umavez.Settings, 40)
	clients := f.clients()
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range got {
		k, propose := f.keeper(clients[i%len(clients)]), proposal()
		proposed[propose] = true
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			var err error
			if got[i], err = k.Settings(f.Context(), name, propose); err != nil {
				f.Errorf("settings: %v", err)
			}
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	for _, s := range got {
		if s != got[0] || !proposed[s] {
			f.Fatalf("callers got %+v and %+v, want all to get one proposal", got[0], s)
		}
	}
}

func settingsApart(f *fixture) {
	k, name := f.keeper(f.store), namespace()
	for _, n := range []string{name, "NS-" + name[3:], name + " ", name + "\x00", name + "\xff", ""} {
		mine := proposal()
		if got := f.settings(k, n, mine); got != mine && n != "" {
			f.Fatalf("the new namespace %q has settings already", n)
		}
	}
}

func settingsAccept(f *fixture) {
	k, name, want := f.keeper(f.store), namespace(), proposal()
	f.settings(k, name, want)
	want.Recipe = "principal v2"
	for range 2 {
		if err := k.AcceptRecipe(f.Context(), name, want.Recipe, "tenants moved; não há volta"); err != nil {
			f.Fatalf("accept: %v", err)
		}
	}
	if got := f.settings(k, name, proposal()); got != want {
		f.Fatalf("the settings are %+v, want %+v", got, want)
	}
}

func settingsAcceptNeedsRow(f *fixture) {
	k, name := f.keeper(f.store), namespace()
	if err := k.AcceptRecipe(f.Context(), name, "principal v2", "by mistake"); err == nil {
		f.Fatalf("accepting a recipe in a namespace without a row succeeded")
	}
	if mine := proposal(); f.settings(k, name, mine) != mine {
		f.Fatalf("the failed accept has left a row")
	}
}

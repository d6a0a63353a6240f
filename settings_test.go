package umavez_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestNamespaceIsAgreedOn: whoever comes gets the settings of who came first.
func TestNamespaceIsAgreedOn(t *testing.T) {
	mem := memstore.New(memstore.Options{})
	got := make([]umavez.Settings, 20)
	var wg sync.WaitGroup
	for i := range got {
		e := newEngine(t, mem, umavez.Options{})
		wg.Go(func() {
			var err error
			if got[i], err = e.Namespace(t.Context(), "loja", "recipe"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range got {
		if s != got[0] {
			t.Errorf("%+v and %+v of one namespace", s, got[0])
		}
	}
	s := got[0]
	if !s.Kept || s.Format != umavez.Format || s.Recipe != "recipe" || len(s.HashKey) != umavez.HashKeySize ||
		s.Epoch == [16]byte{} || bytes.Count([]byte(s.HashKey), []byte{0}) > umavez.HashKeySize/2 {
		t.Errorf("settings %+v", s)
	}
	other, err := newEngine(t, mem, umavez.Options{}).Namespace(t.Context(), "balcão", "recipe")
	if err != nil || other.HashKey == s.HashKey || other.Epoch == s.Epoch {
		t.Errorf("another namespace has %+v, %v", other, err)
	}
}

// TestNamespaceOfAStoreThatKeepsNone: the settings are fresh each time, and say
// that nobody else has the same.
func TestNamespaceOfAStoreThatKeepsNone(t *testing.T) {
	e := newEngine(t, newFaultStore(memstore.New(memstore.Options{}), nil), umavez.Options{})
	one, err := e.Namespace(t.Context(), "loja", "recipe")
	two, err2 := e.Namespace(t.Context(), "loja", "recipe")
	if err != nil || err2 != nil || one.Kept || two.Kept || one.HashKey == two.HashKey || len(one.HashKey) != umavez.HashKeySize {
		t.Errorf("%+v, %v and then %+v, %v", one, err, two, err2)
	}
}

// TestRecipeIsChangedOnPurpose only.
func TestRecipeIsChangedOnPurpose(t *testing.T) {
	mem := memstore.New(memstore.Options{})
	e := newEngine(t, mem, umavez.Options{})
	first, err := e.Namespace(t.Context(), "loja", "old")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Namespace(t.Context(), "loja", "new")
	r, ok := errors.AsType[*umavez.RecipeError](err)
	if !ok || *r != (umavez.RecipeError{Namespace: "loja", Kept: "old", Used: "new"}) || !strings.Contains(err.Error(), "umavez namespace accept") {
		t.Fatalf("another recipe: %v", err)
	}
	if err := mem.AcceptRecipe(t.Context(), "loja", "new", "the tenants moved"); err != nil {
		t.Fatal(err)
	}
	again, err := e.Namespace(t.Context(), "loja", "new")
	if first.Recipe = "new"; err != nil || again != first {
		t.Errorf("accepted: %+v, %v; want the same hash key and epoch", again, err)
	}
}

// settingsStore keeps settings that no process of this release would.
type settingsStore struct {
	umavez.Store
	change func(*umavez.Settings) error
}

func (s settingsStore) Settings(_ context.Context, _ string, propose umavez.Settings) (umavez.Settings, error) {
	err := s.change(&propose)
	return propose, err
}

func (s settingsStore) AcceptRecipe(context.Context, string, string, string) error { return nil }

// TestNamespaceRefusesWhatItDoesNotKnow: another format, a hash key that is too
// short to be one, a store that does not answer.
func TestNamespaceRefusesWhatItDoesNotKnow(t *testing.T) {
	for says, change := range map[string]func(*umavez.Settings) error{
		"format that this release": func(s *umavez.Settings) error { s.Format++; return nil },
		"has 31 bytes, want 32":    func(s *umavez.Settings) error { s.HashKey = s.HashKey[1:]; return nil },
		"has 0 bytes, want 32":     func(s *umavez.Settings) error { s.HashKey = ""; return nil },
		"boom":                     func(*umavez.Settings) error { return errBoom },
	} {
		e := newEngine(t, settingsStore{Store: memstore.New(memstore.Options{}), change: change}, umavez.Options{})
		if got, err := e.Namespace(t.Context(), "loja", "r"); err == nil || !strings.Contains(err.Error(), says) || got != (umavez.Settings{}) {
			t.Errorf("%+v, %v; want an error that says %q", got, err, says)
		}
	}
}

package sqlitestore

import (
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	"github.com/umavez/umavez"
)

func proposal(recipe string) umavez.Settings {
	p := umavez.Settings{Format: umavez.Format, Recipe: recipe}
	_, _ = rand.Read(p.Epoch[:])
	var hashKey [umavez.HashKeySize]byte
	_, _ = rand.Read(hashKey[:])
	p.HashKey = string(hashKey[:])
	return p
}

func TestSettingsAreKeptOnce(t *testing.T) {
	path := file(t)
	a, b := open(t, path, Options{}), open(t, path, Options{})
	for _, name := range []string{"loja", "", "LOJA", "loja ", "lo\x00ja", "\xff"} {
		var wg sync.WaitGroup
		got := make([]umavez.Settings, 20)
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = []*Store{a, b}[i%2].Settings(t.Context(), name, proposal("r")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, s := range got {
			if s != got[0] || s.Epoch == ([16]byte{}) {
				t.Fatalf("namespace %q: two callers have %+v and %+v", name, s, got[0])
			}
		}
	}
	one, err := a.Settings(t.Context(), "loja", proposal("x"))
	other, err2 := a.Settings(t.Context(), "LOJA", proposal("x"))
	if err != nil || err2 != nil || one.Epoch == other.Epoch {
		t.Errorf("two namespaces share their settings, or %v, %v", err, err2)
	}
	if one.Recipe != "r" {
		t.Errorf("a later proposal changed the recipe to %q", one.Recipe)
	}
}

func TestSettingsSurvive(t *testing.T) {
	path := file(t)
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.Settings(t.Context(), "loja", proposal("r"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path, Options{}).Settings(t.Context(), "loja", proposal("other"))
	if err != nil || got != want {
		t.Errorf("after a restart: %+v, %v, want %+v", got, err, want)
	}
}

func TestAcceptRecipe(t *testing.T) {
	s, c := fresh(t)
	err := s.AcceptRecipe(t.Context(), "loja", "new", "because")
	if !errors.Is(err, errNoNamespace) {
		t.Errorf("accepting for a namespace without settings: %v", err)
	}
	if _, failure := errors.AsType[*umavez.StoreError](err); failure {
		t.Errorf("that is an answer, not a failure: %v", err)
	}
	before, err := s.Settings(t.Context(), "loja", proposal("old"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AcceptRecipe(t.Context(), "loja", "new", "because"); err != nil {
		t.Fatal(err)
	}
	after, err := s.Settings(t.Context(), "loja", proposal("x"))
	before.Recipe = "new"
	if err != nil || after != before {
		t.Errorf("after accepting: %+v, %v, want %+v", after, err, before)
	}
	err = s.writer.c.ask("SELECT accepted_reason, accepted_at FROM umavez_namespace", func(v []driver.Value) error {
		if v[0] != "because" || v[1] != c.Now().UnixMicro() {
			t.Errorf("kept with it: %v", v)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A task's answer is no reason to give up the batch, or the connection.
func TestTasksAnswerFailsNobodyElse(t *testing.T) {
	s, _ := fresh(t)
	errs := together(s, 10, func(i int) error {
		if i == 3 {
			return s.AcceptRecipe(t.Context(), "none", "new", "because")
		}
		_, _, err := s.Claim(t.Context(), idOf(string(rune('a'+i))), request())
		return err
	})
	for i, err := range errs {
		if (err != nil) != (i == 3) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if n := s.Stats().Reopened; n != 0 {
		t.Errorf("the connection was opened again %d times", n)
	}
}

package memstore

import (
	"testing"

	"github.com/umavez/umavez"
)

// TestReasonIsKept: why a recipe was changed stays with the row.
func TestReasonIsKept(t *testing.T) {
	s := New(Options{})
	if _, err := s.Settings(t.Context(), "loja", umavez.Settings{Recipe: "v1"}); err != nil {
		t.Fatal(err)
	}
	if err := s.AcceptRecipe(t.Context(), "loja", "v2", "tenants moved"); err != nil {
		t.Fatal(err)
	}
	if got := s.settings["loja"]; got.Recipe != "v2" || got.reason != "tenants moved" {
		t.Errorf("the row has the recipe %q and the reason %q", got.Recipe, got.reason)
	}
}

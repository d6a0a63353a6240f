package memstore

import (
	"context"
	"fmt"

	"github.com/umavez/umavez"
)

// kept is a namespace's row, and why its recipe was changed last.
type kept struct {
	umavez.Settings
	reason string
}

// Settings implements [umavez.SettingsKeeper]. The rows live as long as the
// store: the keys of requests are forgotten together with the records that they
// were made for.
func (s *Store) Settings(ctx context.Context, namespace string, propose umavez.Settings) (umavez.Settings, error) {
	if err := ctx.Err(); err != nil {
		return umavez.Settings{}, failed("settings", err)
	}
	s.settingsMu.Lock()
	defer s.settingsMu.Unlock()
	row, ok := s.settings[namespace]
	if !ok {
		row.Settings = propose
		s.settings[namespace] = row
	}
	return row.Settings, nil
}

// AcceptRecipe implements [umavez.SettingsKeeper].
func (s *Store) AcceptRecipe(ctx context.Context, namespace, recipe, reason string) error {
	if err := ctx.Err(); err != nil {
		return failed("accept-recipe", err)
	}
	s.settingsMu.Lock()
	defer s.settingsMu.Unlock()
	row, ok := s.settings[namespace]
	if !ok {
		return failed("accept-recipe", fmt.Errorf("umavez: memstore: namespace %q has no settings", namespace))
	}
	row.Recipe, row.reason = recipe, reason
	s.settings[namespace] = row
	return nil
}

package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/umavez/umavez"
)

// Settings implements [umavez.SettingsKeeper].
func (s *Store) Settings(
	ctx context.Context, namespace string, propose umavez.Settings,
) (umavez.Settings, error) {
	var kept umavez.Settings
	there := false
	// The row is there but for once: no transaction to find that out.
	err := s.readers.do(ctx, func(c *conn) (err error) {
		kept, there, err = c.namespace(namespace)
		return err
	})
	if err != nil {
		return umavez.Settings{}, notApplied("settings", err)
	}
	if there {
		return kept, nil
	}
	// The closure may outlive this call; it writes into variables of its own.
	result := new(umavez.Settings)
	err = s.batches.Do(ctx, newTask("settings", func(t *tx) (err error) {
		*result, err = t.settings(namespace, propose)
		return err
	}))
	if err != nil {
		return umavez.Settings{}, err
	}
	return *result, nil
}

// settings returns the namespace's row, and makes it when it is not there.
func (t *tx) settings(namespace string, propose umavez.Settings) (umavez.Settings, error) {
	t.c.bind(0, []byte(namespace), propose.Epoch[:], int64(propose.Format),
		propose.Recipe, []byte(propose.HashKey), int64(t.now))
	n, err := t.c.exec(stPropose, 6)
	if err != nil {
		return umavez.Settings{}, err
	}
	t.wrote = t.wrote || n > 0
	kept, there, err := t.c.namespace(namespace)
	if err == nil && !there {
		err = fmt.Errorf("umavez: sqlite: the settings of namespace %q are neither there nor can they be inserted", namespace)
	}
	return kept, err
}

// namespace reads the namespace's row, and says whether there is one.
func (c *conn) namespace(name string) (kept umavez.Settings, there bool, err error) {
	c.bind(0, []byte(name))
	err = c.query(stNamespace, 1, func(v []driver.Value) error {
		s := scanner{values: v}
		there = true
		kept, err = settingsOf(&s, name)
		return err
	})
	return kept, there, err
}

// settingsOf reads a namespace's row, after its name.
func settingsOf(s *scanner, name string) (kept umavez.Settings, err error) {
	s.into(kept.Epoch[:])
	kept.Format = int(s.integer())
	kept.Recipe = s.text()
	kept.HashKey = string(s.blob())
	if s.err != nil {
		return umavez.Settings{}, fmt.Errorf("%w: namespace %q: %w", errDamaged, name, s.err)
	}
	return kept, nil
}

// AcceptRecipe implements [umavez.SettingsKeeper].
func (s *Store) AcceptRecipe(ctx context.Context, namespace, recipe, reason string) error {
	return s.batches.Do(ctx, newTask("accept-recipe", func(t *tx) error {
		t.c.bind(0, recipe, reason, int64(t.now), []byte(namespace))
		n, err := t.c.exec(stAccept, 4)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%w: %q", errNoNamespace, namespace)
		}
		t.wrote = true
		return nil
	}))
}

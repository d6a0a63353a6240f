package umavez

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// Settings is what all processes that share a namespace must agree on. A store
// keeps one row of it for each namespace, made by the first process to come.
type Settings struct {
	// Epoch is a random id, drawn when the row was made. Another epoch means
	// another store, or one that was emptied.
	Epoch [16]byte
	// Format is the version of what is kept in records.
	Format int
	// Recipe says how keys get their scope. A changed recipe makes every
	// running key a new key, so it is changed only on purpose.
	Recipe string
	// HashKey keys the hashes of requests, keys and callers, so that a stored
	// hash does not give up a card number to a dictionary: HashKeySize random
	// bytes. A store keeps what it is given, up to MaxHashKey bytes: with a
	// [Sealer] that is the sealed form.
	HashKey string
	// Kept: the store keeps these settings, so that whoever shares it has the
	// same. Set by [Engine.Namespace].
	Kept bool
}

// HashKeySize is the length of a HashKey, and MaxHashKey the most that stores
// have room for.
const (
	HashKeySize = 32
	MaxHashKey  = 256
)

// Format is the version of stored answers and records that this release writes.
const Format = 1

// SettingsKeeper is implemented by stores that keep [Settings]. A store without
// it lives and dies with its process.
type SettingsKeeper interface {
	// Settings returns the namespace's row. If there is none, it keeps propose
	// and returns that. Concurrent callers all get the same row.
	Settings(ctx context.Context, namespace string, propose Settings) (Settings, error)
	// AcceptRecipe replaces the recipe in the namespace's row, and keeps the
	// reason with it. Without a row it is an error.
	AcceptRecipe(ctx context.Context, namespace, recipe, reason string) error
}

// RecipeError: the namespace's keys are scoped by another recipe than this
// process uses, so the two would not recognise each other's keys.
type RecipeError struct {
	Namespace  string
	Kept, Used string
}

// Error names both recipes and the way out.
func (e *RecipeError) Error() string {
	return fmt.Sprintf("umavez: namespace %q scopes its keys by %q, this process by %q; "+
		"every running key would become a new key. To change it on purpose: umavez namespace accept --reason TEXT, "+
		"with the --principal, --namespace and --store of this process",
		e.Namespace, e.Kept, e.Used)
}

// ErrFormat: the store's records are of a format that this release does not know.
var ErrFormat = errors.New("umavez: the store's records have a format that this release does not know")

// Namespace reads the namespace's settings, or makes them when they are not
// there yet. A recipe that differs from the kept one is a [*RecipeError].
func (e *Engine) Namespace(ctx context.Context, name, recipe string) (Settings, error) {
	propose := Settings{Format: Format, Recipe: recipe}
	rand.Read(propose.Epoch[:])
	var hashKey [HashKeySize]byte
	rand.Read(hashKey[:])
	propose.HashKey = string(hashKey[:])
	keeper, ok := e.base.(SettingsKeeper)
	if !ok {
		return propose, nil
	}
	if err := e.sealSettings(name, &propose); err != nil {
		return Settings{}, err
	}
	kept, err := keeper.Settings(ctx, name, propose)
	switch {
	case err != nil:
		return Settings{}, err
	case kept.Format != Format:
		return Settings{}, fmt.Errorf("%w: %d, not %d", ErrFormat, kept.Format, Format)
	case kept.Recipe != recipe:
		return Settings{}, &RecipeError{Namespace: name, Kept: kept.Recipe, Used: recipe}
	}
	if err := e.openSettings(name, &kept); err != nil {
		return Settings{}, err
	}
	if len(kept.HashKey) != HashKeySize {
		return Settings{}, errorf("the hash key of namespace %q has %d bytes, want %d; was it sealed, and is there a key ring that opens it?",
			name, len(kept.HashKey), HashKeySize)
	}
	kept.Kept = true
	return kept, nil
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/umavez/umavez"
)

// Accepted is what AcceptRecipe has written.
type Accepted struct{ Namespace, Recipe string }

// AcceptRecipe makes the recipe of the settings' principal the one of their
// namespace, and keeps the reason with it. Processes that run under the former
// recipe go on until they end; every key that is running then is a new key to
// those that start afterwards.
func AcceptRecipe(ctx context.Context, s Settings, reason string) (a Accepted, err error) {
	var c Config
	var p problems
	s.recipeOnly(&c, &p)
	if strings.TrimSpace(reason) == "" {
		p.addf("--reason: must say why; whoever finds keys that ran twice will look for it")
	}
	if err := p.err(); err != nil {
		return a, err
	}
	a = Accepted{Namespace: c.Namespace, Recipe: c.Principal.Recipe()}
	// Opening a file that is not there would make one, and accept into nothing.
	if _, err := os.Stat(c.Store.File); err != nil {
		return a, fmt.Errorf("umavez: --store %s: %w", c.Store, err)
	}
	store, err := openStore(ctx, c.Store, c.AcceptRisk)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	keeper, ok := store.Store.(umavez.SettingsKeeper)
	if !ok {
		return a, fmt.Errorf("umavez: --store %s: keeps no settings", c.Store)
	}
	if err := keeper.AcceptRecipe(ctx, a.Namespace, a.Recipe, reason); err != nil {
		return a, fmt.Errorf("umavez: --store %s: %w", c.Store, err)
	}
	return a, nil
}

// recipeOnly checks what the recipe depends on. The addresses and files that a
// principal is verified with are not needed to name it.
func (s Settings) recipeOnly(c *Config, p *problems) {
	c.Namespace = p.namespace(s.Namespace)
	if s.Principal == nil {
		p.addf("--principal is required: %s", principalForms)
	} else {
		c.Principal = s.principal(p)
	}
	for _, name := range s.AcceptRisk {
		c.AcceptRisk = append(c.AcceptRisk, Risk(name))
	}
	var err error
	if c.Store, err = ParseStore(or(s.Store, DefaultStore)); err != nil {
		p.add(err)
	} else if c.Store.Scheme == StoreMemory {
		p.addf("--store %s: keeps nothing to accept: it begins anew with every process", c.Store)
	}
}

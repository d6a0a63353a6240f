package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/alecthomas/kong"

	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// keysShowCommand is `umavez keys show`.
type keysShowCommand struct {
	ID string `arg:"" optional:"" help:"The key's ID, with or without the number behind the dot."`
	deskFlags
	Namespace string   `env:"-" placeholder:"NAME" help:"The namespace of --key (default ${namespace})."`
	Principal []string `env:"-" sep:"none" placeholder:"PART" help:"Who sent it; repeated where several parts name the caller (issuer and subject, or those of a program's PrincipalOf), and not at all where the namespace does not tell its callers apart."`
	Key       string   `env:"-" placeholder:"KEY" help:"The key, as the client sent it."`
	JSON      bool     `env:"-" name:"json" help:"As a JSON object."`
}

// Run shows a key.
func (c *keysShowCommand) Run(ctx context.Context, s *surroundings, k *kong.Context) (err error) {
	byName := c.Key != "" || c.Namespace != "" || len(c.Principal) > 0
	switch {
	case c.ID == "" && c.Key == "":
		return usagef("show ID, or show --namespace N --principal P --key K: which key?")
	case c.ID != "" && byName:
		return usagef("show ID and show --key: name the key in two ways; one of them")
	}
	desk, done, err := c.open(ctx, k, s.stderr, serve.Settings{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if c.ID == "" {
		names := keys.Names{Namespace: c.Namespace, Principal: c.Principal, Key: c.Key}
		if names.Namespace == "" {
			names.Namespace = serve.DefaultNamespace
		}
		found, err := desk.Find(ctx, names)
		if err != nil {
			return err
		}
		c.ID = found.ID
	}
	shown, err := desk.Show(ctx, c.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(shown)
	}
	return shown.Text(s.stdout)
}

package cli

import (
	"context"
	"fmt"

	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// namespaceCommand is `umavez namespace`.
type namespaceCommand struct {
	Accept acceptCommand `cmd:"" help:"Accept that the namespace scopes its keys in another way from now on."`
}

// acceptCommand is `umavez namespace accept`. Its flags mean what they mean for
// serve, so that the two cannot be told different things.
type acceptCommand struct {
	serve.ConfigFlag
	Namespace *string `placeholder:"NAME" help:"The namespace (default ${namespace})."`
	Store     *string `placeholder:"DSN" help:"memory: or sqlite:FILE (default ${store})."`
	Principal *string `placeholder:"KIND" help:"Who the caller is from now on: none, mtls, auth, header:NAME or jwt:ISS+SUB."`
	Reason    string  `required:"" placeholder:"TEXT" help:"Why; it is kept in the store."`
}

// Run replaces the namespace's recipe.
func (c *acceptCommand) Run(ctx context.Context, s *surroundings) error {
	flags := serve.Settings{Namespace: c.Namespace, Store: c.Store, Principal: c.Principal}
	settings, err := serve.Load(flags, c.Config)
	if err != nil {
		return err
	}
	done, err := serve.AcceptRecipe(ctx, settings, c.Reason)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "namespace %s now scopes its keys by %s\n", done.Namespace, done.Recipe)
	return nil
}

package cli

import (
	"context"

	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// serveCommand is `umavez serve`.
type serveCommand struct {
	serve.ConfigFlag
	serve.Settings
}

// Run serves until the process is told to end.
func (c *serveCommand) Run(ctx context.Context, s *surroundings) error {
	settings, err := serve.Load(c.Settings, c.Config)
	if err != nil {
		return err
	}
	cfg, err := serve.NewConfig(settings)
	if err != nil {
		return err
	}
	return serve.Run(ctx, cfg, s.stderr, s.hooks)
}

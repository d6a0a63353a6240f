package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// keysListCommand is `umavez keys list`.
type keysListCommand struct {
	deskFlags
	State     []string        `env:"-" placeholder:"STATE" help:"unknown, lost, running, done or expired; several with commas. Not set: all."`
	Reason    string          `env:"-" placeholder:"REASON" help:"Why it is unknown or lost, as a list shows it."`
	Route     string          `env:"-" placeholder:"NAME" help:"The route, by its name or pattern."`
	Namespace string          `env:"-" placeholder:"NAME" help:"The namespace. Not set: all; with --principal ${namespace}."`
	Scope     string          `env:"-" placeholder:"HEX" help:"The caller, as a list shows it."`
	Principal []string        `env:"-" sep:"none" placeholder:"PART" help:"The caller by name; repeated where several parts name it (issuer and subject, or those of a program's PrincipalOf)."`
	OlderThan *serve.Duration `env:"-" placeholder:"DURATION" help:"First claimed at least so long ago."`
	Limit     *int            `env:"-" placeholder:"N" help:"At most so many. Not set: all."`
	JSON      bool            `env:"-" name:"json" help:"A JSON object a line."`
}

// Run pages through the list.
func (c *keysListCommand) Run(ctx context.Context, s *surroundings, k *kong.Context) (err error) {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	desk, done, err := c.open(ctx, k, s.stderr, serve.Settings{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if len(c.Principal) > 0 {
		found, err := desk.Find(ctx, keys.Names{Namespace: filter.Namespace, Principal: c.Principal})
		if err != nil {
			return err
		}
		filter.Scope = found.Scope
	}
	left := -1
	if c.Limit != nil {
		left = *c.Limit
	}
	shown := 0
	for left != 0 {
		filter.Limit = max(left, 0)
		page, err := desk.List(ctx, filter)
		if err != nil {
			return err
		}
		for i := range page.Keys {
			if err := c.print(s, &page.Keys[i], shown == 0); err != nil {
				return err
			}
			shown++
		}
		left -= len(page.Keys)
		if page.Next == "" {
			break
		}
		filter.After = page.Next
	}
	if shown == 0 {
		fmt.Fprintln(s.stderr, "umavez: there is no such key")
	}
	return nil
}

// filter checks what only the command line can get wrong.
func (c *keysListCommand) filter() (keys.Filter, error) {
	f := keys.Filter{States: c.State, Reason: c.Reason, Route: c.Route, Namespace: c.Namespace, Scope: c.Scope}
	if c.OlderThan != nil {
		f.OlderThan = time.Duration(*c.OlderThan)
	}
	if c.Limit != nil {
		if f.Limit = *c.Limit; f.Limit < 1 {
			return f, usagef("--limit %d: must be 1 or more", f.Limit)
		}
	}
	if len(c.Principal) > 0 {
		if f.Scope != "" {
			return f, usagef("--scope and --principal: name the caller in two ways; one of them")
		}
		if f.Namespace == "" {
			f.Namespace = serve.DefaultNamespace
		}
	}
	return f, f.Check()
}

func (c *keysListCommand) print(s *surroundings, key *keys.Key, first bool) error {
	if c.JSON {
		line, err := json.Marshal(key)
		if err == nil {
			_, err = fmt.Fprintf(s.stdout, "%s\n", line)
		}
		return err
	}
	if first {
		keys.TableHead(s.stdout)
	}
	keys.TableRow(s.stdout, key)
	return nil
}

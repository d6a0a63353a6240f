package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// changeFlags are what every change has.
type changeFlags struct {
	ID string `arg:"" help:"The key's ID, with the number behind the dot: it says what was looked at."`
	deskFlags
	Reason string  `env:"-" placeholder:"TEXT" help:"Why, and how it was found out. It stays in the audit trail. Required."`
	Who    *string `env:"-" placeholder:"NAME" help:"Who says so (default: user and host of this process)."`

	Retain    *serve.Duration `placeholder:"DURATION" help:"As for serve: how long the answer is given (default ${retain})."`
	Tombstone *serve.Duration `placeholder:"DURATION" help:"As for serve: how long after that a late retry is refused (default ${tombstone})."`
	MaxRun    *serve.Duration `placeholder:"DURATION" help:"As for serve: it is too early to say that nothing can happen before that has passed since the loss, and 10m (default ${maxrun})."`
}

// keysSettleCommand is `umavez keys settle`.
type keysSettleCommand struct {
	changeFlags
	Happened     bool     `env:"-" help:"It happened; --status and --body are its answer."`
	CannotHappen bool     `env:"-" help:"It did not happen, and cannot happen any more: the next attempt runs."`
	Park         bool     `env:"-" help:"Nobody takes it over, until it is settled."`
	Status       int      `env:"-" placeholder:"STATUS" help:"The answer's status, such as 201."`
	Header       []string `env:"-" sep:"none" placeholder:"'NAME: VALUE'" help:"A header of the answer; repeatable."`
	Body         string   `env:"-" placeholder:"@FILE|TEXT" help:"The answer's body."`
	Force        bool     `env:"-" help:"It cannot happen, with proof, though the time in which a request may be on its way is not over."`
}

// Run settles a key.
func (c *keysSettleCommand) Run(ctx context.Context, s *surroundings, k *kong.Context) error {
	change := keys.Change{Status: c.Status, Header: c.Header, Force: c.Force}
	chosen := 0
	for action, set := range map[string]bool{"happened": c.Happened, "cannot-happen": c.CannotHappen, "park": c.Park} {
		if set {
			change.Action = action
			chosen++
		}
	}
	if chosen != 1 {
		return usagef("settle needs one of --happened, --cannot-happen and --park")
	}
	var err error
	if change.Body, err = bodyOf(c.Body); err != nil {
		return err
	}
	return c.apply(ctx, s, k, change)
}

// bodyOf reads a body: text, or the file behind an @.
func bodyOf(text string) ([]byte, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return []byte(text), nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, usagef("--body %s: %v", text, err)
	}
	if info.Size() > keys.MaxBody {
		return nil, usagef("--body %s: has %d bytes, at most %d", text, info.Size(), keys.MaxBody)
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("--body %s: %v", text, err)
	}
	return body, nil
}

// keysForgetCommand is `umavez keys forget`.
type keysForgetCommand struct{ changeFlags }

// Run forgets a key.
func (c *keysForgetCommand) Run(ctx context.Context, s *surroundings, k *kong.Context) error {
	return c.apply(ctx, s, k, keys.Change{Action: "forget"})
}

// apply makes a change and says where it has led.
func (c *changeFlags) apply(ctx context.Context, s *surroundings, k *kong.Context, change keys.Change) (err error) {
	change.ID, change.Reason = c.ID, c.Reason
	change.Settlement = umavez.NewAttemptID().String()
	if change.Who = whoami(); c.Who != nil {
		change.Who = *c.Who
	}
	if err := change.Check(); err != nil {
		return err
	}
	desk, closeDesk, err := c.open(ctx, k, s.stderr, serve.Settings{Retain: c.Retain, Tombstone: c.Tombstone, MaxRun: c.MaxRun})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDesk()) }()
	done, err := desk.Settle(ctx, change)
	if err != nil {
		return err
	}
	return done.Text(s.stdout)
}

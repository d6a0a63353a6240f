package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/umavez/umavez/cmd/umavez/internal/serve"
	"github.com/umavez/umavez/keyring"
)

// keysPurgeCommand is `umavez keys purge`.
type keysPurgeCommand struct{ deskFlags }

// Run drops all that is over.
func (c *keysPurgeCommand) Run(ctx context.Context, s *surroundings, k *kong.Context) (err error) {
	desk, done, err := c.open(ctx, k, s.stderr, serve.Settings{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	rows := 0
	for {
		p, err := desk.Purge(ctx)
		rows += p.Rows
		if err != nil {
			return err
		}
		if !p.More {
			break
		}
	}
	fmt.Fprintf(s.stdout, "%d rows were over\n", rows)
	return nil
}

// keysResealCommand is `umavez keys reseal`. It works on the store alone: a serve
// that runs need not be asked for what its store holds.
type keysResealCommand struct{ storeFlags }

// Run seals anew, and says what could not be read: the key that sealed that must
// not go.
func (c *keysResealCommand) Run(ctx context.Context, s *surroundings) (err error) {
	settings, err := c.settings(serve.Settings{})
	if err != nil {
		return err
	}
	if settings.Keyring == nil && len(settings.KeyringCommand) == 0 {
		return usagef("reseal needs --keyring, or a configuration with keyring-command")
	}
	// A store that becomes a sealed one holds what lies in plain; here it is what
	// is to be sealed.
	plain := true
	settings.KeyringAllowPlain = &plain
	opened, err := serve.OpenKeys(ctx, settings, s.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	done, err := opened.Engine.Reseal(ctx, nil)
	fmt.Fprintf(s.stdout, "%d of %d records and %d namespaces sealed anew\n", done.Sealed, done.Seen, done.Namespaces)
	if err != nil {
		return fmt.Errorf("umavez: not all was sealed; run it again: %w", err)
	}
	if done.Unreadable > 0 {
		return fmt.Errorf("umavez: %d could not be opened with this key ring, and stay as they are; no key may be taken away: %w",
			done.Unreadable, done.FirstUnreadable)
	}
	return nil
}

// keysGenerateCommand is `umavez keys generate`.
type keysGenerateCommand struct {
	ID string `env:"-" name:"id" placeholder:"NAME" help:"What the key is called in the ring and in the store, such as its month. Not set: drawn."`
}

// Run prints a line of a key ring.
func (c *keysGenerateCommand) Run(s *surroundings) error {
	if c.ID == "" {
		var drawn [4]byte
		rand.Read(drawn[:]) // never fails: crypto/rand ends the process instead
		c.ID = "k" + hex.EncodeToString(drawn[:])
	}
	line, err := keyring.Generate(c.ID)
	if err != nil {
		return usagef("--id: %v", err)
	}
	fmt.Fprintln(s.stdout, line)
	return nil
}

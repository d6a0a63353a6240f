package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// keysCommand is `umavez keys`. Its commands read no variables but those that
// mean the same to serve: a filter or a reason that somebody has left in the
// environment must not act.
type keysCommand struct {
	List     keysListCommand     `cmd:"" help:"List keys."`
	Show     keysShowCommand     `cmd:"" help:"Tell all of a key: why it is unknown, what to do, and the audit trail."`
	Settle   keysSettleCommand   `cmd:"" help:"Say what became of a lost operation."`
	Forget   keysForgetCommand   `cmd:"" help:"Drop the answer of a done key; a tombstone refuses late retries."`
	Purge    keysPurgeCommand    `cmd:"" help:"Drop what is over now, and not within the next minute."`
	Reseal   keysResealCommand   `cmd:"" help:"Seal what the store holds with the first key of the key ring."`
	Generate keysGenerateCommand `cmd:"" help:"Print a new line for a key ring."`
}

// storeFlags name a store, and what opens what it holds.
type storeFlags struct {
	serve.ConfigFlag
	Store      *string  `placeholder:"DSN" help:"The store; others may be serving from it (default ${store})."`
	Keyring    *string  `placeholder:"FILE" help:"The key ring of those who serve from it."`
	AcceptRisk []string `placeholder:"NAME" help:"As for serve."`
}

// settings are those of the file, with the flags over them.
func (f *storeFlags) settings(more serve.Settings) (serve.Settings, error) {
	more.Store, more.Keyring, more.AcceptRisk = f.Store, f.Keyring, f.AcceptRisk
	return serve.Load(more, f.Config)
}

// deskFlags say which keys: those of a store, or of a serve that runs.
type deskFlags struct {
	storeFlags
	Admin      string  `env:"-" placeholder:"URL" help:"The admin address of a running serve, such as http://${admin}, in place of a store."`
	AdminToken *string `placeholder:"FILE" help:"The token that serve was given."`
}

// open opens what the flags name, and returns what closes it. What else of
// serve's settings is set by flags stands in more; a serve that runs has its own.
func (f *deskFlags) open(ctx context.Context, k *kong.Context, stderr io.Writer, more serve.Settings) (keys.Desk, func() error, error) {
	if f.Admin != "" {
		for _, name := range []string{"store", "keyring"} {
			if typed(k, name) {
				return nil, nil, usagef("--admin and --%s: are two ways to the keys; one of them", name)
			}
		}
		desk, err := f.remote()
		return desk, func() error { return nil }, err
	}
	if typed(k, "admin-token") {
		return nil, nil, usagef("--admin-token: goes with --admin")
	}
	settings, err := f.settings(more)
	if err != nil {
		return nil, nil, err
	}
	opened, err := serve.OpenKeys(ctx, settings, stderr)
	if err != nil {
		return nil, nil, err
	}
	return opened, opened.Close, nil
}

func (f *deskFlags) remote() (keys.Desk, error) {
	file := f.AdminToken
	if file == nil {
		s, err := f.settings(serve.Settings{})
		if err != nil {
			return nil, err
		}
		file = s.AdminToken
	}
	if file == nil {
		return nil, usagef("--admin %s: needs --admin-token, the file that serve was given", f.Admin)
	}
	token, err := keys.ReadSecret(*file)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return keys.NewRemote(f.Admin, token)
}

// typed reports whether a flag stands on the command line, and not in a variable.
func typed(k *kong.Context, name string) bool {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == name {
			return true
		}
	}
	return false
}

// usagef is a fault that ends with status 2.
func usagef(format string, args ...any) error {
	return &keys.Fault{Code: keys.CodeUsage, Text: fmt.Sprintf(format, args...)}
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
)

// adminToken reads the token that opens /keys, if there is to be one.
func (c Config) adminToken() (t keys.Token, err error) {
	if c.AdminToken == "" {
		return t, nil
	}
	if t, err = keys.ReadToken(c.AdminToken); err != nil {
		return t, usagef("%w", err)
	}
	return t, nil
}

// keysHandler builds what stands at /keys on the admin address: closed, unless
// there is a token.
func (p *process) keysHandler() http.Handler {
	if p.cfg.AdminToken == "" {
		return keys.Closed()
	}
	return keys.NewHandler(p.desk(), p.token, p.log)
}

// desk is where the operators of a running sidecar ask.
func (p *process) desk() *keys.Local {
	return &keys.Local{Engine: p.engine, Store: p.store, Keep: p.cfg.keepOf, Now: wallClock}
}

// wallClock dates the entries of the audit trail for people.
func wallClock() time.Time { return time.Now() } //nolint:forbidigo // this is where the command's clock is handed down

// keepOf says how long answers of a route stand; zero when it is none of ours.
func (c Config) keepOf(route string) umavez.Retention {
	for _, r := range c.Routes {
		if r.HTTP.Name == route {
			return umavez.Retention{Retain: r.HTTP.Retain, Tombstone: max(r.HTTP.Tombstone, 0)}
		}
	}
	return umavez.Retention{}
}

// Keys is a store that is open for an operator's command.
type Keys struct {
	*keys.Local
	close func() error
}

// Close closes the store.
func (k *Keys) Close() error { return k.close() }

// OpenKeys opens the store that the settings name, beside whoever serves from
// it. Of the settings it takes what the store, the key ring and the times are
// made of; the others may be missing.
func OpenKeys(ctx context.Context, s Settings, stderr io.Writer) (*Keys, error) {
	c, err := s.keysConfig()
	if err != nil {
		return nil, err
	}
	ring, err := c.loadRing(ctx, stderr)
	if err != nil {
		return nil, err
	}
	// Opening a file that is not there would make one, without keys.
	if _, err := os.Stat(c.Store.File); err != nil {
		return nil, fmt.Errorf("umavez: --store %s: %w", c.Store, err)
	}
	opened, err := openStore(ctx, c.Store, c.AcceptRisk)
	if err != nil {
		return nil, err
	}
	engine, err := umavez.New(opened.Store, umavez.Options{
		Lease: c.Lease, MaxRun: c.MaxRun, Retain: c.Retain, Tombstone: orNone(c.Tombstone),
		Sealer: sealer(ring),
	})
	if err != nil {
		return nil, errors.Join(err, opened.close())
	}
	return &Keys{
		Local: &keys.Local{Engine: engine, Store: opened.Store, Keep: c.keepOf, Now: wallClock},
		close: opened.close,
	}, nil
}

// keysConfig checks the settings that an operator's command needs.
func (s Settings) keysConfig() (Config, error) {
	var c Config
	var p problems
	s.times(&c, &p)
	s.ring(&c, &p)
	if len(s.Route)+len(s.Routes) > 0 {
		s.routes(&c, &p)
	}
	for _, name := range s.AcceptRisk {
		c.AcceptRisk = append(c.AcceptRisk, Risk(name))
	}
	var err error
	if c.Store, err = ParseStore(or(s.Store, DefaultStore)); err != nil {
		p.add(err)
	} else if c.Store.Scheme == StoreMemory {
		p.addf("--store %s: is in the memory of a running serve; ask that by --admin URL", c.Store)
	}
	return c, p.err()
}

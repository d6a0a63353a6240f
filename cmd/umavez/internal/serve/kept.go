package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/keyring"
)

// mostUnsettled bounds max-unsettled: beyond it, somebody wrote a wrong number.
const mostUnsettled = 1_000_000

// kept checks the settings of what is kept in the store, and of who may see it.
func (s Settings) kept(c *Config, p *problems) {
	s.ring(c, p)
	c.KeepNames, c.Status = or(s.KeepNames, false), or(s.Status, false)
	switch n := or(s.MaxUnsettled, DefaultMaxUnsettled); {
	case n < 0 || n > mostUnsettled:
		p.addf("max-unsettled %d: must be between 0 (no bound) and %d", n, mostUnsettled)
	case n == 0:
		c.MaxUnsettled = -1
	default:
		c.MaxUnsettled = int(n)
	}
	c.AdminToken = or(s.AdminToken, "")
	if c.AdminToken != "" && or(s.Admin, DefaultAdmin) == "" {
		p.addf("--admin-token %s: opens nothing without --admin", c.AdminToken)
	}
}

// ring checks where the key ring comes from.
func (s Settings) ring(c *Config, p *problems) {
	c.Keyring = keyring.Source{
		File: or(s.Keyring, ""), Command: s.KeyringCommand, AllowPlain: or(s.KeyringAllowPlain, false),
	}
	has := c.Keyring.File != "" || len(c.Keyring.Command) > 0
	switch {
	case c.Keyring.File != "" && len(c.Keyring.Command) > 0:
		p.addf("--keyring %s: cannot go with keyring-command: the ring comes from one of them", c.Keyring.File)
	case c.Keyring.AllowPlain && !has:
		p.addf("keyring-allow-plain: does nothing without --keyring or keyring-command")
	case len(c.Keyring.Command) > 0 && c.Keyring.Command[0] == "":
		p.addf("keyring-command: names no program")
	}
}

// loadRing reads the key ring; nil when there is none. A wrong file is a wrong
// setting; a command that fails may work the next time.
func (c Config) loadRing(ctx context.Context, stderr io.Writer) (*keyring.Ring, error) {
	source := c.Keyring
	if source.File == "" && len(source.Command) == 0 {
		return nil, nil
	}
	source.Stderr = stderr
	ring, err := keyring.Load(ctx, source)
	switch {
	case err != nil && source.File != "":
		return nil, usagef("--keyring %s: %s", source.File, strings.TrimPrefix(err.Error(), "umavez: "))
	case err != nil:
		return nil, fmt.Errorf("umavez: keyring-command: %s", strings.TrimPrefix(err.Error(), "umavez: "))
	}
	return ring, nil
}

// announceKept says at start what lies in the store in plain, and who may see it.
func (p *process) announceKept() {
	names := "hashed"
	if p.cfg.KeepNames {
		names = "in words"
	}
	if p.ring == nil {
		p.log.Info("kept", "sealed", "nothing", "names", names)
	} else {
		p.log.Info("kept", "sealed", "answers, last words, steps, requests, hash keys", "names", names,
			"key", p.ring.Active(), "keys", strings.Join(p.ring.IDs(), ","))
	}
	if p.cfg.Keyring.AllowPlain {
		p.log.Warn("what lies in the store in plain is taken (keyring-allow-plain): whoever can write to the store can put an answer there; take it away after umavez keys reseal")
	}
	if p.cfg.AdminToken == "" {
		return
	}
	if host, _, err := net.SplitHostPort(p.cfg.Admin); err == nil {
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			p.log.Warn("keys can be settled from other machines, over plain HTTP: whoever sees the token on its way can do it too", "admin", p.cfg.Admin)
		}
	}
}

// sealer hands a ring to the engine: a nil ring is no Sealer at all.
func sealer(ring *keyring.Ring) umavez.Sealer {
	if ring == nil {
		return nil
	}
	return ring
}

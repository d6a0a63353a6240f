package serve

import (
	"context"
	"time"

	"github.com/umavez/umavez/proxy"
)

// newSource builds what finds out who is calling.
func (p *process) newSource(ctx context.Context) (proxy.Source, error) {
	c := p.cfg
	switch c.Principal.Kind {
	case PrincipalMTLS:
		return proxy.MTLS(proxy.CertificateName), nil
	case PrincipalHeader:
		return proxy.FromHeader(c.Principal.Header, c.TrustedProxies)
	case PrincipalAuth:
		return proxy.AuthRequest(proxy.AuthOptions{URL: c.AuthURL.String(), Header: c.Principal.Header, KeyHeaders: c.KeyHeaders})
	case PrincipalJWT:
		keys, err := newKeySource(ctx, c.JWKS, time.Now, p.log) //nolint:forbidigo // tokens end by the wall clock, and this is where it is handed down
		if err != nil {
			return nil, err
		}
		p.inBackground(func() { keys.Run(p.life) })
		return newTokens(keys, c.Principal, c.Audience, time.Now), nil //nolint:forbidigo // as above
	default:
		return proxy.NoPrincipal(), nil
	}
}

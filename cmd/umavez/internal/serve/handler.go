package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/proxy"
	"github.com/umavez/umavez/umavezhttp"
)

// handler builds what clients meet, and reads what the namespace's processes
// share: with another recipe than the kept one, this process must not start.
func (p *process) handler(ctx context.Context) (http.Handler, error) {
	source, err := p.newSource(ctx)
	if err != nil {
		return nil, err
	}
	c := p.cfg
	o := proxy.Options{
		Upstream:       c.Upstream.String(),
		RewriteHost:    c.RewriteHost,
		IgnoreCase:     c.IgnoreCase,
		Principal:      counted(source, p.metrics.unauthenticated),
		TrustedProxies: c.TrustedProxies,
		CORS:           proxy.CORS{Origins: c.CORS, Credentials: c.CORSCredentials},
		Logger:         p.log,
		HTTP: umavezhttp.Options{
			Namespace: c.Namespace, Headers: c.KeyHeaders,
			Wait: orNone(c.Wait), WaitMax: c.WaitMax,
			MaxRequestBody: c.MaxBody, MaxAnswer: c.MaxAnswer,
			MaxDecoded: c.Limits.MaxDecoded, MaxRatio: c.Limits.MaxRatio,
			Expires: c.Expires, Docs: c.Docs, Problem: c.Problem, KeepNames: c.KeepNames,
		},
		Status: c.Status,
		Limits: c.Limits.Proxy,
	}
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, proxy.Route{Pattern: r.Pattern, HTTP: r.HTTP, Policy: r.Policy, Reconcile: r.Reconcile})
	}
	if p.proxy, err = proxy.New(p.engine, o); err != nil {
		// It has only looked at settings: what it refuses is wrong usage.
		return nil, usagef("%s", registered.ReplaceAllString(strings.TrimPrefix(err.Error(), "umavez: "), ""))
	}
	p.metrics.countUnmatched(p.proxy.Unmatched)
	if err := p.proxy.Open(ctx); errors.Is(err, keyring.ErrPlain) {
		return nil, fmt.Errorf("%w; if nobody has sealed this store yet, start with keyring-allow-plain, reseal it, and start without: docs/encryption.md", err)
	} else if err != nil {
		return nil, err
	}
	return p.proxy, nil
}

// counted counts the requests whose caller was not verified.
func counted(s proxy.Source, refused prometheus.Counter) proxy.Source {
	c := countedSource{Source: s, refused: refused}
	if scrubber, ok := s.(proxy.Scrubber); ok {
		return countedScrubber{countedSource: c, scrubber: scrubber}
	}
	return c
}

type countedSource struct {
	proxy.Source
	refused prometheus.Counter
}

func (c countedSource) Principal(r *http.Request) (string, error) {
	principal, err := c.Source.Principal(r)
	if err != nil || principal == "" {
		c.refused.Inc()
	}
	return principal, err
}

// countedScrubber is a countedSource that can be asked to scrub.
type countedScrubber struct {
	countedSource
	scrubber proxy.Scrubber
}

func (c countedScrubber) Scrub(r *http.Request) { c.scrubber.Scrub(r) }

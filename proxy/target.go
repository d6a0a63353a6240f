package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// target is the upstream, as its URL names it.
type target struct {
	scheme  string // of the requests: http or https
	host    string // as in the URL
	address string // host and port
	h2c     bool   // HTTP/2 without TLS, by prior knowledge
	// rewriteHost: Host is the target's, not what the client asked for.
	rewriteHost bool
}

var errUpstreamURL = errors.New("umavez: the upstream's address must be http://HOST[:PORT], https://HOST[:PORT] or h2c://HOST[:PORT]")

// parseTarget reads the upstream's URL. A path, a query or a user in it is an
// error and not dropped: whoever wrote it expects it to do something.
func parseTarget(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return target{}, fmt.Errorf("%w, not %q", errUpstreamURL, raw)
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.User != nil || u.Fragment != "" {
		return target{}, fmt.Errorf("%w, without user, path and query; not %q", errUpstreamURL, raw)
	}
	t := target{scheme: u.Scheme, host: u.Host}
	port := "80"
	switch u.Scheme {
	case "http":
	case "https":
		port = "443"
	case "h2c":
		t.scheme, t.h2c = "http", true
	default:
		return target{}, fmt.Errorf("%w, not %q", errUpstreamURL, raw)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	t.address = net.JoinHostPort(u.Hostname(), port)
	return t, nil
}

// protocols says what is spoken with the upstream. h2c excludes HTTP/1.1, since
// without TLS nothing could negotiate between the two.
func (t target) protocols() *http.Protocols {
	p := new(http.Protocols)
	switch {
	case t.h2c:
		p.SetUnencryptedHTTP2(true)
	case t.scheme == "https":
		p.SetHTTP1(true)
		p.SetHTTP2(true)
	default:
		p.SetHTTP1(true)
	}
	return p
}

// aim points a request at the target, and leaves path and query as the client
// wrote them.
func (t target) aim(out *http.Request, in *url.URL) {
	out.URL = &url.URL{
		Scheme: t.scheme, Host: t.host,
		Path: in.Path, RawPath: in.RawPath,
		RawQuery: in.RawQuery, ForceQuery: in.ForceQuery,
	}
	if t.rewriteHost {
		out.Host = t.host
	}
}

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"time"

	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// AuthOptions sets [AuthRequest] up.
type AuthOptions struct {
	// URL is asked by GET, with the headers that the upstream would get (so
	// X-Forwarded-For, -Proto and -Host are true) and X-Forwarded-Method and -Uri.
	URL string
	// Header is the header of its 2xx answer that names the caller. Default
	// X-Auth-Request-User.
	Header string
	// Timeout bounds the question. Default 5 s.
	Timeout time.Duration
	// Transport carries it. Default: one of its own, without a proxy.
	Transport http.RoundTripper
	// KeyHeaders are further names of the key's header. The key is not sent.
	KeyHeaders []string
}

// maxAuthBody bounds what is passed on of an answer that refuses the caller: it
// is a page that says "log in".
const maxAuthBody = 64 << 10

// AuthRequest returns the [Source] that asks a service of its own for each
// request, also for a replay: a caller who was locked out since gets no stored
// answer. A 2xx answer names the caller in a header, 401 and 403 go to the client
// as they are. Everything else, redirects included, is the service's failure: the
// client gets 503, and nothing is run.
func AuthRequest(o AuthOptions) (Source, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("umavez: the address of the authenticating service must be http(s)://…, not %q", o.URL)
	}
	if o.Header == "" {
		o.Header = "X-Auth-Request-User"
	}
	if !wire.IsToken(o.Header) {
		return nil, fmt.Errorf("umavez: %q is no header name", o.Header)
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}
	}
	s := &authRequest{
		url: o.URL, header: textproto.CanonicalMIMEHeaderKey(o.Header),
		drop: append([]string{wire.IdempotencyKey}, o.KeyHeaders...),
		client: &http.Client{
			Transport: o.Transport, Timeout: o.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	return s, nil
}

type authRequest struct {
	url, header string
	drop        []string // headers that are not sent
	client      *http.Client
}

func (s *authRequest) Recipe() string { return "auth:" + s.header }

func (s *authRequest) Principal(r *http.Request) (string, error) {
	req, err := s.question(r)
	if err != nil {
		return "", err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("umavez: asking who the caller is: %w", err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 200 && res.StatusCode <= 299:
		return s.named(res)
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return "", refusedBy(res)
	}
	return "", fmt.Errorf("umavez: asking who the caller is: status %d", res.StatusCode)
}

// question makes the sub-request: the headers that came, so that cookies and
// tokens are there, without the body that they describe.
func (s *authRequest) question(r *http.Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	removeHopByHop(req.Header)
	for _, name := range s.drop {
		// net/http repeats a request with a key by itself; and whose key it is
		// is what is being asked.
		req.Header.Del(name)
	}
	for _, name := range [...]string{
		"Content-Length", "Content-Encoding", "Content-Type", "Expect", "Range", "Accept-Encoding",
		"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range",
		// What the caller is called may come from the service only.
		s.header,
	} {
		req.Header.Del(name)
	}
	req.Header.Set("X-Forwarded-Method", r.Method)
	req.Header.Set("X-Forwarded-Uri", r.URL.RequestURI())
	return req, nil
}

func (s *authRequest) named(res *http.Response) (string, error) {
	lines := res.Header[s.header]
	if len(lines) != 1 || lines[0] == "" {
		return "", errors.New("umavez: the authenticating service let the caller in, " +
			"and did not say in " + s.header + " who it is")
	}
	return umavezhttp.PrincipalOf("auth", lines[0]), nil
}

// refusedBy keeps what a client needs to log in: challenge, cookies, page.
func refusedBy(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAuthBody))
	if err != nil {
		return fmt.Errorf("umavez: asking who the caller is: %w", err)
	}
	h := res.Header.Clone()
	removeHopByHop(h)
	for _, name := range [...]string{"Content-Length", "Date", "Trailer"} {
		h.Del(name)
	}
	return &Refused{Status: res.StatusCode, Header: h, Body: body}
}

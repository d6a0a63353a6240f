package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Remote is the [Desk] that asks the admin address of a running serve.
type Remote struct {
	base  *url.URL
	token string
	http  *http.Client
}

// Limits of a request: longer than the admin address takes for one, and more
// than a page of a list has.
const (
	remoteTimeout = 45 * time.Second
	maxReply      = 16 << 20
)

// remoteTries is how often a request is sent whose reply was lost. Each may be
// sent again: a change names itself.
const remoteTries = 3

// NewRemote checks the address: http:// or https://, and a host.
func NewRemote(address, token string) (*Remote, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, faultf(CodeUsage, "--admin %s: must be the admin address of a running serve, such as http://127.0.0.1:9091", address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, faultf(CodeUsage, "--admin %s: must be scheme, host and port", u.Redacted())
	}
	return &Remote{
		base: u, token: token,
		http: &http.Client{
			Timeout: remoteTimeout,
			// The token is for this address and no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Find asks for the names in the store.
func (r *Remote) Find(ctx context.Context, n Names) (f Found, err error) {
	return f, r.ask(ctx, http.MethodPost, "/keys/find", n, &f)
}

// List asks for a page.
func (r *Remote) List(ctx context.Context, f Filter) (p Page, err error) {
	path := "/keys"
	if v := f.values(); len(v) > 0 {
		path += "?" + v.Encode()
	}
	return p, r.ask(ctx, http.MethodGet, path, nil, &p)
}

// Show asks for all of a key.
func (r *Remote) Show(ctx context.Context, id string) (s Shown, err error) {
	if _, err := idOf(id); err != nil {
		return s, err
	}
	return s, r.ask(ctx, http.MethodGet, "/keys/"+id, nil, &s)
}

// Settle asks for a change. It is checked here too, so that what is wrong about
// it is said in the same words, also when nobody is there to ask.
func (r *Remote) Settle(ctx context.Context, c Change) (done Changed, err error) {
	if _, _, err := c.settlement(0); err != nil {
		return done, err
	}
	path := "/keys/settle"
	if c.Action == "forget" {
		path = "/keys/forget"
	}
	return done, r.ask(ctx, http.MethodPost, path, c, &done)
}

// Purge asks for a part of the purge.
func (r *Remote) Purge(ctx context.Context) (p Purged, err error) {
	return p, r.ask(ctx, http.MethodPost, "/keys/purge", struct{}{}, &p)
}

// ask sends a request until there is a reply.
func (r *Remote) ask(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("umavez: %w", err)
		}
	}
	var err error
	for range remoteTries {
		var again bool
		if again, err = r.send(ctx, method, path, body, out); !again || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// send makes one request. again: there was no reply.
func (r *Remote) send(ctx context.Context, method, path string, body []byte, out any) (again bool, err error) {
	target := strings.TrimSuffix(r.base.String(), "/") + path
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("umavez: --admin %s: %w", r.base, err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := r.http.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return true, &Fault{Code: CodeFailed, Text: fmt.Sprintf("--admin %s: no reply", r.base), cause: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return true, &Fault{Code: CodeFailed, Text: fmt.Sprintf("--admin %s: the reply broke off", r.base), cause: err}
	}
	if res.StatusCode == http.StatusOK && json.Unmarshal(text, out) == nil {
		return false, nil
	}
	f := &Fault{}
	if res.StatusCode == http.StatusOK || json.Unmarshal(text, f) != nil || f.Code == "" || f.Text == "" {
		return false, faultf(CodeFailed, "--admin %s: answers %s, and not as the admin address of serve does", r.base, res.Status)
	}
	return false, f
}

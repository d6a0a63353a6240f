package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// Defaults and bounds of [Reconcile].
const (
	// defaultMaxResponse is that of kept answers: it may become one.
	defaultMaxResponse = 1 << 20
	// defaultAskAfter and defaultAskTimeout are those of the engine. They are
	// said to it, since clients are told of the first.
	defaultAskAfter   = 10 * time.Second
	defaultAskTimeout = 30 * time.Second
	// mostRedirects is more than any service needs within its own origin.
	mostRedirects = 5
	// idleAsk closes connections between two rounds of questions.
	idleAsk = 30 * time.Second
)

// asker is a Reconcile that was checked: it asks.
type asker struct {
	inquiry     *inquiry
	cancel      *inquiry // nil: none
	timeout     time.Duration
	maxResponse int64
	client      *http.Client
	close       func()
}

// Check says what is wrong with the settings for the operations of a route, as
// [New] does. callers says whether the sidecar's [Source] tells callers apart: any
// but [NoPrincipal]. Its error is a [*PlaceError].
func (r *Reconcile) Check(rt umavezhttp.Route, callers bool) error {
	_, _, err := r.reconciler(&rt, callers)
	return err
}

// reconciler checks the settings of a route's reconciler. Its error is a
// [*PlaceError].
func (r *Reconcile) reconciler(rt *umavezhttp.Route, callers bool) (*asker, umavez.Reconciler, error) {
	c := &checker{env: r.Env, keeps: rt.KeepRequest, bare: rt.NoBody, shared: callers && !r.UniqueKeys}
	a := &asker{
		timeout: cmp.Or(r.Timeout, defaultAskTimeout), maxResponse: cmp.Or(r.MaxResponse, defaultMaxResponse),
	}
	var err error
	if a.inquiry, err = c.inquiry(r.Inquiry, false); err != nil {
		return nil, umavez.Reconciler{}, err
	}
	if r.Cancel != nil {
		if a.cancel, err = c.inquiry(*r.Cancel, true); err != nil {
			return nil, umavez.Reconciler{}, placed("cancel", err)
		}
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"after", int64(r.After)},
		{"every", int64(r.Every)},
		{"park", int64(r.Park)},
		{"quiet", int64(r.Quiet)},
		{"timeout", int64(r.Timeout)},
		{"max-response", r.MaxResponse},
	} {
		if n.value < 0 {
			return nil, umavez.Reconciler{}, placed(n.name, errors.New("is negative"))
		}
	}
	a.connect(r.Transport)
	return a, umavez.Reconciler{
		After: r.after(), Every: r.Every, Park: r.Park, Quiet: r.Quiet, Timeout: a.timeout, Ask: a.ask,
	}, nil
}

// after is how long after a loss somebody is asked first.
func (r *Reconcile) after() time.Duration { return cmp.Or(r.After, defaultAskAfter) }

// connect makes the client. It knows no cookies, and decodes nothing: what is
// read is what came.
func (a *asker) connect(rt http.RoundTripper) {
	a.close = func() {}
	if rt == nil {
		own := &http.Transport{
			Proxy: nil, DisableCompression: true, IdleConnTimeout: idleAsk,
			TLSHandshakeTimeout: a.timeout, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 256 << 10,
		}
		rt, a.close = own, own.CloseIdleConnections
	}
	a.client = &http.Client{Transport: rt, CheckRedirect: withinOrigin}
}

// withinOrigin follows a redirect that stays where it is and changes nothing.
// Elsewhere somebody else would answer, and get what the question's headers hold.
func withinOrigin(next *http.Request, before []*http.Request) error {
	first := before[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return errors.New("umavez: a question that is not asked by GET was redirected")
	case next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host:
		return errors.New("umavez: the question was redirected to another origin")
	case len(before) > mostRedirects:
		return errors.New("umavez: the question was redirected too often")
	}
	return nil
}

// ask is what the engine calls.
func (a *asker) ask(ctx context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	from := &facts{id: l.ID.String(), route: l.Route, derived: l.DerivedKey}
	if l.Request != nil {
		var kept umavezhttp.Request
		if err := kept.UnmarshalBinary(l.Request); err != nil {
			return umavez.Verdict{}, err
		}
		from.kept = &keptFacts{
			key: kept.Key, sentKey: wire.FormatKey(kept.Key), principal: kept.Principal, body: kept.Body,
		}
	}
	fits, verdict, err := a.put(ctx, a.inquiry, from)
	if err != nil {
		return umavez.Verdict{}, err
	}
	if fits != nil && fits.verdict == VerdictCannotHappen && fits.proven == "" && a.cancel != nil {
		_, verdict, err = a.put(ctx, a.cancel, from)
		if err != nil {
			return umavez.Verdict{}, fmt.Errorf("umavez: cancelling: %w", err)
		}
	}
	return verdict, nil
}

// put asks a question, and says which rule fits its answer and what follows. The
// rule is nil when none does.
func (a *asker) put(ctx context.Context, in *inquiry, from *facts) (*rule, umavez.Verdict, error) {
	req, err := in.request(ctx, from)
	if err != nil {
		return nil, umavez.Verdict{}, fmt.Errorf("umavez: the question cannot be asked: %w", err)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return nil, umavez.Verdict{}, fmt.Errorf("umavez: the question was not answered: %w", withoutQuery(err))
	}
	defer res.Body.Close()
	// Of an answer that says nothing, nothing is read.
	if res.StatusCode < 200 || res.StatusCode > 299 && res.StatusCode < 400 || res.StatusCode > 499 ||
		slices.Contains(saysNothing, res.StatusCode) {
		return nil, umavez.Verdict{}, fmt.Errorf("umavez: status %d does not say what became of the operation", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, a.maxResponse+1))
	switch {
	case err != nil:
		return nil, umavez.Verdict{}, fmt.Errorf("umavez: the answer to the question broke off: %w", err)
	case int64(len(body)) > a.maxResponse:
		return nil, umavez.Verdict{}, fmt.Errorf("umavez: the answer to the question is longer than %d bytes", a.maxResponse)
	}
	heard := *from
	heard.response = body
	for i := range in.rules {
		ok, err := in.rules[i].fits(res.StatusCode, &heard)
		if err != nil {
			return nil, umavez.Verdict{}, err
		}
		if ok {
			verdict, err := in.rules[i].conclude(&heard, res.Header)
			return &in.rules[i], verdict, err
		}
	}
	return nil, umavez.StillUnknown(), nil
}

// request fills the question in.
func (in *inquiry) request(ctx context.Context, from *facts) (*http.Request, error) {
	address, err := in.url.fill(from)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	body := io.Reader(http.NoBody)
	if in.media != "" {
		text, err := in.body.fill(from)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, in.method, address, body)
	if err != nil {
		return nil, errors.New("url: it is no URL with its values")
	}
	if err := checkSegments(req.URL.EscapedPath()); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	// No value can do this; the promise rests on more than that.
	if req.URL.Scheme != in.base.Scheme || req.URL.Host != in.base.Host || req.URL.Fragment != "" {
		return nil, errors.New("url: its values have made it another origin")
	}
	if req.Header, err = fillHeaders(in.header, from); err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	if in.media != "" {
		req.Header.Set("Content-Type", in.media)
	}
	return req, nil
}

// conclude is the verdict of a rule that fits.
func (r *rule) conclude(from *facts, header http.Header) (umavez.Verdict, error) {
	switch r.verdict {
	case VerdictHappened:
		answer, err := r.answer.fill(from, header)
		if err != nil {
			return umavez.Verdict{}, fmt.Errorf("umavez: it has happened, and the answer cannot be made: %w", err)
		}
		return umavezhttp.Happened(answer)
	case VerdictCannotHappen:
		if r.proven != "" {
			return umavez.CannotHappen().Proven(r.proven), nil
		}
		return umavez.CannotHappen(), nil
	case VerdictUnknown:
	}
	return umavez.StillUnknown(), nil
}

// withoutQuery takes the address out of an error of net/http's client: it may
// hold the key, and what a customer bought.
func withoutQuery(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

package serve

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/proxy"
)

// ReconcileSettings are a reconciler as the file spells it: see
// [proxy.Reconcile], whose texts are the same.
type ReconcileSettings struct {
	Ask    *QuestionSettings `yaml:"ask"`
	Rules  []RuleSettings    `yaml:"rules"`
	Cancel *InquirySettings  `yaml:"cancel"`
	// UniqueKeys says that no two callers can use the same key.
	UniqueKeys bool `yaml:"unique-keys"`

	After       *Duration `yaml:"after"`
	Every       *Duration `yaml:"every"`
	Park        *Duration `yaml:"park"`
	Quiet       *Duration `yaml:"quiet"`
	Timeout     *Duration `yaml:"timeout"`
	MaxResponse *int64    `yaml:"max-response"`

	// node is where it stands in the file.
	node ast.Node
}

// InquirySettings are a question, and what its answers mean.
type InquirySettings struct {
	Ask   *QuestionSettings `yaml:"ask"`
	Rules []RuleSettings    `yaml:"rules"`
}

// QuestionSettings are an HTTP request with values in it.
type QuestionSettings struct {
	Method  string            `yaml:"method"`
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`
}

// RuleSettings say what an answer means.
type RuleSettings struct {
	Status  []string            `yaml:"status"`
	When    []ConditionSettings `yaml:"when"`
	Verdict string              `yaml:"verdict"`
	Proven  string              `yaml:"proven"`
	Answer  *AnswerSettings     `yaml:"answer"`
}

// ConditionSettings are about one value of an answer.
type ConditionSettings struct {
	At     string `yaml:"at"`
	Equals any    `yaml:"equals"`
	OneOf  []any  `yaml:"one-of"`
	Exists bool   `yaml:"exists"`
	Absent bool   `yaml:"absent"`
}

// AnswerSettings are what clients get of an operation that has happened.
type AnswerSettings struct {
	Status       int               `yaml:"status"`
	Headers      map[string]string `yaml:"headers"`
	Body         string            `yaml:"body"`
	ResponseBody bool              `yaml:"response-body"`
}

// UnmarshalYAML keeps the place, so that what is found out later can name its line.
func (s *ReconcileSettings) UnmarshalYAML(node ast.Node) error {
	type bare ReconcileSettings
	if err := yaml.NodeToValue(node, (*bare)(s), yaml.Strict()); err != nil {
		return err
	}
	s.node = node
	return nil
}

// policies are those that a route of a sidecar may have.
var policies = []umavez.Policy{umavez.Opaque, umavez.Rerunnable}

// recovery checks what is to become of a route's lost operations. sealed: the
// store holds what it keeps under a key ring.
func (r RouteSettings) recovery(option string, c *Config, sealed bool, rc *RouteConfig, p *problems) {
	rc.Policy = p.policy(option, r.Policy)
	rt := &rc.HTTP
	rt.KeepRequest, rt.PlainRequests, rt.Withhold = r.KeepRequest, r.PlainRequests, r.Withhold
	for _, name := range r.Withhold {
		if !headerName.MatchString(name) {
			p.addf("%s: withhold: %q is not a header's name", option, name)
		}
	}
	switch {
	case !r.KeepRequest && (r.PlainRequests || len(r.Withhold) > 0):
		p.addf("%s: plain-requests and withhold are about kept requests; the route does not say keep-request", option)
	case r.KeepRequest && !r.PlainRequests && !sealed:
		p.addf("%s: keep-request: would put requests into the store in plain: set --keyring, or say by plain-requests that they hold no secret", option)
	case r.KeepRequest && rc.Policy == umavez.Opaque && r.Reconcile == nil:
		p.addf("%s: keep-request: nobody would read the requests: a route whose policy is opaque is never completed, and this one has no reconcile", option)
	}
	r.completer(option, rc, p)
	if r.Reconcile == nil {
		return
	}
	rc.Reconcile = r.Reconcile.config(option+": reconcile", c, p)
	// An operator's command reads the file without the principal; a start does not.
	callers := c.Principal.Kind != "" && c.Principal.Kind != PrincipalNone
	if err := rc.Reconcile.Check(*rt, callers); err != nil {
		p.addf("%s: reconcile: %s", option, r.Reconcile.located(err))
	}
}

func (p *problems) policy(option, text string) umavez.Policy {
	for _, policy := range policies {
		if text == policy.String() {
			return policy
		}
	}
	if text != "" {
		p.addf("%s: policy %s: must be %v, or %v: running it again is safe", option, text, policies[0], policies[1])
	}
	return umavez.Opaque
}

// completer checks when the completer works.
func (r RouteSettings) completer(option string, rc *RouteConfig, p *problems) {
	if r.CompleteAfter == nil && r.CompleteUntil == nil && r.CompleteTries == nil {
		return
	}
	if rc.Policy == umavez.Opaque || !r.KeepRequest {
		p.addf("%s: complete-after, complete-until and complete-tries need policy: %v and keep-request: true: nothing else is completed", option, umavez.Rerunnable)
		return
	}
	rt := &rc.HTTP
	rt.CompleteAfter = p.between(option+": complete-after", r.CompleteAfter, completeAfter, time.Second, longest)
	rt.CompleteUntil = p.between(option+": complete-until", r.CompleteUntil, completeUntil, time.Second, longest)
	if rt.CompleteUntil <= rt.CompleteAfter {
		p.addf("%s: complete-until %v: is not longer than complete-after %v, so that nothing would be completed", option, rt.CompleteUntil, rt.CompleteAfter)
	}
	if rt.CompleteTries = or(r.CompleteTries, completeTries); rt.CompleteTries < 1 || rt.CompleteTries > mostTries {
		p.addf("%s: complete-tries %d: must be between 1 and %d", option, rt.CompleteTries, mostTries)
	}
}

// The engine's own defaults, which the file's are checked with; and a bound, since
// what has failed a hundred times fails again.
const (
	completeAfter = time.Minute
	completeUntil = 10 * time.Minute
	completeTries = 5
	mostTries     = 100
)

// config spells the settings as package proxy does. Zero means its default.
func (s *ReconcileSettings) config(option string, c *Config, p *problems) *proxy.Reconcile {
	r := &proxy.Reconcile{Env: os.LookupEnv, UniqueKeys: s.UniqueKeys}
	r.Inquiry = (&InquirySettings{Ask: s.Ask, Rules: s.Rules}).config()
	if s.Cancel != nil {
		cancel := s.Cancel.config()
		r.Cancel = &cancel
	}
	for _, d := range []struct {
		name    string
		written *Duration
		to      *time.Duration
		least   time.Duration
	}{
		{"after", s.After, &r.After, time.Millisecond},
		{"every", s.Every, &r.Every, time.Second},
		{"park", s.Park, &r.Park, time.Second},
		// What is on its way to the upstream may arrive for as long.
		{"quiet", s.Quiet, &r.Quiet, max(umavez.DefaultQuiet, c.MaxRun)},
		{"timeout", s.Timeout, &r.Timeout, time.Millisecond},
	} {
		if d.written != nil {
			*d.to = p.between(option+": "+d.name, d.written, 0, d.least, longest)
		}
	}
	if s.MaxResponse != nil {
		r.MaxResponse = p.size(option+": max-response", s.MaxResponse, 0)
	}
	return r
}

func (s *InquirySettings) config() proxy.Inquiry {
	var in proxy.Inquiry
	if q := s.Ask; q != nil {
		in.Ask = proxy.Question{Method: q.Method, URL: q.URL, Header: q.Headers, Body: q.Body}
	}
	for _, r := range s.Rules {
		rule := proxy.Rule{Status: r.Status, Verdict: proxy.Verdict(r.Verdict), Proven: r.Proven}
		for _, w := range r.When {
			oneOf := w.OneOf
			if w.Equals != nil {
				oneOf = append([]any{w.Equals}, oneOf...)
			}
			rule.When = append(rule.When, proxy.Condition{At: w.At, OneOf: oneOf, Exists: w.Exists, Absent: w.Absent})
		}
		if a := r.Answer; a != nil {
			rule.Answer = &proxy.Answer{Status: a.Status, Header: a.Headers, Body: a.Body, ResponseBody: a.ResponseBody}
		}
		in.Rules = append(in.Rules, rule)
	}
	return in
}

// located spells an error with the line that it is about.
func (s *ReconcileSettings) located(err error) error {
	at, ok := errors.AsType[*proxy.PlaceError](err)
	if !ok || s.node == nil {
		return err
	}
	return lineErrorf(nodeAt(s.node, strings.FieldsFunc(at.Place, func(r rune) bool { return r == '.' || r == '[' || r == ']' })), "%v", err)
}

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// PlaceError says what is wrong with a [Reconcile], and where.
type PlaceError struct {
	// Place is spelled as settings files spell it: rules[0].when[1].at.
	Place string
	Err   error
}

// Error names the place first.
func (e *PlaceError) Error() string { return e.Place + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *PlaceError) Unwrap() error { return e.Err }

// placed says of an error where it is. What is placed already is placed within.
func placed(place string, err error) error {
	if inner, ok := errors.AsType[*PlaceError](err); ok {
		return &PlaceError{place + "." + inner.Place, inner.Err}
	}
	return &PlaceError{place, err}
}

// inquiry is a checked Inquiry.
type inquiry struct {
	method string
	url    form
	base   *url.URL // scheme and host of it
	header []headerForm
	body   form
	media  string // empty: no body
	rules  []rule
}

// checker is what the check of a Reconcile goes by.
type checker struct {
	env func(string) (string, bool)
	// keeps: the route keeps its requests. bare: it keeps no body of an answer.
	keeps, bare bool
	// shared: two callers may use the same key, and each has a record of its own.
	shared bool
}

var errSharedKey = errors.New("two callers may use the same key, and one would get what the other was charged: " +
	`the question must name .Principal, .ID, derivedKey "STEP" or a field of the request; or say unique-keys, if no two callers can`)

var errNeedsRequest = errors.New("is known only where the request is kept: the route must say keep-request")

func (c *checker) inquiry(in Inquiry, cancels bool) (*inquiry, error) {
	checked, err := c.question(in.Ask)
	if err != nil {
		return nil, placed("ask", err)
	}
	if c.shared && !checked.namesCaller() {
		return nil, placed("ask", errSharedKey)
	}
	if len(in.Rules) == 0 {
		return nil, placed("rules", errors.New("without one, every outcome stays unknown"))
	}
	for i, r := range in.Rules {
		rule, err := c.rule(r, cancels)
		if err != nil {
			return nil, placed(fmt.Sprintf("rules[%d]", i), err)
		}
		checked.rules = append(checked.rules, rule)
	}
	return checked, nil
}

func (c *checker) question(q Question) (*inquiry, error) {
	in := &inquiry{method: q.Method}
	if in.method == "" {
		if in.method = http.MethodGet; q.Body != "" {
			in.method = http.MethodPost
		}
	}
	switch {
	case !wire.IsToken(in.method) || in.method != strings.ToUpper(in.method) || in.method == http.MethodConnect:
		return nil, placed("method", fmt.Errorf("%q is none to ask by", q.Method))
	case q.Body != "" && (in.method == http.MethodGet || in.method == http.MethodHead):
		return nil, placed("body", fmt.Errorf("%s has none", in.method))
	}
	var err error
	if in.url, in.base, err = parseURLForm(q.URL); err == nil {
		err = c.allowed(in.url, false, false)
	}
	if err != nil {
		return nil, placed("url", err)
	}
	if in.header, err = parseHeaderForms(q.Header, notAsked); err == nil {
		err = c.headersAllowed(in.header, true, false)
	}
	if err != nil {
		return nil, placed("headers", err)
	}
	if q.Body == "" {
		return in, nil
	}
	if in.media, err = mediaOf(in.header, "application/json"); err != nil {
		return nil, placed("headers", err)
	}
	if in.body, err = parseBodyForm(in.media, q.Body); err == nil {
		err = c.allowed(in.body, false, false)
	}
	if err != nil {
		return nil, placed("body", err)
	}
	return in, nil
}

// namesCaller reports whether something in the question is not the same for two
// callers' equal keys.
func (in *inquiry) namesCaller() bool {
	forms := []form{in.url, in.body}
	for _, h := range in.header {
		forms = append(forms, h.form)
	}
	for _, f := range forms {
		for _, b := range f.blanks() {
			if b.from.ofCaller() {
				return true
			}
		}
	}
	return false
}

// allowed checks that the values of a form are known where it is filled in, and
// reads those that are known now.
func (c *checker) allowed(f form, env, response bool) error {
	for _, b := range f.blanks() {
		switch {
		case b.from.needsRequest() && !c.keeps:
			return fmt.Errorf("%s %w", b.shown, errNeedsRequest)
		case b.from == fromResponse && !response:
			return fmt.Errorf("%s: there is no answer yet", b.shown)
		case b.from != fromEnv:
			continue
		case !env:
			return fmt.Errorf("%s: a secret belongs into a header of the question", b.shown)
		}
		value, ok := "", false
		if c.env != nil {
			value, ok = c.env(b.arg)
		}
		if !ok || value == "" {
			return fmt.Errorf("%s: there is no such variable", b.shown)
		}
		if !wire.IsFieldText(value) {
			return fmt.Errorf("%s: %w", b.shown, errHeader)
		}
		b.arg = value
	}
	return nil
}

func (c *checker) headersAllowed(fields []headerForm, env, response bool) error {
	for _, h := range fields {
		if err := c.allowed(h.form, env, response); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return nil
}

func (c *checker) rule(r Rule, cancels bool) (rule, error) {
	checked := rule{verdict: r.Verdict, proven: r.Proven}
	for i, text := range r.Status {
		s, err := parseStatus(text)
		if err != nil {
			return rule{}, placed(fmt.Sprintf("status[%d]", i), err)
		}
		checked.statuses = append(checked.statuses, s)
	}
	for i, w := range r.When {
		cond, err := checkCondition(w)
		for _, v := range cond.oneOf {
			if err == nil {
				err = c.allowed(v.form, false, false)
			}
		}
		if err != nil {
			return rule{}, placed(fmt.Sprintf("when[%d]", i), err)
		}
		checked.when = append(checked.when, cond)
	}
	if len(r.Status)+len(r.When) == 0 {
		return rule{}, errors.New("it fits every answer: say which it is about, by status or when")
	}
	if err := r.consistent(cancels); err != nil {
		return rule{}, err
	}
	if r.Answer == nil {
		return checked, nil
	}
	var err error
	if checked.answer, err = c.answer(*r.Answer); err != nil {
		return rule{}, placed("answer", err)
	}
	return checked, nil
}

// consistent checks that a rule says what its verdict needs, and nothing that
// another one would need.
func (r *Rule) consistent(cancels bool) error {
	switch {
	case !slices.Contains([]Verdict{VerdictHappened, VerdictCannotHappen, VerdictUnknown}, r.Verdict):
		return placed("verdict", fmt.Errorf("%q must be %s, %s or %s", r.Verdict, VerdictHappened, VerdictCannotHappen, VerdictUnknown))
	case r.Verdict == VerdictHappened && r.Answer == nil:
		return placed("answer", errors.New("it is missing: it is what every attempt gets from then on"))
	case r.Verdict != VerdictHappened && r.Answer != nil:
		return placed("answer", fmt.Errorf("goes with %s alone", VerdictHappened))
	case r.Verdict != VerdictCannotHappen && r.Proven != "":
		return placed("proven", fmt.Errorf("goes with %s alone", VerdictCannotHappen))
	case len(r.Proven) > maxProven || !isText(r.Proven):
		return placed("proven", fmt.Errorf("must be one line of at most %d bytes", maxProven))
	case cancels && r.Verdict == VerdictCannotHappen && r.Proven == "":
		return placed("proven", errors.New("is missing: say how this answer shows that the key is refused from now on"))
	}
	return nil
}

// maxProven leaves room in the audit trail for what the engine adds.
const maxProven = umavez.MaxWhy / 2

// isText reports whether s is text that can stand in a line.
func isText(s string) bool {
	return strings.ToValidUTF8(s, "\x00") == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

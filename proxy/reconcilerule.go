package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// saysNothing are answers that speak of the question and not of the operation:
// the reconciler was not let in, asked too often, or met a fault.
var saysNothing = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
	http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests,
}

// rule is a checked Rule.
type rule struct {
	statuses []statusRange // empty: any
	when     []condition
	verdict  Verdict
	proven   string
	answer   *answerForm
}

type statusRange struct{ from, to int }

// parseStatus reads 200, 400-499 or 4xx.
func parseStatus(text string) (statusRange, error) {
	wrong := fmt.Errorf("%q must be a status such as 404, a range such as 400-499, or a class such as 4xx, from 200 to 499", text)
	var r statusRange
	if class, ok := strings.CutSuffix(text, "xx"); ok {
		n, err := strconv.Atoi(class)
		if err != nil {
			return r, wrong
		}
		r = statusRange{100 * n, 100*n + 99}
	} else {
		from, to, ranged := strings.Cut(text, "-")
		if !ranged {
			to = from
		}
		var err, err2 error
		r.from, err = strconv.Atoi(from)
		r.to, err2 = strconv.Atoi(to)
		if err != nil || err2 != nil || r.from > r.to {
			return r, wrong
		}
	}
	switch {
	case r.from >= 300 && r.to <= 399:
		return r, fmt.Errorf("%q: a redirect is followed or a failure, and says nothing", text)
	case r.from == r.to && slices.Contains(saysNothing, r.from):
		return r, fmt.Errorf("%q speaks of the question, and not of the operation: it leaves the outcome unknown", text)
	case r.from < 200 || r.to > 499:
		return r, wrong
	}
	return r, nil
}

// condition is a checked Condition.
type condition struct {
	at     string // as it was written, for errors
	path   []string
	oneOf  []comparand
	exists bool // else, without oneOf: absent
}

// comparand is a value that is known, or a form.
type comparand struct {
	value json.RawMessage
	form  form
}

func checkCondition(c Condition) (condition, error) {
	path, err := parsePointer(c.At)
	if err != nil {
		return condition{}, placed("at", err)
	}
	said := 0
	for _, set := range []bool{len(c.OneOf) > 0, c.Exists, c.Absent} {
		if set {
			said++
		}
	}
	if said != 1 {
		return condition{}, errors.New("a condition says exactly one of: what the value equals, what it is one of, that it exists, that it is absent")
	}
	checked := condition{at: c.At, path: path, exists: c.Exists}
	for i, value := range c.OneOf {
		v, err := checkComparand(value)
		if err != nil {
			return condition{}, placed(fmt.Sprintf("one-of[%d]", i), err)
		}
		checked.oneOf = append(checked.oneOf, v)
	}
	return checked, nil
}

func checkComparand(value any) (comparand, error) {
	if text, ok := value.(string); ok {
		f, err := parseForm(text)
		if err != nil {
			return comparand{}, err
		}
		for _, b := range f.blanks() {
			if b.from == fromEnv || b.from == fromResponse {
				return comparand{}, fmt.Errorf("%s: cannot be compared with", b.shown)
			}
		}
		return comparand{form: f}, nil
	}
	raw, err := json.Marshal(value)
	if err != nil || raw[0] == '{' || raw[0] == '[' {
		return comparand{}, fmt.Errorf("%v is neither a text nor a number, a boolean or null", value)
	}
	return comparand{value: raw}, nil
}

// read returns the value to compare with.
func (c *comparand) read(from *facts) (json.RawMessage, error) {
	switch {
	case c.value != nil:
		return c.value, nil
	case len(c.form) == 1 && c.form[0].blank != nil:
		value, err := c.form[0].blank.read(from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.form[0].blank.shown, err)
		}
		return value, nil
	}
	text, err := c.form.fill(from)
	if err != nil {
		return nil, err
	}
	return jsonText(text)
}

// holds reports whether the condition holds. Whether a value is there is known of
// a document only that is one.
func (c *condition) holds(from *facts) (bool, error) {
	value, found, err := find(from.response, c.path)
	switch {
	case err != nil:
		return false, fmt.Errorf("umavez: the answer: %w", err)
	case len(c.oneOf) == 0 && !c.exists:
		return c.absent(from.response, found)
	case len(c.oneOf) == 0 || !found:
		return found, nil
	}
	for i := range c.oneOf {
		want, err := c.oneOf[i].read(from)
		if err != nil {
			return false, err
		}
		if equalJSON(value, want) {
			return true, nil
		}
	}
	return false, nil
}

// absent reports whether the value is not there. Only what could hold it says so:
// a list without elements says that there is no charge, and an answer without the
// list ({"error":"try again"}, {"data":null}) says nothing. It is an error.
func (c *condition) absent(document []byte, found bool) (bool, error) {
	if found {
		return false, nil
	}
	last := len(c.path) - 1 // the whole document is always found
	kind, opening := "object", byte('{')
	if _, ok := parseIndex(c.path[last]); ok {
		kind, opening = "array", '['
	}
	holder, found, err := find(document, c.path[:last])
	if err != nil {
		return false, fmt.Errorf("umavez: the answer: %w", err)
	}
	if !found || holder[0] != opening {
		within := c.at[:strings.LastIndexByte(c.at, '/')]
		return false, fmt.Errorf("umavez: the answer does not say that %q is absent: there is no %s at %q that could hold it", c.at, kind, within)
	}
	return true, nil
}

// fits reports whether the rule is about this answer.
func (r *rule) fits(status int, from *facts) (bool, error) {
	if len(r.statuses) > 0 && !slices.ContainsFunc(r.statuses, func(s statusRange) bool { return s.from <= status && status <= s.to }) {
		return false, nil
	}
	for i := range r.when {
		if ok, err := r.when[i].holds(from); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

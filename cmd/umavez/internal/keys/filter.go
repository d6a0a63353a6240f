package keys

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/umavez/umavez"
)

// StateUnknown is the state of a lost record that no next attempt takes over.
const StateUnknown = "unknown"

// states are those that can be asked for, and what a store calls them.
var states = map[string]umavez.State{
	StateUnknown: umavez.Lost,
	"lost":       umavez.Lost,
	"running":    umavez.Running,
	"done":       umavez.Done,
	"expired":    umavez.Expired,
}

// stateForms is what an error offers.
const stateForms = "unknown, lost, running, done or expired"

// Filter says which keys are wanted. Fields that are not set want every key.
type Filter struct {
	// States are as in Key.State: unknown is not lost here.
	States    []string
	Reason    string
	Namespace string
	Scope     string
	Route     string
	// OlderThan is the least time since the first claim.
	OlderThan time.Duration
	// After is Page.Next of the page before.
	After string
	// Limit is the most that a page has; 0: as many as it can have. A page may
	// have fewer though there are more: Page.Next tells.
	Limit int
}

// query is the filter in the words of the store.
func (f *Filter) query() (umavez.Query, error) {
	q := umavez.Query{Reason: umavez.Reason(f.Reason), Namespace: f.Namespace, Route: f.Route, MinAge: f.OlderThan, Limit: f.Limit}
	for _, name := range f.States {
		state, ok := states[name]
		if !ok {
			return q, faultf(CodeUsage, "--state %s: must be %s", name, stateForms)
		}
		if !slices.Contains(q.States, state) {
			q.States = append(q.States, state)
		}
	}
	q.Unknown = len(f.States) == 1 && f.States[0] == StateUnknown
	if f.OlderThan < 0 {
		return q, faultf(CodeUsage, "--older-than %v: must not be negative", f.OlderThan)
	}
	if f.Limit < 0 {
		return q, faultf(CodeUsage, "--limit %d: must be 1 or more", f.Limit)
	}
	if f.Limit == 0 || f.Limit > umavez.MaxPage {
		q.Limit = umavez.MaxPage
	}
	if f.Scope != "" && !unhex(q.Scope[:], f.Scope) {
		return q, faultf(CodeUsage, "--scope %s: must be the %d hexadecimal digits that a list shows", f.Scope, 2*len(q.Scope))
	}
	if f.After != "" && !unhex(q.After[:], f.After) {
		return q, faultf(CodeUsage, "after %s: must be what the page before said", f.After)
	}
	return q, nil
}

// Check finds out what is wrong with a filter before anybody is asked.
func (f *Filter) Check() error {
	_, err := f.query()
	return err
}

// wants reports whether a record that fits the query is wanted: the store does
// not tell lost from unknown.
func (f *Filter) wants(rec *umavez.Record) bool {
	return len(f.States) == 0 || slices.Contains(f.States, stateOf(rec))
}

// values spells the filter for the admin API.
func (f *Filter) values() url.Values {
	v := url.Values{}
	for _, s := range f.States {
		v.Add("state", s)
	}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("reason", f.Reason)
	set("namespace", f.Namespace)
	set("scope", f.Scope)
	set("route", f.Route)
	set("after", f.After)
	if f.OlderThan != 0 {
		v.Set("older_than", f.OlderThan.String())
	}
	if f.Limit != 0 {
		v.Set("limit", strconv.Itoa(f.Limit))
	}
	return v
}

// filterOf reads what values has written. A parameter that does not exist would
// look as if it had chosen.
func filterOf(v url.Values) (f Filter, err error) {
	for name, values := range v {
		if name != "state" && len(values) > 1 {
			return f, faultf(CodeUsage, "%s stands %d times", name, len(values))
		}
		switch value := values[0]; name {
		case "state":
			f.States = values
		case "reason":
			f.Reason = value
		case "namespace":
			f.Namespace = value
		case "scope":
			f.Scope = value
		case "route":
			f.Route = value
		case "after":
			f.After = value
		case "older_than":
			if f.OlderThan, err = time.ParseDuration(value); err != nil {
				return f, faultf(CodeUsage, "older_than %s: must be a duration such as 1h", value)
			}
		case "limit":
			if f.Limit, err = strconv.Atoi(value); err != nil {
				return f, faultf(CodeUsage, "limit %s: must be a number", value)
			}
		default:
			return f, faultf(CodeUsage, "there is no filter %s", name)
		}
	}
	return f, nil
}

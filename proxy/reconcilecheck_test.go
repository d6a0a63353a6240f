package proxy

import (
	"errors"
	"strings"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// asksByKey is a Reconcile that is right, for tests to spoil.
func asksByKey(change ...func(*Reconcile)) *Reconcile {
	r := &Reconcile{Inquiry: Inquiry{
		Ask: Question{URL: `https://gw.example/charges?reference={{.Key}}`},
		Rules: []Rule{
			{
				Status: []string{"200"}, When: []Condition{{At: "/data/0/reference", OneOf: []any{"{{.Key}}"}}},
				Verdict: VerdictHappened,
				Answer:  &Answer{Status: 201, Body: `{"id": {{response "/data/0/id"}}, "status": "aprovado"}`},
			},
			{Status: []string{"200"}, When: []Condition{{At: "/data/0", Absent: true}}, Verdict: VerdictCannotHappen},
		},
	}}
	for _, c := range change {
		c(r)
	}
	return r
}

// TestWhatCannotBeRightIsRefused: at wiring, with its place.
func TestWhatCannotBeRightIsRefused(t *testing.T) {
	url := func(text string) func(*Reconcile) { return func(r *Reconcile) { r.Ask.URL = text } }
	header := func(name, text string) func(*Reconcile) {
		return func(r *Reconcile) { r.Ask.Header = map[string]string{name: text} }
	}
	body := func(media, text string) func(*Reconcile) {
		return func(r *Reconcile) { r.Ask.Body, r.Ask.Header = text, map[string]string{"Content-Type": media} }
	}
	status := func(text string) func(*Reconcile) { return func(r *Reconcile) { r.Rules[0].Status = []string{text} } }
	when := func(c Condition) func(*Reconcile) { return func(r *Reconcile) { r.Rules[1].When = []Condition{c} } }
	answer := func(a Answer) func(*Reconcile) { return func(r *Reconcile) { r.Rules[0].Answer = &a } }
	const json = "application/json"
	for _, c := range []struct {
		change func(*Reconcile)
		want   string
	}{
		// The origin never comes from data, and no value names a part of anything.
		{url(``), "ask.url: it must begin with http"},
		{url(`/charges`), "ask.url: it must begin with http"},
		{url(`ftp://gw/`), "ask.url: it must begin with http"},
		{url(`{{.Key}}://gw.example/`), "ask.url: it must begin with http"},
		{url(`http{{.Key}}://gw.example/`), "ask.url: it must begin with http"},
		{url(`{{field "/url"}}`), "ask.url: it must begin with http"},
		{url(`https://{{.Key}}/`), "ask.url: its host must be written out"},
		{url(`https://{{.Key}}.gw.example/`), "ask.url: its host must be written out"},
		{url(`https://gw.example{{.Key}}`), "ask.url: its host must be written out"},
		{url(`https://gw.example:{{.Key}}/`), "ask.url: its host must be written out"},
		{url(`https://{{.Key}}@gw.example/`), "ask.url: its host must be written out"},
		{url(`https://user:secret@gw.example/`), "ask.url: it must name a host, without a user"},
		{url(`https:///x`), "ask.url: it must name a host"},
		{url(`https://gw.example:port/`), "ask.url: it is no URL"},
		{url(`https://gw.example/#{{.Key}}`), "ask.url: a fragment is not sent"},
		{url(`https://gw.example/a b`), `ask.url: " " cannot stand in a URL`},
		{url(`https://gw.example/%zz`), "ask.url: it is no URL"},
		{url(`https://gw.example/../x`), `ask.url: the path segment ".." means another path`},
		{url(`https://gw.example/?{{.Key}}=1`), "ask.url: {{.Key}}: in a query a value stands after NAME="},
		{url(`https://gw.example/?{{.Key}}`), "ask.url: {{.Key}}: in a query a value stands after NAME="},
		{url(`https://gw.example/?a=1&b{{.Key}}=1`), "ask.url: {{.Key}}: in a query a value stands after NAME="},
		// Values, and nothing else.
		{url(`https://gw.example/{{if .Key}}a{{end}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{range .Key}}a{{end}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{define "x"}}{{end}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{.Key | printf "%s"}}`), `ask.url: 1: function "printf" not defined`},
		{url(`https://gw.example/{{.Key | derivedKey}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{$x := .Key}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{.Nothing}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{.Key.Name}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{"text"}}`), "only values can stand in {{ }}"},
		{url(`https://gw.example/{{derivedKey .Key}}`), "derivedKey needs a text in quotes"},
		{url(`https://gw.example/{{derivedKey ""}}`), "derivedKey needs a text in quotes"},
		{url(`https://gw.example/{{field "id"}}`), `"id" is no JSON pointer`},
		{url(`https://gw.example/{{`), "ask.url: 1: "},
		{url(`https://gw.example/{{response "/id"}}`), "ask.url: {{response \"/id\"}}: there is no answer yet"},
		{url(`https://gw.example/{{env "TOKEN"}}`), "ask.url: {{env \"TOKEN\"}}: a secret belongs into a header"},
		{header("Authorization", `{{env "NOPE"}}`), `ask.headers: Authorization: {{env "NOPE"}}: there is no such variable`},
		{header("X A", "b"), `ask.headers: "X A" cannot be set`},
		{header("host", "b"), `ask.headers: "host" cannot be set`},
		{header("Content-Length", "1"), `ask.headers: "Content-Length" cannot be set`},
		{header("Transfer-Encoding", "chunked"), `ask.headers: "Transfer-Encoding" cannot be set`},
		{header("X-A", "a\r\nX-B: c"), "ask.headers: X-A: it holds what cannot stand in a header"},
		{header("X-A", " a"), "ask.headers: X-A: it holds what cannot stand in a header"},
		{body(json, `{"a": {{.Key}}`), "ask.body: with its values filled in it is no JSON"},
		{body(json, `{ {{.Key}}: 1}`), "ask.body: with its values filled in it is no JSON"},
		{body(json, `{"{{.Key}}": 1}`), "ask.body: no value may name a member"},
		{body(json, `[{"a":{"x{{.Key}}": 1}}]`), "ask.body: no value may name a member"},
		{body(json, `{"a": 1{{.Key}} }`), "ask.body: with its values filled in it is no JSON"},
		{body(json, `{"a": "\{{.Key}}"}`), "ask.body: {{.Key}}: a backslash stands before it"},
		{body("application/x-www-form-urlencoded", `{{.Key}}`), "ask.body: {{.Key}}: in a query a value stands after NAME="},
		{body("application/xml", `<a>{{.Key}}</a>`), "ask.body: it is not known how a value is spelled in application/xml"},
		{body("xml", `a`), `ask.body: its Content-Type "xml" is no media type`},
		{body(`{{.Key}}`, `a`), "ask.headers: no value may stand in Content-Type"},
		{func(r *Reconcile) { r.Ask.Method, r.Ask.Body = "GET", "{}" }, "ask.body: GET has none"},
		{func(r *Reconcile) { r.Ask.Method = "get" }, `ask.method: "get" is none to ask by`},
		{func(r *Reconcile) { r.Ask.Method = "CONNECT" }, `ask.method: "CONNECT" is none to ask by`},
		// Rules.
		{func(r *Reconcile) { r.Rules = nil }, "rules: without one, every outcome stays unknown"},
		{func(r *Reconcile) { r.Rules[1].Status, r.Rules[1].When = nil, nil }, "rules[1]: it fits every answer"},
		{status("500"), `rules[0].status[0]: "500" must be a status`},
		{status("4xx-5xx"), `rules[0].status[0]: "4xx-5xx" must be a status`},
		{status("400-500"), `rules[0].status[0]: "400-500" must be a status`},
		{status("499-400"), `rules[0].status[0]: "499-400" must be a status`},
		{status("1xx"), `rules[0].status[0]: "1xx" must be a status`},
		{status("ok"), `rules[0].status[0]: "ok" must be a status`},
		{status("302"), `rules[0].status[0]: "302": a redirect`},
		{status("401"), `rules[0].status[0]: "401" speaks of the question`},
		{status("429"), `rules[0].status[0]: "429" speaks of the question`},
		{when(Condition{At: "data", Exists: true}), `rules[1].when[0].at: "data" is no JSON pointer`},
		{when(Condition{At: "/data"}), "rules[1].when[0]: a condition says exactly one of"},
		{when(Condition{At: "/data", Exists: true, Absent: true}), "rules[1].when[0]: a condition says exactly one of"},
		{when(Condition{At: "/data", Exists: true, OneOf: []any{1}}), "rules[1].when[0]: a condition says exactly one of"},
		{when(Condition{At: "/data", OneOf: []any{"a", []int{1}}}), "rules[1].when[0].one-of[1]: [1] is neither"},
		{when(Condition{At: "/data", OneOf: []any{"{{.Nix}}"}}), "rules[1].when[0].one-of[0]: {{.Nix}}: only values"},
		{when(Condition{At: "/data", OneOf: []any{`{{response "/x"}}`}}), "rules[1].when[0].one-of[0]: {{response \"/x\"}}: cannot be compared with"},
		{func(r *Reconcile) { r.Rules[0].Verdict = "done" }, `rules[0].verdict: "done" must be happened, cannot-happen or unknown`},
		{func(r *Reconcile) { r.Rules[0].Answer = nil }, "rules[0].answer: it is missing"},
		{func(r *Reconcile) { r.Rules[1].Answer = &Answer{Status: 201} }, "rules[1].answer: goes with happened alone"},
		{func(r *Reconcile) { r.Rules[0].Proven = "x" }, "rules[0].proven: goes with cannot-happen alone"},
		{func(r *Reconcile) { r.Rules[1].Proven = "two\nlines" }, "rules[1].proven: must be one line"},
		{func(r *Reconcile) { r.Rules[1].Proven = strings.Repeat("x", maxProven+1) }, "rules[1].proven: must be one line of at most"},
		// Answers.
		{answer(Answer{}), "rules[0].answer.status: 0 is not the answer"},
		{answer(Answer{Status: 500}), "rules[0].answer.status: 500 is not the answer"},
		{answer(Answer{Status: 429}), "rules[0].answer.status: 429 is not the answer"},
		{answer(Answer{Status: 206}), "rules[0].answer.status: 206 is not the answer"},
		{answer(Answer{Status: 204, Body: "{}"}), "rules[0].answer.body: an answer with status 204 has none"},
		{answer(Answer{Status: 204, ResponseBody: true}), "rules[0].answer.body: an answer with status 204 has none"},
		{answer(Answer{Status: 201, Body: "{}", ResponseBody: true}), "rules[0].answer.body: it is either"},
		{answer(Answer{Status: 201, Body: `{"token": {{env "TOKEN"}}}`}), "rules[0].answer.body: {{env \"TOKEN\"}}: a secret"},
		{answer(Answer{Status: 201, Header: map[string]string{"Idempotent-Replayed": "true"}}), `rules[0].answer.headers: "Idempotent-Replayed" cannot be set`},
		{answer(Answer{Status: 201, Header: map[string]string{"Location": `{{response "/url"}}`}}), "rules[0].answer.headers: Location: it must begin with http"},
		{answer(Answer{Status: 201, Header: map[string]string{"Location": `//{{response "/url"}}`}}), "rules[0].answer.headers: Location: it must begin with http"},
		// The cancellation.
		{func(r *Reconcile) { r.Cancel = &Inquiry{} }, "cancel.ask.url: it must begin with http"},
		{func(r *Reconcile) {
			r.Cancel = &Inquiry{
				Ask:   Question{Method: "DELETE", URL: `https://gw.example/keys/{{.Key}}`},
				Rules: []Rule{{Status: []string{"200"}, Verdict: VerdictCannotHappen}},
			}
		}, "cancel.rules[0].proven: is missing"},
		{func(r *Reconcile) { r.Timeout = -1 }, "timeout: is negative"},
		{func(r *Reconcile) { r.MaxResponse = -1 }, "max-response: is negative"},
	} {
		r := asksByKey(c.change)
		r.Env = testChecker().env
		_, _, err := r.reconciler(&umavezhttp.Route{KeepRequest: true})
		if err == nil {
			t.Errorf("nothing is said; want %q", c.want)
			continue
		}
		if _, ok := errors.AsType[*PlaceError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("says %q, want %q", err, c.want)
		}
	}
	if _, _, err := asksByKey().reconciler(&umavezhttp.Route{KeepRequest: true}); err != nil {
		t.Errorf("what all of these spoil is not right itself: %v", err)
	}
}

// TestWhatNeedsTheRequest is refused where it is not kept: in the background
// nobody would know it.
func TestWhatNeedsTheRequest(t *testing.T) {
	for _, value := range []string{"{{.Key}}", "{{.SentKey}}", "{{.Principal}}", `{{field "/id"}}`} {
		r := asksByKey(func(r *Reconcile) {
			r.Ask.URL = "https://gw.example/" + value
			r.Rules = r.Rules[1:]
		})
		if _, _, err := r.reconciler(&umavezhttp.Route{}); err == nil || !strings.Contains(err.Error(), "ask.url: "+value+" is known only where the request is kept") {
			t.Errorf("%s: %v", value, err)
		}
	}
	r := asksByKey(func(r *Reconcile) { r.Ask.URL = "https://gw.example/{{.ID}}" })
	if _, _, err := r.reconciler(&umavezhttp.Route{}); err == nil || !strings.Contains(err.Error(), "rules[0].when[0]: {{.Key}} is known only") {
		t.Errorf("in a condition: %v", err)
	}
}

// TestRouteThatCannotBeRecovered is refused by New, which names it.
func TestRouteThatCannotBeRecovered(t *testing.T) {
	for _, c := range []struct {
		route Route
		want  string
	}{
		{Route{Reconcile: asksByKey()}, "reconcile.ask.url: {{.Key}} is known only"},
		{Route{Policy: umavez.Stepped}, "the policy stepped needs code in the operation"},
		{Route{Policy: umavez.Atomic}, "the policy atomic needs code in the operation"},
		{Route{HTTP: umavezhttp.Route{KeepRequest: true, PlainRequests: true}}, "it keeps its requests, and nobody would read them"},
		{Route{HTTP: umavezhttp.Route{KeepRequest: true}, Reconcile: asksByKey()}, "would put requests into the store in plain"},
		{Route{HTTP: umavezhttp.Route{KeepRequest: true, PlainRequests: true}, Reconcile: asksByKey(func(r *Reconcile) { r.Quiet = 1 })}, "Reconciler.Quiet is 1ns"},
		{Route{HTTP: umavezhttp.Route{CompleteTries: 1}, Policy: umavez.Rerunnable}, "the route has no KeepRequest"},
	} {
		c.route.Pattern = "POST /pay"
		_, err := New(newEngine(t), Options{
			Upstream: "http://127.0.0.1:1", Principal: NoPrincipal(), Routes: []Route{c.route},
			HTTP: umavezhttp.Options{Namespace: "loja"},
		})
		if err == nil || !strings.HasPrefix(err.Error(), `umavez: the route "POST /pay": `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New says %v, want %q", err, c.want)
		}
	}
}

// TestTwoRoutesOfOneName cannot both be looked after by it.
func TestTwoRoutesOfOneName(t *testing.T) {
	kept := umavezhttp.Route{Name: "pay", KeepRequest: true, PlainRequests: true}
	for what, rt := range map[string]Route{
		"completer":  {HTTP: kept, Policy: umavez.Rerunnable},
		"reconciler": {HTTP: kept, Reconcile: asksByKey()},
	} {
		one, two := rt, rt
		one.Pattern, two.Pattern = "POST /pay", "POST /pay2"
		_, err := New(newEngine(t), Options{
			Upstream: "http://127.0.0.1:1", Principal: NoPrincipal(), Routes: []Route{one, two},
			HTTP: umavezhttp.Options{Namespace: "loja"},
		})
		if err == nil || !strings.Contains(err.Error(), `the route "POST /pay2": `) || !strings.Contains(err.Error(), "has a "+what+" already") {
			t.Errorf("New says %v, want that there is a %s", err, what)
		}
	}
}

package proxy

import (
	"errors"
	"slices"
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

// spoiled is a Reconcile that is wrong in one way, and what is said of it.
type spoiled struct {
	change func(*Reconcile)
	want   string
}

// The ways to spoil one.
func askedAt(text string) func(*Reconcile) { return func(r *Reconcile) { r.Ask.URL = text } }

func askedWith(name, text string) func(*Reconcile) {
	return func(r *Reconcile) { r.Ask.Header = map[string]string{name: text} }
}

func askedBody(media, text string) func(*Reconcile) {
	return func(r *Reconcile) { r.Ask.Body, r.Ask.Header = text, map[string]string{"Content-Type": media} }
}

func firstStatus(text string) func(*Reconcile) {
	return func(r *Reconcile) { r.Rules[0].Status = []string{text} }
}

func lastWhen(c Condition) func(*Reconcile) {
	return func(r *Reconcile) { r.Rules[1].When = []Condition{c} }
}

func firstAnswer(a Answer) func(*Reconcile) { return func(r *Reconcile) { r.Rules[0].Answer = &a } }

const jsonMedia = "application/json"

var wrongQuestions = []spoiled{
	// The origin never comes from data, and no value names a part of anything.
	{askedAt(``), "ask.url: it must begin with http"},
	{askedAt(`/charges`), "ask.url: it must begin with http"},
	{askedAt(`ftp://gw/`), "ask.url: it must begin with http"},
	{askedAt(`{{.Key}}://gw.example/`), "ask.url: it must begin with http"},
	{askedAt(`http{{.Key}}://gw.example/`), "ask.url: it must begin with http"},
	{askedAt(`{{field "/url"}}`), "ask.url: it must begin with http"},
	{askedAt(`https://{{.Key}}/`), "ask.url: its host must be written out"},
	{askedAt(`https://{{.Key}}.gw.example/`), "ask.url: its host must be written out"},
	{askedAt(`https://gw.example{{.Key}}`), "ask.url: its host must be written out"},
	{askedAt(`https://gw.example:{{.Key}}/`), "ask.url: its host must be written out"},
	{askedAt(`https://{{.Key}}@gw.example/`), "ask.url: its host must be written out"},
	{askedAt(`https://user:secret@gw.example/`), "ask.url: it must name a host, without a user"},
	{askedAt(`https:///x`), "ask.url: it must name a host"},
	{askedAt(`https://gw.example:port/`), "ask.url: it is no URL"},
	{askedAt(`https://gw.example/#{{.Key}}`), "ask.url: a fragment is not sent"},
	{askedAt(`https://gw.example/a b`), `ask.url: " " cannot stand in a URL`},
	{askedAt(`https://gw.example/%zz`), "ask.url: it is no URL"},
	{askedAt(`https://gw.example/../x`), `ask.url: the path segment ".." means another path`},
	{askedAt(`https://gw.example/?{{.Key}}=1`), "ask.url: {{.Key}}: in a query a value stands after NAME="},
	{askedAt(`https://gw.example/?{{.Key}}`), "ask.url: {{.Key}}: in a query a value stands after NAME="},
	{askedAt(`https://gw.example/?a=1&b{{.Key}}=1`), "ask.url: {{.Key}}: in a query a value stands after NAME="},
	// Values, and nothing else.
	{askedAt(`https://gw.example/{{if .Key}}a{{end}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{range .Key}}a{{end}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{define "x"}}{{end}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{.Key | printf "%s"}}`), `ask.url: 1: function "printf" not defined`},
	{askedAt(`https://gw.example/{{.Key | derivedKey}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{$x := .Key}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{.Nothing}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{.Key.Name}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{"text"}}`), "only values can stand in {{ }}"},
	{askedAt(`https://gw.example/{{derivedKey .Key}}`), "derivedKey needs a text in quotes"},
	{askedAt(`https://gw.example/{{derivedKey ""}}`), "derivedKey needs a text in quotes"},
	{askedAt(`https://gw.example/{{field "id"}}`), `"id" is no JSON pointer`},
	{askedAt(`https://gw.example/{{`), "ask.url: 1: "},
	{askedAt(`https://gw.example/{{response "/id"}}`), "ask.url: {{response \"/id\"}}: there is no answer yet"},
	{askedAt(`https://gw.example/{{env "TOKEN"}}`), "ask.url: {{env \"TOKEN\"}}: a secret belongs into a header"},
	{askedWith("Authorization", `{{env "NOPE"}}`), `ask.headers: Authorization: {{env "NOPE"}}: there is no such variable`},
	{askedWith("X A", "b"), `ask.headers: "X A" cannot be set`},
	{askedWith("host", "b"), `ask.headers: "host" cannot be set`},
	{askedWith("Content-Length", "1"), `ask.headers: "Content-Length" cannot be set`},
	{askedWith("Transfer-Encoding", "chunked"), `ask.headers: "Transfer-Encoding" cannot be set`},
	{askedWith("X-A", "a\r\nX-B: c"), "ask.headers: X-A: it holds what cannot stand in a header"},
	{askedWith("X-A", " a"), "ask.headers: X-A: it holds what cannot stand in a header"},
	{askedBody(jsonMedia, `{"a": {{.Key}}`), "ask.body: with its values filled in it is no JSON"},
	{askedBody(jsonMedia, `{ {{.Key}}: 1}`), "ask.body: with its values filled in it is no JSON"},
	{askedBody(jsonMedia, `{"{{.Key}}": 1}`), "ask.body: no value may name a member"},
	{askedBody(jsonMedia, `[{"a":{"x{{.Key}}": 1}}]`), "ask.body: no value may name a member"},
	{askedBody(jsonMedia, `{"a": 1{{.Key}} }`), "ask.body: with its values filled in it is no JSON"},
	{askedBody(jsonMedia, `{"a": "\{{.Key}}"}`), "ask.body: {{.Key}}: a backslash stands before it"},
	{askedBody("application/x-www-form-urlencoded", `{{.Key}}`), "ask.body: {{.Key}}: in a query a value stands after NAME="},
	{askedBody("application/xml", `<a>{{.Key}}</a>`), "ask.body: it is not known how a value is spelled in application/xml"},
	{askedBody("xml", `a`), `ask.body: its Content-Type "xml" is no media type`},
	{askedBody(`{{.Key}}`, `a`), "ask.headers: no value may stand in Content-Type"},
	{func(r *Reconcile) { r.Ask.Method, r.Ask.Body = "GET", "{}" }, "ask.body: GET has none"},
	{func(r *Reconcile) { r.Ask.Method = "get" }, `ask.method: "get" is none to ask by`},
	{func(r *Reconcile) { r.Ask.Method = "CONNECT" }, `ask.method: "CONNECT" is none to ask by`},
}

var wrongRules = []spoiled{
	{func(r *Reconcile) { r.Rules = nil }, "rules: without one, every outcome stays unknown"},
	{func(r *Reconcile) { r.Rules[1].Status, r.Rules[1].When = nil, nil }, "rules[1]: it fits every answer"},
	{firstStatus("500"), `rules[0].status[0]: "500" must be a status`},
	{firstStatus("4xx-5xx"), `rules[0].status[0]: "4xx-5xx" must be a status`},
	{firstStatus("400-500"), `rules[0].status[0]: "400-500" must be a status`},
	{firstStatus("499-400"), `rules[0].status[0]: "499-400" must be a status`},
	{firstStatus("1xx"), `rules[0].status[0]: "1xx" must be a status`},
	{firstStatus("ok"), `rules[0].status[0]: "ok" must be a status`},
	{firstStatus("302"), `rules[0].status[0]: "302": a redirect`},
	{firstStatus("401"), `rules[0].status[0]: "401" speaks of the question`},
	{firstStatus("429"), `rules[0].status[0]: "429" speaks of the question`},
	{lastWhen(Condition{At: "data", Exists: true}), `rules[1].when[0].at: "data" is no JSON pointer`},
	{lastWhen(Condition{At: "/data"}), "rules[1].when[0]: a condition says exactly one of"},
	{lastWhen(Condition{At: "/data", Exists: true, Absent: true}), "rules[1].when[0]: a condition says exactly one of"},
	{lastWhen(Condition{At: "/data", Exists: true, OneOf: []any{1}}), "rules[1].when[0]: a condition says exactly one of"},
	{lastWhen(Condition{At: "/data", OneOf: []any{"a", []int{1}}}), "rules[1].when[0].one-of[1]: [1] is neither"},
	{lastWhen(Condition{At: "/data", OneOf: []any{"{{.Nix}}"}}), "rules[1].when[0].one-of[0]: {{.Nix}}: only values"},
	{lastWhen(Condition{At: "/data", OneOf: []any{`{{response "/x"}}`}}), "rules[1].when[0].one-of[0]: {{response \"/x\"}}: cannot be compared with"},
	{func(r *Reconcile) { r.Rules[0].Verdict = "done" }, `rules[0].verdict: "done" must be happened, cannot-happen or unknown`},
	{func(r *Reconcile) { r.Rules[0].Answer = nil }, "rules[0].answer: it is missing"},
	{func(r *Reconcile) { r.Rules[1].Answer = &Answer{Status: 201} }, "rules[1].answer: goes with happened alone"},
	{func(r *Reconcile) { r.Rules[0].Proven = "x" }, "rules[0].proven: goes with cannot-happen alone"},
	{func(r *Reconcile) { r.Rules[1].Proven = "two\nlines" }, "rules[1].proven: must be one line"},
	{func(r *Reconcile) { r.Rules[1].Proven = strings.Repeat("x", maxProven+1) }, "rules[1].proven: must be one line of at most"},
}

var wrongAnswers = []spoiled{
	{firstAnswer(Answer{}), "rules[0].answer.status: 0 is not the answer"},
	{firstAnswer(Answer{Status: 500}), "rules[0].answer.status: 500 is not the answer"},
	{firstAnswer(Answer{Status: 429}), "rules[0].answer.status: 429 is not the answer"},
	{firstAnswer(Answer{Status: 206}), "rules[0].answer.status: 206 is not the answer"},
	{firstAnswer(Answer{Status: 204, Body: "{}"}), "rules[0].answer.body: an answer with status 204 has none"},
	{firstAnswer(Answer{Status: 204, ResponseBody: true}), "rules[0].answer.body: an answer with status 204 has none"},
	{firstAnswer(Answer{Status: 201, Body: "{}", ResponseBody: true}), "rules[0].answer.body: it is either"},
	{firstAnswer(Answer{Status: 201, Body: `{"token": {{env "TOKEN"}}}`}), "rules[0].answer.body: {{env \"TOKEN\"}}: a secret"},
	{firstAnswer(Answer{Status: 201, Header: map[string]string{"Idempotent-Replayed": "true"}}), `rules[0].answer.headers: "Idempotent-Replayed" cannot be set`},
	{firstAnswer(Answer{Status: 201, Header: map[string]string{"Location": `{{response "/url"}}`}}), "rules[0].answer.headers: Location: it must begin with http"},
	{firstAnswer(Answer{Status: 201, Header: map[string]string{"Location": `//{{response "/url"}}`}}), "rules[0].answer.headers: Location: it must begin with http"},
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
}

// TestWhatCannotBeRightIsRefused: at wiring, with its place.
func TestWhatCannotBeRightIsRefused(t *testing.T) {
	for _, c := range slices.Concat(wrongQuestions, wrongRules, wrongAnswers) {
		r := asksByKey(c.change)
		r.Env = testChecker().env
		_, _, err := r.reconciler(&umavezhttp.Route{KeepRequest: true}, false)
		if err == nil {
			t.Errorf("nothing is said; want %q", c.want)
			continue
		}
		if _, ok := errors.AsType[*PlaceError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("says %q, want %q", err, c.want)
		}
	}
	if _, _, err := asksByKey().reconciler(&umavezhttp.Route{KeepRequest: true}, false); err != nil {
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
		if _, _, err := r.reconciler(&umavezhttp.Route{}, false); err == nil || !strings.Contains(err.Error(), "ask.url: "+value+" is known only where the request is kept") {
			t.Errorf("%s: %v", value, err)
		}
	}
	r := asksByKey(func(r *Reconcile) { r.Ask.URL = "https://gw.example/{{.ID}}" })
	if _, _, err := r.reconciler(&umavezhttp.Route{}, false); err == nil || !strings.Contains(err.Error(), "rules[0].when[0]: {{.Key}} is known only") {
		t.Errorf("in a condition: %v", err)
	}
}

// TestP12_QuestionByTheKeyAlone is refused where callers are told apart, as is such
// a cancellation: the key may be another caller's, too.
func TestP12_QuestionByTheKeyAlone(t *testing.T) {
	rt := umavezhttp.Route{KeepRequest: true}
	shared := map[string]func(*Reconcile){
		"ask: two callers may use the same key":        func(*Reconcile) {},
		"ask: two callers may use":                     askedAt(`https://gw.example/{{.SentKey}}/{{.Route}}`),
		"ask: two callers":                             askedWith("Authorization", `{{env "TOKEN"}}`),
		"cancel.ask: two callers may use the same key": func(r *Reconcile) { askedAt(`https://gw.example/{{.ID}}`)(r); cancels(r) },
	}
	for want, change := range shared {
		r := asksByKey(change)
		r.Env = testChecker().env
		if err := r.Check(rt, true); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: says %v, want %q", r.Ask, err, want)
		}
		if err := r.Check(rt, false); err != nil {
			t.Errorf("%+v, where callers are not told apart: %v", r.Ask, err)
		}
		r.UniqueKeys = true
		if err := r.Check(rt, true); err != nil {
			t.Errorf("%+v, where no two callers have the same key: %v", r.Ask, err)
		}
	}
	for _, own := range []func(*Reconcile){
		askedAt(`https://gw.example/{{.Principal}}/{{.Key}}`),
		askedAt(`https://gw.example/?id={{.ID}}`),
		askedAt(`https://gw.example/?step={{derivedKey "charge"}}`),
		askedWith("X-Order", `{{field "/order"}}`),
		askedBody(jsonMedia, `{"customer":{{.Principal}}}`),
	} {
		r := asksByKey(own)
		if err := r.Check(rt, true); err != nil {
			t.Errorf("%+v: %v", r.Ask, err)
		}
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

// TestBareAnswer: on a route that keeps no bodies none is made, either.
func TestBareAnswer(t *testing.T) {
	c := testChecker()
	c.bare = true
	for _, a := range []Answer{
		{Status: 201, ResponseBody: true, Header: map[string]string{"Location": "/x"}},
		{Status: 201, Body: `{"id":{{response "/order/id"}}}`, Header: map[string]string{"Location": "/x"}},
	} {
		form, err := c.answer(a)
		if err != nil {
			t.Fatal(err)
		}
		from := of(t, "k", "v")
		from.response = from.kept.body
		got, err := form.fill(from, nil)
		if err != nil || got.Kept != umavezhttp.KeptWithoutBody || len(got.Body) > 0 || got.Header.Get("Location") != "/x" {
			t.Errorf("made %+v (%v)", got, err)
		}
	}
}

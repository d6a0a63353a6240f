package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/umavez/umavez/umavezhttp"
)

// table makes a table of routes, without anything behind them.
func table(t *testing.T, ignoreCase bool, patterns ...string) *routes {
	t.Helper()
	p := &Proxy{routes: newRoutes(ignoreCase)}
	if err := fill(p.routes, patterns...); err != nil {
		t.Fatal(err)
	}
	return p.routes
}

func fill(rs *routes, patterns ...string) error {
	type pair struct {
		p pattern
		e *enrolled
	}
	var pairs []pair
	for _, written := range patterns {
		p, err := rs.parsePattern(Route{Pattern: written})
		if err != nil {
			return err
		}
		e := &enrolled{pattern: written}
		if err := rs.add(p, e); err != nil {
			return err
		}
		pairs = append(pairs, pair{p, e})
	}
	for _, pr := range pairs {
		if err := rs.addAlong(pr.p, pr.e); err != nil {
			return err
		}
	}
	return nil
}

// asked makes the request of a line such as "POST /pay", as a server would.
func asked(t *testing.T, line string, fields ...string) *http.Request {
	t.Helper()
	method, target, _ := strings.Cut(line, " ")
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Method: method, URL: u, Host: "sidecar:8081", Header: http.Header{}}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
			continue
		}
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// TestRoutes_Matching: the patterns are those of ServeMux, but for the slash at
// the end.
func TestRoutes_Matching(t *testing.T) {
	rs := table(t, false, "POST /pay", "/orders/{id}", "POST /orders/{id}/items/{$}", "POST /below/", "PUT /cob/{txid}",
		"POST /files/{path...}", "POST api.Example/hosted", "POST /below/own", "POST /caf%C3%A9")
	for _, c := range []struct{ line, host, want string }{
		{"POST /pay", "", "POST /pay"},
		{"POST /pay/", "", "POST /pay"},
		{"POST /%70ay", "", "POST /pay"},
		{"PATCH /pay", "", ""},
		{"GET /pay", "", ""},
		{"POST /Pay", "", ""},
		{"POST /pay/42", "", ""},
		{"POST /", "", ""},
		{"POST /orders/1", "", "/orders/{id}"},
		{"PATCH /orders/1/", "", "/orders/{id}"},
		{"PUT /orders/1", "", ""},
		{"POST /orders", "", ""},
		{"POST /orders/1/items", "", "POST /orders/{id}/items/{$}"},
		{"POST /orders/a%2Fb/items/", "", "POST /orders/{id}/items/{$}"},
		{"POST /below", "", "POST /below/"},
		{"POST /below/", "", "POST /below/"},
		{"POST /below/a/b", "", "POST /below/"},
		{"POST /below/own/", "", "POST /below/own"},
		{"PUT /cob/7", "", "PUT /cob/{txid}"},
		{"POST /files", "", "POST /files/{path...}"},
		{"POST /files/a/b/", "", "POST /files/{path...}"},
		{"POST /hosted", "api.example", "POST api.Example/hosted"},
		{"POST /hosted", "API.example.:8443", "POST api.Example/hosted"},
		{"POST /hosted", "other.example", ""},
		{"POST /caf%c3%a9", "", "POST /caf%C3%A9"},
	} {
		r := asked(t, c.line)
		if c.host != "" {
			r.Host = c.host
		}
		e, disguised := rs.find(r)
		got := ""
		if e != nil {
			got = e.pattern
		}
		if got != c.want || disguised {
			t.Errorf("%s at %q: route %q, disguised %v; want %q", c.line, c.host, got, disguised, c.want)
		}
	}
}

// TestRoutes_Root: "/" is everything, and "/{$}" the root alone.
func TestRoutes_Root(t *testing.T) {
	for pattern, want := range map[string][2]bool{"POST /": {true, true}, "POST /{$}": {true, false}, "POST /{all...}": {true, true}} {
		rs := table(t, false, pattern)
		for i, line := range []string{"POST /", "POST /a/b"} {
			if e, disguised := rs.find(asked(t, line)); (e != nil) != want[i] || disguised {
				t.Errorf("%s: %s is enrolled: %v", pattern, line, e != nil)
			}
		}
	}
}

// TestRoutes_IgnoreCase: for an upstream that does not tell case apart, neither
// does the table, also where a letter is escaped.
func TestRoutes_IgnoreCase(t *testing.T) {
	rs := table(t, true, "POST /Pay/{Id}", "POST /CAF%C3%89")
	for line, want := range map[string]bool{
		"POST /pay/ABC": true, "POST /PAY/abc/": true, "POST /p%41y/x": true, "POST /caf%c3%a9": true, "POST /pays/x": false, "post /pay/x": false,
	} {
		if e, disguised := rs.find(asked(t, line)); (e != nil) != want || (disguised != strings.HasPrefix(line, "post")) {
			t.Errorf("%s is enrolled: %v, disguised: %v", line, e != nil, disguised)
		}
	}
}

// TestRoutes_Nonsense: is refused when the sidecar starts, and says what is wrong.
func TestRoutes_Nonsense(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		want     string
	}{
		{[]string{""}, "no path"},
		{[]string{"POST"}, "no path"},
		{[]string{"POST pay"}, "no path"},
		{[]string{"POST /a//b"}, "//"},
		{[]string{"POST /a/../b"}, "unclean"},
		{[]string{"POST /a/b{id}"}, "whole segment"},
		{[]string{"POST /a/{id"}, "wildcard"},
		{[]string{"POST /a/{}"}, "wildcard"},
		{[]string{"POST /a/{$}/b"}, "wildcard"},
		{[]string{"POST /a/{x...}/b"}, "wildcard"},
		{[]string{"PO ST /a"}, "METHOD [HOST]/PATH"},
		{[]string{"POST /pay", "POST /pay/{$}"}, "same requests"},
		{[]string{"POST /a/{x}", "POST /a/{y}"}, "same requests"},
		{[]string{"/pay", "PATCH /pay"}, "same requests"},
		{[]string{"POST /a/{x}", "POST /{y}/b"}, "conflicts"},
	} {
		if err := fill(newRoutes(false), c.patterns...); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "umavez: ") {
			t.Errorf("%q: the error is %v, want one about %q", c.patterns, err, c.want)
		}
	}
}

// TestRoutes_Settings: what a route's own settings may say of methods.
func TestRoutes_Settings(t *testing.T) {
	for _, c := range []struct {
		route Route
		want  string // of the error; "": none
	}{
		{Route{Pattern: "/pay", HTTP: umavezhttp.Route{Methods: []string{"PUT", "DELETE"}}}, ""},
		{Route{Pattern: "PUT /pay", HTTP: umavezhttp.Route{Methods: []string{"PUT"}}}, ""},
		{Route{Pattern: "PUT /pay", HTTP: umavezhttp.Route{Methods: []string{"POST"}}}, "name others"},
		{Route{Pattern: "GET /pay"}, "never protected"},
		{Route{Pattern: "/pay", HTTP: umavezhttp.Route{Methods: []string{"GET"}}}, "never protected"},
		{Route{Pattern: "POST /pay", HTTP: umavezhttp.Route{Release: []int{200}}}, "POST /pay"},
	} {
		_, err := New(newEngine(t), Options{
			Upstream: "http://localhost", Principal: NoPrincipal(), Routes: []Route{c.route},
			HTTP: umavezhttp.Options{Namespace: "loja"},
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: the error is %v, want %q", c.route.Pattern, err, c.want)
		}
	}
}

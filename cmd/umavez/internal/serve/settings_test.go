package serve

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez/umavezhttp"
)

// enough are settings that are complete: the least that starts.
const enough = "upstream: http://127.0.0.1:3000\nprincipal: none\nroute: [POST /pagamentos]\n"

func fromYAML(t *testing.T, text string) (Config, error) {
	t.Helper()
	s, err := Load(Settings{}, writeFile(t, "umavez.yaml", []byte(text)))
	if err != nil {
		return Config{}, err
	}
	return NewConfig(s)
}

func TestDefaults(t *testing.T) {
	c, err := fromYAML(t, enough)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8081" || c.Admin != "127.0.0.1:9091" || c.Store.String() != "sqlite:umavez.db" ||
		c.Namespace != "default" || c.LogFormat != "text" {
		t.Errorf("addresses and names: %+v", c)
	}
	for name, d := range map[string][2]time.Duration{
		"lease": {c.Lease, 15 * time.Second}, "retain": {c.Retain, 24 * time.Hour},
		"tombstone": {c.Tombstone, 720 * time.Hour}, "wait": {c.Wait, 5 * time.Second},
		"max-run": {c.MaxRun, 5 * time.Minute}, "drain": {c.Drain, 25 * time.Second},
	} {
		if d[0] != d[1] {
			t.Errorf("%s is %v, want %v", name, d[0], d[1])
		}
	}
	if len(c.Routes) != 1 || !slices.Equal(c.Routes[0].HTTP.Methods, []string{"POST"}) {
		t.Errorf("routes: %+v", c.Routes)
	}
}

// wrongSettings are each wrong in one way, and what is said of it. They lack
// what is required too.
var wrongSettings = []struct{ yaml, want string }{
	{"", "--upstream URL is required"},
	{"", "--principal is required: none, mtls, auth, header:NAME or jwt:ISS+SUB"},
	{"", "--route 'POST /path' is required"},
	{"upstream: 127.0.0.1:3000", "--upstream 127.0.0.1:3000: must begin with http:// or https:// or h2c://"},
	{"upstream: 'http://a b'", `--upstream http://a b: invalid character " " in host name`},
	{"upstream: ftp://a", "--upstream ftp://a: must begin with http:// or https:// or h2c://"},
	{"upstream: http://", "--upstream http://: names no host"},
	{"upstream: http://a:b@c", "--upstream http://a:xxxxx@c: must not hold a user or password"},
	{"listen: nope", "--listen nope: must be HOST:PORT"},
	{"listen: a:99999", "--listen a:99999: must be HOST:PORT"},
	{"admin: '8'", "--admin 8: must be HOST:PORT"},
	{"admin: 127.0.0.1:8081", "--admin 127.0.0.1:8081: is the same as --listen"},
	{"store: umavez.db", "--store: must be memory: or sqlite:FILE"},
	{"store: 'memory:x'", "--store memory:x: memory: takes nothing after the colon"},
	{"store: 'sqlite:'", "--store sqlite:: must name the file"},
	{"store: postgres://u:secret@h/db", "--store postgres:…: this program opens memory: or sqlite:FILE"},
	{"store: rediss://h", "--store rediss:…: this program opens memory: or sqlite:FILE"},
	{"namespace: ''", `--namespace "": must have 1 to 255 bytes`},
	{"principal: nobody", "--principal nobody: must be none, mtls, auth, header:NAME or jwt:ISS+SUB"},
	{"principal: none:x", "--principal none:x: must be"},
	{"principal: header", "--principal header: must be"},
	{"principal: 'header:a b'", `--principal header:a b: "a b" is not a header's name`},
	{"principal: header:authorization", "--principal header:authorization: a credential is not a caller"},
	{"principal: header:Cookie", "--principal header:Cookie: a credential is not a caller"},
	{"principal: header:X-Tenant", "--principal header:X-Tenant: needs --trusted-proxy"},
	{"principal: jwt", "--principal jwt: must be"},
	{"principal: jwt:sub", "--principal jwt:sub: must be jwt:ISS+SUB"},
	{"principal: jwt:tenant+sub", `--principal jwt:tenant+sub: "tenant" is neither iss`},
	{"principal: jwt:iss+", `--principal jwt:iss+: "" is not a claim's name`},
	{"principal: jwt:iss+sub", "--principal jwt:iss+sub: needs --jwks"},
	{"principal: auth", "--principal auth: needs --auth-url"},
	{"principal: mtls", "--principal mtls: needs --client-ca"},
	{"principal: none\njwks: k.json", "--jwks: is only for --principal jwt, and --principal is none"},
	{"principal: none\naudience: a", "--audience: is only for --principal jwt, and --principal is none"},
	{"principal: none\nauth-url: http://a", "--auth-url: is only for --principal auth, and --principal is none"},
	{"principal: none\nclient-ca: a", "--client-ca: is only for --principal mtls, and --principal is none"},
	{"principal: auth\nauth-url: nowhere", "--auth-url nowhere: must begin with"},
	{"principal: header:A\ntrusted-proxy: [ten]", "--trusted-proxy ten: must be a network such as 10.0.0.0/8"},
	{"principal: header:A\ntrusted-proxy: [10.0.0.1/8]", "--trusted-proxy 10.0.0.1/8: has bits beyond its length; the network is 10.0.0.0/8"},
	{"client-ca: ca.pem\nprincipal: mtls", "--client-ca ca.pem: needs --tls-cert and --tls-key"},
	{"tls-cert: a", "--tls-cert a: needs --tls-key"},
	{"tls-key: a", "--tls-key a: needs --tls-cert"},
	{"lease: 10ms", "--lease 10ms: must be between 1s and 1h0m0s"},
	{"lease: -1s", "--lease -1s: must be between"},
	{"retain: 0s", "--retain 0s: must be between"},
	{"tombstone: -1s", "--tombstone -1s: must be between"},
	{"wait: 31s", "--wait 31s: must be between 0s and 30s"},
	{"max-run: 5s", "--max-run 5s: is shorter than --lease 15s"},
	{"drain: -1s", "--drain -1s: must be between"},
	{"release: [200]", "--release 200: must be statuses from 400 to 599, or none"},
	{"release: [many]", "--release many: must be statuses from 400 to 599, or none"},
	{"release: [none, '429']", "--release none: must be statuses"},
	{"cors: ['*']\ncors-credentials: true", "cors-credentials: cannot go with --cors *"},
	{"cors: [loja.example]", "--cors loja.example: must be an origin such as https://loja.example"},
	{"cors: ['https://loja.example/']", "--cors https://loja.example/: must be an origin"},
	{"accept-risk: [everything]", "--accept-risk everything: no such risk; there is single-process, "},
	{"log-format: xml", "--log-format xml: must be text or json"},
	{"log-level: loud", "--log-level loud: must be debug, info, warn or error"},
	{"auth-header: X-User\nprincipal: none", "auth-header: is only for --principal auth, and --principal is none"},
	{"auth-header: 'a b'\nprincipal: auth", "auth-header a b: is not a header's name"},
	{"key-headers: ['a b']", "key-headers a b: is not a header's name"},
	{"max-body: 0", "max-body 0: must be between 1 and"},
	{"max-answer: -1", "max-answer -1: must be between 1 and"},
	{"wait-max: 1h", "wait-max 1h0m0s: must be between 0s and 5m0s"},
	{"wait-max: 1s\nwait: 2s", "--wait 2s: must be between 0s and 1s"},
	{"limits: {dial: 0s}", "limits: dial 0s: must be between 1ms and 24h0m0s"},
	{"limits: {max-header: 0}", "limits: max-header 0: must be between 1 and"},
	{"limits: {answer-header: 10m}", "limits: answer-header 10m0s: is longer than --max-run 5m0s"},
	{"problem: {type: json, template: '{}'}", "problem: type \"json\": must be a media type"},
	{"problem: {type: application/json, template: '{{.Nix}}'}", "problem: template: "},
	{"problem: {type: application/json, template: '{{'}", "problem: template: "},
	{"problem: {type: application/json, template: '{{.Title}}'}", "problem: template: makes what is not JSON"},
	{"problem: {type: text/plain, template: ''}", "problem: template: makes nothing"},
	{"docs: here", "docs here: must begin with http:// or https://"},
	{"route: [GET /a]", "--route GET /a: GET is not protected; only POST, PATCH, PUT, DELETE are"},
	{"route: ['POST a']", "--route POST a: "},
	{"route: [POST /a, POST /a]", `--route POST /a: pattern "POST /a" conflicts with pattern "POST /a": POST /a matches the same requests as POST /a`},
	{"routes: [{route: POST /a, name: x}, {route: POST /b, name: x}]", `--route POST /b: another route has the name "x"`},
	{"routes: [{route: POST /a, methods: [PUT]}]", "--route POST /a: methods: the pattern names its method already"},
	{"routes: [{route: /a, methods: [HEAD]}]", "--route /a: HEAD is not protected"},
	{"routes: [{route: POST /a, preset: all}]", "--route POST /a: preset all: must be standard, success-only or everything"},
	{"routes: [{route: POST /a, wait: 1h}]", "--route POST /a: wait 1h0m0s: must be between 0s and 30s"},
	{"routes: [{route: POST /a, release: ['302']}]", "--route POST /a: release 302: must be statuses"},
	{"routes: [{route: POST /a, exclude: [cvv]}]", "--route POST /a: exclude cvv: must be a JSON pointer such as /card/cvv"},
	{"routes: [{route: POST /a, headers: ['a b']}]", `--route POST /a: "a b" is not a header's name`},
	{"routes: [{name: x}]", "--route : "},
	{"route: ['POST /a/:id/refund']", `--route POST /a/:id/refund: ":id" is not a wildcard here: write {name} for one segment`},
	{"route: ['POST /a/*']", `--route POST /a/*: "*" is not a wildcard here`},
	{"route: ['POST /a/*rest']", `--route POST /a/*rest: "*rest" is not a wildcard here`},
	{"route: ['POST /a/<int:id>']", `--route POST /a/<int:id>: "<int:id>" is not a wildcard here`},
	{"routes: [{route: 'POST /a/[id]'}]", `--route POST /a/[id]: "[id]" is not a wildcard here`},
}

// TestWrongSettings: each is refused by a message that names the option and
// the value.
func TestWrongSettings(t *testing.T) {
	for _, c := range wrongSettings {
		_, err := fromYAML(t, c.yaml)
		if _, usage := errors.AsType[*UsageError](err); !usage {
			t.Errorf("%s: error %v is no *UsageError", c.yaml, err)
			continue
		}
		if !strings.Contains("\n"+err.Error(), "\numavez: "+c.want) {
			t.Errorf("%s: error\n%v\nwant a line that begins with\numavez: %s", c.yaml, err, c.want)
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), ".go:") {
			t.Errorf("%s: the error shows a secret or a place in the source: %v", c.yaml, err)
		}
	}
}

// TestAllThatIsWrongIsSaid: nobody should repair a file one start at a time.
func TestAllThatIsWrongIsSaid(t *testing.T) {
	_, err := fromYAML(t, "lease: 1ms\nlog-format: xml\nprincipal: who\n")
	for _, want := range []string{"--upstream", "--route", "--lease", "--log-format", "--principal"} {
		if err == nil || !strings.Contains(err.Error(), "umavez: "+want) {
			t.Errorf("the error does not mention %s:\n%v", want, err)
		}
	}
}

func TestRouteSettings(t *testing.T) {
	c, err := fromYAML(t, `
upstream: http://127.0.0.1:3000
principal: none
release: ['429', '404']
wait: 2s
tombstone: 0s
route: [POST /simple]
routes:
  - route: PUT /pedidos/{id}
    name: pedidos
    required: true
    release: [none]
    preset: everything
    exclude: [/cvv, /relogio]
    headers: [X-Api-Version]
    echo: [X-Fapi-Interaction-Id]
    raw: true
    keep-cookies: true
    no-body: true
    wait: 0s
    retain: 1h
    tombstone: 2h
  - route: /both
    methods: [POST, DELETE]
`)
	if err != nil {
		t.Fatal(err)
	}
	simple, pedidos, both := c.Routes[0].HTTP, c.Routes[1].HTTP, c.Routes[2].HTTP
	if simple.Name != "POST /simple" || !slices.Equal(simple.Release, []int{429, 404}) || simple.Wait != 2*time.Second ||
		simple.Retain != 24*time.Hour || simple.Tombstone != -1 {
		t.Errorf("a route without settings of its own does not inherit: %+v", simple)
	}
	if pedidos.Name != "pedidos" || !pedidos.Required || !pedidos.ReleaseNone || pedidos.Release != nil ||
		pedidos.Preset != umavezhttp.Everything || len(pedidos.Exclude) != 2 || len(pedidos.Headers) != 1 || len(pedidos.Echo) != 1 ||
		!pedidos.Raw || !pedidos.KeepCookies || !pedidos.NoBody || pedidos.Wait != -1 || pedidos.Retain != time.Hour ||
		pedidos.Tombstone != 2*time.Hour || !slices.Equal(pedidos.Methods, []string{"PUT"}) {
		t.Errorf("a route with settings: %+v", pedidos)
	}
	if !slices.Equal(both.Methods, []string{"POST", "DELETE"}) {
		t.Errorf("methods: %v", both.Methods)
	}
}

// TestOwnWildcards: what is not another router's wildcard stays as it was, a
// literal one in percent code included.
func TestOwnWildcards(t *testing.T) {
	for _, pattern := range []string{"POST /a/{id}/b", "/a/{rest...}", "POST /a/{$}", "POST /a/b:c", "POST /a/b*", "POST loja.example/a", "POST /a/%3Aid"} {
		if segment := foreignWildcard(pattern); segment != "" {
			t.Errorf("%s: %q is taken for a wildcard of another router", pattern, segment)
		}
	}
}

func TestPrincipalRecipes(t *testing.T) {
	for setting, want := range map[string]string{
		"none": "none", "mtls": "mtls",
		"header:x-TENANT-id":          "header:X-Tenant-Id",
		"jwt:iss+sub":                 "jwt:iss+sub",
		"jwt:https://id.example+sub":  "jwt:iss+sub",
		"jwt:https://a/b+c+client_id": "jwt:iss+client_id",
	} {
		p, err := parsePrincipal(setting)
		if err != nil || p.Recipe() != want {
			t.Errorf("%s: recipe %q, %v; want %q", setting, p.Recipe(), err, want)
		}
	}
	p, err := parsePrincipal("jwt:https://a/b+c+client_id")
	if err != nil || p.Issuer != "https://a/b+c" || p.Claim != "client_id" {
		t.Errorf("the issuer's own plus: %+v, %v", p, err)
	}
}

// TestKubernetesRefusesOneProcessStores is about the environment, and so not parallel.
func TestKubernetesRefusesOneProcessStores(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for _, store := range []string{"memory:", "sqlite:a.db"} {
		_, err := fromYAML(t, enough+"store: '"+store+"'")
		if err == nil || !strings.Contains(err.Error(), "umavez: --store "+store+": refused inside Kubernetes") ||
			!strings.Contains(err.Error(), "--accept-risk single-process") {
			t.Errorf("%s: %v", store, err)
		}
		if _, err := fromYAML(t, enough+"store: '"+store+"'\naccept-risk: [single-process]"); err != nil {
			t.Errorf("%s with the risk accepted: %v", store, err)
		}
	}
}

// TestUpstreamIsWaitedForWithinMaxRun: an answer that came later could not be
// saved under its lease.
func TestUpstreamIsWaitedForWithinMaxRun(t *testing.T) {
	for yaml, want := range map[string]time.Duration{
		"max-run: 5m":  0, // the proxy's own default
		"max-run: 30s": 30 * time.Second,
		"max-run: 30s\nlimits: {answer-header: 10s}": 10 * time.Second,
	} {
		c, err := fromYAML(t, enough+yaml)
		if err != nil || c.Limits.Proxy.AnswerHeader != want {
			t.Errorf("%s: answer-header %v, %v; want %v", yaml, c.Limits.Proxy.AnswerHeader, err, want)
		}
	}
}

package expresstest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// app is settings.js with some of its switches on, and umavez in front of it.
type app struct {
	t           *testing.T
	front, node string // their addresses
	client      *http.Client
}

// everyone is who the callers are where a row is not about that.
var everyone = []string{"--principal", "none"}

// inMemory are settings of umavez for a test that outlives no process.
var inMemory = []string{"--store", "memory:", "--accept-risk", "single-process"}

// allRoutes are those of settings.js that charge.
var allRoutes = []string{
	"--route", "POST /pagamentos", "--route", "POST /comprovantes", "--route", "POST /sessao/pagamentos",
	"--route", "POST /falha-depois", "--route", "POST /falha-antes", "--route", "POST /limite",
	"--route", "POST /lotes", "--route", "POST /eventos",
}

// newApp protects all routes. args are umavez's other settings, in which NODE is
// the application's address.
func newApp(t *testing.T, switches []string, args ...string) *app {
	t.Helper()
	return startApp(t, switches, slices.Concat(allRoutes, args)...)
}

func startApp(t *testing.T, switches []string, args ...string) *app {
	t.Helper()
	needsNode(t)
	node := startNode(t, nil, append([]string{"settings.js"}, switches...)...)
	args = slices.Concat(inMemory, []string{"--upstream", node.URL}, args)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "NODE", node.URL)
	}
	umavez := startUmavez(t, args...)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &app{t: t, front: umavez.URL, node: node.URL, client: &http.Client{Transport: transport, Timeout: patience}}
}

// config returns the flag for a file of settings.
func config(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "umavez.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config=" + name
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// replayed reports whether umavez says that it has answered from its record.
func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// code is that of umavez's own refusal, or "".
func (r reply) code() string {
	var problem struct{ Code string }
	if r.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(r.body), &problem) != nil {
		return ""
	}
	return problem.Code
}

// header is a request's, beside its key and type.
type header map[string]string

// post sends a payment with a key.
func (a *app) post(path, key string, h header) reply {
	a.t.Helper()
	h = maps.Clone(h)
	if h == nil {
		h = header{}
	}
	h["Idempotency-Key"] = key
	if h["Content-Type"] == "" {
		h["Content-Type"] = "application/json"
	}
	return a.send("POST", path, h, `{"valor": 49.90, "cartao": "4111111111111111"}`)
}

func (a *app) send(method, path string, h header, body string) reply {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.front+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for name, value := range h {
		req.Header.Set(name, value)
	}
	return a.do(req)
}

func (a *app) do(req *http.Request) reply {
	a.t.Helper()
	res, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(text)}
}

// counts are what the application has counted; asking it is a connection too.
type counts struct{ Charges, Connections int }

func (a *app) counts() counts {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), "GET", a.node+"/cobrancas", nil)
	if err != nil {
		a.t.Fatal(err)
	}
	var c counts
	if err := json.Unmarshal([]byte(a.do(req).body), &c); err != nil {
		a.t.Fatal(err)
	}
	return c
}

func (a *app) wantCharges(want int) {
	a.t.Helper()
	if got := a.counts().Charges; got != want {
		a.t.Errorf("%d charges, want %d", got, want)
	}
}

// wantReplay holds an answer to be the first one's replay.
func wantReplay(t *testing.T, first, again reply) {
	t.Helper()
	if first.status != http.StatusCreated || first.replayed() {
		t.Errorf("the first answer is %+v, want 201 and no replay", first)
	}
	if again.status != first.status || again.body != first.body || !again.replayed() {
		t.Errorf("the second answer is %+v, want the replay of %+v", again, first)
	}
}

// wantHeader holds a header of an answer to its value; "" is none.
func wantHeader(t *testing.T, r reply, name, want string) {
	t.Helper()
	if got := strings.Join(r.header.Values(name), ", "); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

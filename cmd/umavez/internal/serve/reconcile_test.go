package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// reconciled is a file with one route that is reconciled; more goes into the
// reconcile block, at six spaces.
const reconciled = `upstream: http://127.0.0.1:3000
principal: none
routes:
  - route: POST /pay
    keep-request: true
    plain-requests: true
    reconcile:
      ask:
        url: https://gw.example/{{.Key}}
      rules:
        - status: ['404']
          verdict: cannot-happen
`

// TestReconcileSettings: what is written arrives.
func TestReconcileSettings(t *testing.T) {
	t.Setenv("UMAVEZ_TEST_TOKEN", "t")
	c, err := fromYAML(t, strings.Replace(reconciled, "plain-requests: true", "plain-requests: true\n    withhold: [X-Session]\n    policy: rerunnable\n    complete-after: 2m\n    complete-until: 5m\n    complete-tries: 7", 1)+`
        - status: [200, 2xx]
          when: [{at: /a, equals: 1}, {at: /b, one-of: [x, null, true]}, {at: /c, exists: true}, {at: /d, absent: true}]
          verdict: happened
          answer: {status: 201, headers: {Location: /x}, body: '{"a":{{response "/a"}}}'}
        - {status: ['409'], verdict: happened, answer: {status: 200, response-body: true}}
      cancel:
        ask: {method: DELETE, url: 'http://gw.example/', headers: {Authorization: 'Bearer {{env "UMAVEZ_TEST_TOKEN"}}'}, body: '{}'}
        rules: [{status: ['204'], verdict: cannot-happen, proven: refused}]
      after: 1s
      every: 2s
      park: 3h
      quiet: 11m
      timeout: 4s
      max-response: 5
      unique-keys: true
`)
	if err != nil {
		t.Fatal(err)
	}
	rt := c.Routes[0]
	if rt.Policy != umavez.Rerunnable || !rt.HTTP.KeepRequest || !rt.HTTP.PlainRequests || len(rt.HTTP.Withhold) != 1 ||
		rt.HTTP.CompleteAfter != 2*time.Minute || rt.HTTP.CompleteUntil != 5*time.Minute || rt.HTTP.CompleteTries != 7 {
		t.Errorf("the route: %+v", rt)
	}
	r := rt.Reconcile
	if r.After != time.Second || r.Every != 2*time.Second || r.Park != 3*time.Hour || r.Quiet != 11*time.Minute || r.Timeout != 4*time.Second ||
		r.MaxResponse != 5 || !r.UniqueKeys || r.Ask.URL != "https://gw.example/{{.Key}}" || len(r.Rules) != 3 {
		t.Errorf("the reconciler: %+v", r)
	}
	if when := r.Rules[1].When; len(when) != 4 || fmt.Sprint(when[0].OneOf) != "[1]" || fmt.Sprint(when[1].OneOf) != "[x <nil> true]" || !when[2].Exists || !when[3].Absent {
		t.Errorf("the conditions: %+v", when)
	}
	if a := r.Rules[1].Answer; a.Status != 201 || a.Header["Location"] != "/x" || a.Body != `{"a":{{response "/a"}}}` || !r.Rules[2].Answer.ResponseBody {
		t.Errorf("the answers: %+v, %+v", a, r.Rules[2].Answer)
	}
	if q := r.Cancel.Ask; q.Method != "DELETE" || q.Body != "{}" || r.Cancel.Rules[0].Proven != "refused" {
		t.Errorf("the cancellation: %+v", r.Cancel)
	}
}

// TestWrongReconcilers: each is refused, with its line and its place.
func TestWrongReconcilers(t *testing.T) {
	replace := func(old, with string) string {
		if !strings.Contains(reconciled, old) {
			t.Fatalf("nothing to replace: %q", old)
		}
		return strings.Replace(reconciled, old, with, 1)
	}
	const route = "umavez: --route POST /pay: "
	for _, c := range []struct{ yaml, want string }{
		{replace("https://gw.example/{{.Key}}", "https://{{.Key}}/"), route + "reconcile: line 9: ask.url: its host must be written out"},
		{replace("['404']", "['404', '500']"), route + "reconcile: line 11: rules[0].status[1]: \"500\" must be a status"},
		{replace("verdict: cannot-happen", "verdict: gone"), route + `reconcile: line 12: rules[0].verdict: "gone" must be`},
		{replace("verdict: cannot-happen", "verdict: happened"), route + "reconcile: line 11: rules[0].answer: it is missing"},
		{reconciled + "          when:\n            - at: /a\n              absent: true\n            - at: b\n              absent: true\n", route + `reconcile: line 16: rules[0].when[1].at: "b" is no JSON pointer`},
		{reconciled + "      cancel:\n        ask:\n          url: https://gw.example/\n        rules:\n          - status: ['200']\n            verdict: cannot-happen\n", route + "reconcile: line 17: cancel.rules[0].proven: is missing"},
		{replace("      ask:\n        url: https://gw.example/{{.Key}}\n", ""), route + "reconcile: line 8: ask.url: it must begin with"},
		{replace("keep-request: true\n    plain-requests: true\n", "name: p\n"), route + "reconcile: line 8: ask.url: {{.Key}} is known only where the request is kept"},
		{reconciled + "      quiet: 1m\n", route + "reconcile: quiet 1m0s: must be between 10m0s and"},
		{reconciled + "      quiet: 11m\nmax-run: 12m\n", route + "reconcile: quiet 11m0s: must be between 12m0s and"},
		{reconciled + "      max-response: 0\n", route + "reconcile: max-response 0: must be between 1 and"},
		{reconciled + "      every: 0s\n", route + "reconcile: every 0s: must be between"},
		{replace("plain-requests: true", "no-body: true"), route + "keep-request: would put requests into the store in plain: set --keyring"},
		{replace("keep-request: true", "name: p"), route + "plain-requests and withhold are about kept requests"},
		{reconciled[:strings.Index(reconciled, "    reconcile:")], route + "keep-request: nobody would read the requests"},
		{replace("plain-requests: true", "plain-requests: true\n    policy: stepped"), route + "policy stepped: must be opaque, or rerunnable"},
		{replace("plain-requests: true", "plain-requests: true\n    complete-tries: 1"), route + "complete-after, complete-until and complete-tries need policy: rerunnable"},
		{replace("plain-requests: true", "plain-requests: true\n    policy: rerunnable\n    complete-tries: 0"), route + "complete-tries 0: must be between 1 and 100"},
		{replace("plain-requests: true", "plain-requests: true\n    policy: rerunnable\n    complete-until: 1m"), route + "complete-until 1m0s: is not longer than complete-after 1m0s"},
		{replace("plain-requests: true", "plain-requests: true\n    withhold: ['a b']"), route + `withhold: "a b" is not a header's name`},
		{replace("principal: none", "principal: mtls"), route + "reconcile: line 9: ask: two callers may use the same key"},
		{replace("principal: none", "principal: mtls") + "      unique-keys: false\n", route + "reconcile: line 9: ask: two callers may use the same key"},
		{
			strings.NewReplacer("principal: none", "principal: mtls", "{{.Key}}", "{{.ID}}").Replace(reconciled) +
				"      cancel:\n        ask:\n          url: https://gw.example/{{.Key}}\n        rules:\n          - status: ['200']\n            verdict: unknown\n",
			route + "reconcile: line 15: cancel.ask: two callers may use the same key",
		},
		// The file's own errors name file and line.
		{replace("verdict: cannot-happen", "verdikt: cannot-happen"), `umavez.yaml:12: unknown field "verdikt"`},
		{reconciled + "      after: soon\n", `umavez.yaml:13: "soon" is not a duration`},
	} {
		_, err := fromYAML(t, c.yaml)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nerror %v\nwant  %s", c.yaml, err, c.want)
		}
	}
	if _, err := fromYAML(t, reconciled); err != nil {
		t.Errorf("what all of these spoil is not right itself: %v", err)
	}
}

// TestReconcilersOfCallers: where callers are told apart, a question names what is
// the caller's own, or the file says that no two callers have the same key.
func TestReconcilersOfCallers(t *testing.T) {
	apart := strings.Replace(reconciled, "principal: none", "principal: header:X-User\ntrusted-proxy: [127.0.0.1/32]", 1)
	for _, right := range []string{
		strings.Replace(apart, "{{.Key}}", "{{.Key}}?order={{field \"/order\"}}", 1),
		apart + "      unique-keys: true\n",
	} {
		if _, err := fromYAML(t, right); err != nil {
			t.Errorf("%s\n%v", right, err)
		}
	}
	// A command for operators reads what it needs: no principal.
	s, err := parseYAML([]byte(strings.Replace(reconciled, "principal: none", "store: sqlite:x.db", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.keysConfig(); err != nil {
		t.Errorf("umavez keys: %v", err)
	}
}

// TestDocumentedReconcileSettings: each setting inside is shown, and what is shown
// is right.
func TestDocumentedReconcileSettings(t *testing.T) {
	t.Setenv("GATEWAY_TOKEN", "t")
	_, files := documented(t)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[ReconcileSettings](), reflect.TypeFor[InquirySettings](), reflect.TypeFor[QuestionSettings](),
		reflect.TypeFor[RuleSettings](), reflect.TypeFor[ConditionSettings](), reflect.TypeFor[AnswerSettings](),
	} {
		for i := range typ.NumField() {
			name := typ.Field(i).Tag.Get("yaml")
			if name != "" && !strings.Contains(files[2], " "+name+":") && !strings.Contains(files[2], "{"+name+":") {
				t.Errorf("docs/serve.md does not show %s of %s", name, typ.Name())
			}
		}
	}
	s, err := parseYAML([]byte(files[2]))
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	var p problems
	c.Principal = s.principal(&p)
	s.times(&c, &p)
	s.routes(&c, &p)
	if err := p.err(); err != nil {
		t.Errorf("the routes of docs/serve.md: %v", err)
	}
}

// payments is the API of the documented file, and the gateway behind it.
type payments struct {
	mu      sync.Mutex
	charges []map[string]any
	// before and after: it dies around the charge.
	before, after bool
	asked         int
	token         string
}

func (p *payments) pay(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before {
		panic(http.ErrAbortHandler)
	}
	var order struct{ Order, Amount int }
	_ = json.NewDecoder(r.Body).Decode(&order)
	id := fmt.Sprintf("c%d", len(p.charges)+1)
	p.charges = append(p.charges, map[string]any{
		"id": id, "reference": r.Header.Get("Idempotency-Key"), "order": order.Order, "amount": order.Amount, "status": "paid",
	})
	if p.after {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":%q}`, id)
}

func (p *payments) list(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	p.token = r.Header.Get("Authorization")
	found := []map[string]any{}
	for _, c := range p.charges {
		q := r.URL.Query()
		if c["reference"] == q.Get("reference") && fmt.Sprint(c["order"]) == q.Get("order") {
			found = append(found, c)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": found})
}

// payAs makes one attempt at a payment. All callers take the same odd key.
func payAs(t *testing.T, url, user string, order int) (*http.Response, string) {
	t.Helper()
	body := fmt.Sprintf(`{"order":%d,"amount":1999}`, order)
	req, err := http.NewRequest(http.MethodPost, url+"/payments", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["idempotency-key"] = []string{"order/42?&#"}
	req.Header.Set("X-User", user)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(answer)
}

// TestDocumentedReconciler plays the documented file: the API dies between charge
// and answer, and the client's retry gets what the gateway knows. Another client's
// with the same key does not.
func TestDocumentedReconciler(t *testing.T) {
	t.Setenv("GATEWAY_TOKEN", "s3cr3t-token")
	api := &payments{after: true}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", api.pay)
	mux.HandleFunc("GET /charges", api.list)
	server := httptest.NewServer(mux)
	defer server.Close()
	_, files := documented(t)
	yaml := files[1]
	for _, change := range [][2]string{
		{"http://127.0.0.1:3000", server.URL}, {"https://gateway.example", server.URL}, {"after: 10s", "after: 1ms"},
	} {
		if !strings.Contains(yaml, change[0]) {
			t.Fatalf("docs/serve.md does not say %q where it reconciles", change[0])
		}
		yaml = strings.Replace(yaml, change[0], change[1], 1)
	}
	cfg, err := fromYAML(t, yaml+"store: 'memory:'\nlisten: 127.0.0.1:0\nadmin: ''\nlog-level: debug\nwait: 30s\n")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stderr, ended := new(lockedBuffer), make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, stderr, Hooks{}) }()
	until(t, "the ready line", func() bool { return readyLine.MatchString(stderr.String()) })
	url := readyLine.FindStringSubmatch(stderr.String())[1]
	pay := func(user string, order int) (*http.Response, string) { return payAs(t, url, user, order) }
	if res, body := pay("ana", 42); res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "outcome-unknown") {
		t.Errorf("the first attempt got %d %s", res.StatusCode, body)
	}
	var res *http.Response
	var body string
	until(t, "an answer", func() bool {
		res, body = pay("ana", 42)
		return res.StatusCode != http.StatusConflict
	})
	if res.StatusCode != http.StatusCreated || body != `{"id":"c1","amount":1999,"status":"approved"}` ||
		res.Header.Get("Location") != "/payments/c1" || res.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the retry got %d %v %s", res.StatusCode, res.Header, body)
	}
	api.mu.Lock()
	if api.asked != 1 {
		t.Errorf("asked %d times about ana's, want once", api.asked)
	}
	api.before, api.asked = true, 0
	api.mu.Unlock()
	if res, body := pay("bia", 43); res.StatusCode != http.StatusBadGateway {
		t.Errorf("bia's attempt got %d %s", res.StatusCode, body)
	}
	asked := func() int {
		api.mu.Lock()
		defer api.mu.Unlock()
		return api.asked
	}
	until(t, "the question about bia's", func() bool {
		if res, body := pay("bia", 43); res.StatusCode != http.StatusConflict {
			t.Errorf("bia, whose attempt was lost before its charge, got %d %s", res.StatusCode, body)
		}
		return asked() > 0
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if len(api.charges) != 1 || api.asked != 1 || api.token != "Bearer s3cr3t-token" {
		t.Errorf("%d charges, asked %d times, with %q", len(api.charges), api.asked, api.token)
	}
	for _, secret := range []string{"s3cr3t", "order/42"} {
		if strings.Contains(stderr.String(), secret) {
			t.Errorf("the log shows %q:\n%s", secret, stderr)
		}
	}
}

// TestFailedQuestionIsLogged: the operator sees why an outcome stays unknown, and
// is not told of each question that was answered.
func TestFailedQuestionIsLogged(t *testing.T) {
	out := new(lockedBuffer)
	p := &process{log: slog.New(slog.NewTextHandler(out, nil)), life: t.Context()}
	p.logMoment(umavez.Observation{Moment: umavez.MomentAsked, Route: "POST /pay"})
	if out.String() != "" {
		t.Errorf("an answered question is logged: %s", out)
	}
	p.logMoment(umavez.Observation{Moment: umavez.MomentAsked, Route: "POST /pay", Err: errors.New("status 503 does not say")})
	if !strings.Contains(out.String(), "level=WARN") || !strings.Contains(out.String(), "status 503 does not say") {
		t.Errorf("the log says %q", out)
	}
}

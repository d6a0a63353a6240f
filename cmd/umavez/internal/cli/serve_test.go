package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestServeRunsOnce is the main job on a real process: a retry gets the answer
// of the first attempt, another request under its key is refused, and the
// upstream has charged once.
func TestServeRunsOnce(t *testing.T) {
	for _, store := range []string{"memory:", sqliteFile(t)} {
		t.Run(store, func(t *testing.T) {
			b := newBank(t, false)
			p := start(t, protect(b, store)...)
			first := mustPost(t, p.URL+"/pagamentos", "k", `1`)
			retry := mustPost(t, p.URL+"/pagamentos", "k", `1`)
			if first.status != http.StatusCreated || first.replayed() {
				t.Errorf("first: %+v", first)
			}
			if retry.status != first.status || retry.body != first.body || !retry.replayed() {
				t.Errorf("retry: %+v, want the replay of %+v", retry, first)
			}
			if other := mustPost(t, p.URL+"/pagamentos", "k", `2`); other.status != http.StatusUnprocessableEntity {
				t.Errorf("another request under the key: %+v", other)
			}
			if n := len(b.charges); n != 1 {
				t.Errorf("%d charges, want 1", n)
			}
		})
	}
}

// TestServeSurvivesKill: the answer is there for the next process on the file.
func TestServeSurvivesKill(t *testing.T) {
	b, store := newBank(t, false), sqliteFile(t)
	p := start(t, protect(b, store)...)
	first := mustPost(t, p.URL+"/pagamentos", "k", `1`)
	p.Kill()
	next := start(t, protect(b, store)...)
	if retry := mustPost(t, next.URL+"/pagamentos", "k", `1`); retry.body != first.body || !retry.replayed() || len(b.charges) != 1 {
		t.Errorf("after kill -9: %+v and %d charges, want the replay of %+v and 1", retry, len(b.charges), first)
	}
}

// TestMetricsEqualWhatWasDone counts every kind of answer and finds each
// counter at exactly that.
func TestMetricsEqualWhatWasDone(t *testing.T) {
	b := newBank(t, true)
	p := start(t, protect(b, "memory:", "--wait", "0s")...)
	target := p.URL + "/pagamentos"

	running := background(target, "running", `1`)
	<-b.entered
	for range 3 {
		if a := mustPost(t, target, "running", `1`); a.status != http.StatusConflict {
			t.Fatalf("in progress: %+v", a)
		}
	}
	for range 2 {
		if a := mustPost(t, target, "running", `2`); a.status != http.StatusUnprocessableEntity {
			t.Fatalf("key reused: %+v", a)
		}
	}
	if got := metricsOf(t, p.Admin)["umavez_running"]; got != "1" {
		t.Errorf("umavez_running is %q while one operation runs", got)
	}
	b.leave <- struct{}{}
	<-running
	for range 5 {
		if a := mustPost(t, target, "running", `1`); !a.replayed() {
			t.Fatalf("replay: %+v", a)
		}
	}
	b.leave <- struct{}{}
	mustPost(t, target, "", `3`) // without a key: unprotected, and counted nowhere
	for range 4 {
		b.leave <- struct{}{}
		mustPost(t, p.URL+"/pagamento", "mistyped", `4`)
	}
	want := map[string]string{
		`umavez_claims_total{%}`:                "1",
		`umavez_executions_total{%}`:            "1",
		`umavez_completed_total{%}`:             "1",
		`umavez_in_progress_total{%}`:           "3",
		`umavez_key_reused_total{%}`:            "2",
		`umavez_replays_total{%}`:               "5",
		`umavez_unknown_total{%}`:               "0",
		`umavez_unsaved_total{%}`:               "0",
		`umavez_abandoned_total{%}`:             "0",
		`umavez_unmatched_keyed_requests_total`: "4",
		`umavez_unauthenticated_total`:          "0",
		`umavez_running`:                        "0",
		`umavez_waiting`:                        "0",
		`umavez_backlog`:                        "0",
		`umavez_unsaved_bytes`:                  "0",
		`umavez_releases_waiting`:               "0",
	}
	got := metricsOf(t, p.Admin)
	for name, value := range want {
		name = strings.ReplaceAll(name, "%", `policy="opaque",route="POST /pagamentos"`)
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	if n := len(b.charges); n != 6 {
		t.Errorf("%d requests reached the upstream, want 6", n)
	}
}

// metricsOf reads the Prometheus text: series to value.
func metricsOf(t *testing.T, admin string) map[string]string {
	t.Helper()
	res, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			all[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return all
}

// TestServeSaysWhatItPromises: store, and each route with its policy and
// release list.
func TestServeSaysWhatItPromises(t *testing.T) {
	b := newBank(t, false)
	yaml := filepath.Join(t.TempDir(), "umavez.yaml")
	if err := os.WriteFile(yaml, []byte(`
upstream: `+b.URL+`
principal: none
store: 'memory:'
release: ['404']
routes:
  - route: POST /a
  - route: POST /b
    name: pedidos
    release: [none]
    preset: everything
`), 0o600); err != nil {
		t.Fatal(err)
	}
	log := start(t, "--config", yaml).Stderr()
	for _, want := range []string{
		`msg=store address=memory: promise="one process; its end forgets every key"`,
		`msg=protecting upstream=` + b.URL + ` namespace=default scope=none lease=15s max-run=5m0s`,
		`msg=route route="POST /a" policy=opaque release=standard,404 wait=5s`,
		`msg=route route="POST /b" policy=opaque release=none name=pedidos preset=everything wait=5s`,
		`msg="all callers are one (--principal none)`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}

// TestLogsHoldNoSecret runs at the most talkative level, with everything that a
// request may carry, and finds none of it in the log.
func TestLogsHoldNoSecret(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Answer", "s3cret-answer-header")
		w.WriteHeader(map[string]int{"/a": 201, "/b": 500, "/c": 429, "/d": 200}[r.URL.Path])
		_, _ = io.WriteString(w, "s3cret-answer-body")
	}))
	t.Cleanup(up.Close)
	for _, format := range []string{"text", "json"} {
		p := start(t, "--upstream", up.URL, "--store", "memory:", "--principal", "header:X-Tenant", "--trusted-proxy", "127.0.0.0/8",
			"--route", "POST /a", "--route", "POST /b", "--route", "POST /c", "--log-level", "debug", "--log-format", format, "--wait", "0s")
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			for _, key := range []string{"s3cret-key" + path, "s3cret-key" + path, `"s3cret-key`} {
				for _, tenant := range []string{"s3cret-tenant", ""} {
					req, err := http.NewRequest(http.MethodPost, p.URL+path, strings.NewReader(`{"card":"s3cret-body"}`))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Idempotency-Key", key)
					req.Header.Set("Authorization", "Bearer s3cret-token")
					req.Header.Set("X-Tenant", tenant)
					if _, err := do(http.DefaultClient, req); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		p.Kill()
		if at := strings.Index(p.Stderr(), "s3cret"); at >= 0 {
			t.Errorf("%s: the log shows …%s", format, p.Stderr()[max(0, at-100):at+20])
		}
		for _, moment := range []string{"started", "completed", "released", "abandoned", "replayed", "unknown", "a caller was not identified"} {
			if !regexp.MustCompile(`msg"?[=:]"?` + moment).MatchString(p.Stderr()) {
				t.Errorf("%s: the debug log does not tell of %s", format, moment)
			}
		}
	}
}

// TestConcurrentDuplicates: 100 clients at once, one charge, equal answers.
func TestConcurrentDuplicates(t *testing.T) {
	b := newBank(t, true)
	// A busy machine may take more than the usual five seconds.
	p := start(t, protect(b, sqliteFile(t), "--wait", "30s")...)
	const clients = 100
	answers := make([]answer, clients)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = post(http.DefaultClient, p.URL+"/pagamentos", "k", `1`); err != nil {
				t.Error(err)
			}
		})
	}
	<-b.entered
	b.leave <- struct{}{}
	all.Wait()
	firsts := 0
	for _, a := range answers {
		if a.status != http.StatusCreated || a.body != answers[0].body {
			t.Fatalf("answers differ: %+v and %+v", a, answers[0])
		}
		if !a.replayed() {
			firsts++
		}
	}
	if firsts != 1 || len(b.charges) != 1 {
		t.Errorf("%d first answers and %d charges, want one of each", firsts, len(b.charges))
	}
}

// TestProblemTemplate: an API with an error schema of its own keeps it.
func TestProblemTemplate(t *testing.T) {
	yaml := filepath.Join(t.TempDir(), "umavez.yaml")
	if err := os.WriteFile(yaml, []byte(`
problem:
  type: application/json
  template: '{"errors":[{"code":{{json .Code}},"status":{{.Status}}}]}'
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, protect(newBank(t, false), "memory:", "--config", yaml)...)
	a := mustPost(t, p.URL+"/pagamentos", `"never closed`, `1`)
	if a.status != http.StatusBadRequest || a.body != `{"errors":[{"code":"invalid-key","status":400}]}` || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", a)
	}
}

// TestMistypedVariableIsSaid: it sets nothing, and looks as if it did. What
// Kubernetes sets for a service of this name is no mistake.
func TestMistypedVariableIsSaid(t *testing.T) {
	p := startEnv(t, []string{
		"UMAVEZ_RETAINS=48h", "UMAVEZ_SERVICE_HOST=10.0.0.1", "UMAVEZ_PORT=tcp://10.0.0.1:80",
		"UMAVEZ_PORT_8081_TCP_ADDR=10.0.0.1", "UMAVEZ_ADMIN_SERVICE_PORT_HTTP=80", "UMAVEZ_RETAIN=48h",
	}, protect(newBank(t, false), "memory:")...)
	if got := regexp.MustCompile(`umavez: the variable UMAVEZ_\w+ `).FindAllString(p.Stderr(), -1); len(got) != 1 || got[0] != "umavez: the variable UMAVEZ_RETAINS " {
		t.Errorf("said of variables: %q, want UMAVEZ_RETAINS alone", got)
	}
	if !strings.Contains(p.Stderr(), "retain=48h0m0s") {
		t.Error("UMAVEZ_RETAIN was not heeded")
	}
}

// TestAdminOff: an empty address opens none, and nothing but the API is there.
func TestAdminOff(t *testing.T) {
	b := newBank(t, false)
	p := start(t, protect(b, "memory:", "--admin", "")...)
	if p.Admin != "" {
		t.Errorf("an admin address is open: %s", p.Admin)
	}
	// On the address for clients, /metrics is the upstream's.
	if a := mustPost(t, p.URL+"/metrics", "", `5`); a.body != `{"charged":5}` {
		t.Errorf("/metrics for clients: %+v", a)
	}
}

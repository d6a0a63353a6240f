package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ringFile is a key ring with these lines.
func ringFile(t *testing.T, lines ...string) string {
	t.Helper()
	return secretFile(t, "ring", strings.Join(lines, "\n"))
}

// generate is a new line of a key ring.
func generate(t *testing.T, args ...string) string {
	t.Helper()
	status, stdout, stderr := run(append([]string{"keys", "generate"}, args...)...)
	if status != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("generate: status %d, %q, %s", status, stdout, stderr)
	}
	return strings.TrimSpace(stdout)
}

// TestGenerate: no two lines are the same, and their names are those asked for.
func TestGenerate(t *testing.T) {
	a, b := generate(t), generate(t)
	if a == b || a[:strings.Index(a, ":")] == b[:strings.Index(b, ":")] {
		t.Errorf("%s and %s", a, b)
	}
	if line := generate(t, "--id", "2026-03"); !strings.HasPrefix(line, "2026-03:") {
		t.Errorf("%s", line)
	}
}

// inFiles reports whether a text is anywhere in the store's files.
func (s *shop) inFiles(text string) bool {
	s.t.Helper()
	files, err := filepath.Glob(strings.TrimPrefix(s.store, "sqlite:") + "*")
	if err != nil || len(files) < 2 {
		s.t.Fatalf("the store's files: %v, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		if bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}

// TestNothingSecretIsShown: with a key ring, what was answered and what a key was
// settled with is not in the store's files; and neither that nor a key, a token
// or a reason is in the log at its most talkative.
func TestNothingSecretIsShown(t *testing.T) {
	line := generate(t)
	ring := ringFile(t, line)
	s := newShop(t, "--keyring", ring)
	for name, carrier := range s.carriers() {
		if name == "store" {
			carrier = append(carrier, "--keyring", ring)
		}
		s.pay("s3cret-key-"+name, "500")
		s.pay("s3cret-key-done-"+name, "201")
		id := s.shown(carrier, "--key", "s3cret-key-"+name).ID
		s.must(carrier, "list", "--state", "unknown,done")
		s.must(carrier, "settle", id, "--happened", "--status", "201", "--body", "s3cret-body", "--header", "X-A: s3cret-header", "--reason", "s3cret-reason")
		if a := s.pay("s3cret-key-"+name, "500"); a.body != "s3cret-body" {
			t.Errorf("%s: %+v", name, a)
		}
		s.refuses(1, "this is not serve's token", []string{"--admin", s.p.Admin, "--admin-token", secretFile(t, "wrong", "s3cret-wrong-token")}, "list")
	}
	for _, text := range []string{"s3cret-body", "s3cret-header", "s3cret-answer", "s3cret-key", line[strings.Index(line, ":")+1:]} {
		if s.inFiles(text) {
			t.Errorf("%s is in the store's files", text)
		}
	}
	if !s.inFiles("s3cret-reason") {
		t.Error("the reason is not in the store's files: this test looks in the wrong place")
	}
	s.p.Kill()
	log := s.p.Stderr()
	for _, text := range []string{"s3cret", line[strings.Index(line, ":")+1:]} {
		if at := strings.Index(log, text); at >= 0 {
			t.Errorf("the log shows …%s", log[max(0, at-100):at+20])
		}
	}
	if id, _, _ := strings.Cut(line, ":"); !strings.Contains(log, `msg=kept sealed="answers, last words, steps, requests, hash keys" names=hashed key=`+id) {
		t.Error("the log does not say at start what is sealed")
	}
}

// TestSealAndRotate: a store in plain becomes a sealed one while it serves, and
// then its key is changed; old answers are given all the while.
func TestSealAndRotate(t *testing.T) {
	s := newShop(t)
	retried := func(when string) {
		t.Helper()
		if a := s.pay("k", "201"); a.status != 201 || !a.replayed() {
			t.Errorf("%s: %+v", when, a)
		}
	}
	s.pay("k", "201")
	if !s.inFiles("s3cret-answer") || !strings.Contains(s.p.Stderr(), "msg=kept sealed=nothing") {
		t.Error("without a ring the answer is not in the files, or the log does not say so")
	}
	s.p.Kill()

	a, b := generate(t, "--id", "a"), generate(t, "--id", "b")
	one := ringFile(t, a)
	mustNotStart(t, 1, "it is in plain, and must be sealed; if nobody has sealed this store yet, start with keyring-allow-plain", "--upstream", s.url, "--route", "POST /pagamentos", "--principal", "none", "--store", s.store, "--keyring", one)
	yaml := filepath.Join(t.TempDir(), "umavez.yaml")
	if err := os.WriteFile(yaml, []byte("keyring-command: [cat, "+one+"]\nkeyring-allow-plain: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(nil, "--config", yaml)
	retried("plain, beside a ring")
	if !strings.Contains(s.p.Stderr(), "keyring-allow-plain") {
		t.Error("the log does not warn of what is taken")
	}
	if got := s.must(nil, "reseal", "--store", s.store, "--config", yaml); got != "1 of 1 records and 1 namespaces sealed anew\n" {
		t.Errorf("reseal prints %q", got)
	}
	retried("sealed")
	s.pay("u", "500")
	beside := []string{"--store", s.store}
	s.refuses(1, "its services seal what they keep", beside, "settle", s.only(beside, "--state", "unknown").ID, "--happened", "--status", "201", "--reason", "r")
	s.p.Kill()

	both := ringFile(t, b, a)
	s.start(nil, "--keyring", both)
	retried("with two keys")
	if got := s.must(nil, "reseal", "--store", s.store, "--keyring", both); got != "2 of 2 records and 1 namespaces sealed anew\n" {
		t.Errorf("reseal prints %q", got)
	}
	s.p.Kill()
	status, stdout, stderr := run("keys", "reseal", "--store", s.store, "--keyring", one)
	if status != 1 || !strings.Contains(stderr, "could not be opened with this key ring") || !strings.HasPrefix(stdout, "0 of 2 records") {
		t.Errorf("resealing with a ring that lacks the key: %d %s %s", status, stdout, stderr)
	}
	s.start(nil, "--keyring", ringFile(t, b))
	retried("with the new key alone")
}

// TestKeepNames: operators see whose key it is, where the service says so.
func TestKeepNames(t *testing.T) {
	s := newShop(t, "--keep-names")
	s.pay("pedido-42", "500")
	for _, carrier := range s.carriers() {
		if k := s.only(carrier); !strings.Contains(k.Label, "pedido-42") {
			t.Errorf("listed as %+v", k)
		}
		if table := s.must(carrier, "list"); !strings.Contains(table, "POST /pagamentos\n  pedido-42\n  ") {
			t.Errorf("the table is\n%s", table)
		}
	}
	if !strings.Contains(s.p.Stderr(), `names="in words"`) {
		t.Error("the log does not say so")
	}
}

// TestStatusOverHTTP: off, the path is the upstream's; on, callers are told.
func TestStatusOverHTTP(t *testing.T) {
	s := newShop(t)
	s.pay("k", "500")
	if status := statusOf(t, s.p.URL+"/.umavez/keys/k"); status != http.StatusCreated {
		t.Errorf("off: %d, want the upstream's answer", status)
	}
	s.start(nil, "--status")
	n := len(s.charges)
	req, err := http.NewRequest(http.MethodGet, s.p.URL+"/.umavez/keys/k", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := do(http.DefaultClient, req)
	if err != nil || a.status != 200 || !strings.Contains(a.body, `"state":"unknown"`) || len(s.charges) != n {
		t.Errorf("on: %+v, %v", a, err)
	}
}

// TestMaxUnsettled: one caller cannot fill the store with what nobody settles.
func TestMaxUnsettled(t *testing.T) {
	yaml := filepath.Join(t.TempDir(), "umavez.yaml")
	if err := os.WriteFile(yaml, []byte("max-unsettled: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShop(t, "--config", yaml)
	s.pay("a", "500")
	s.pay("b", "500")
	if a := s.pay("c", "201"); a.status != http.StatusTooManyRequests || !strings.Contains(a.body, "too-many-unsettled") {
		t.Errorf("the third: %+v", a)
	}
	carrier := s.carriers()["admin"]
	s.must(carrier, "settle", s.list(carrier)[0].ID, "--cannot-happen", "--force", "--reason", "r")
	if a := s.pay("c", "201"); a.status != http.StatusCreated {
		t.Errorf("after one was settled: %+v", a)
	}
	if got := metricsOf(t, s.p.Admin)[`umavez_too_many_unsettled_total{policy="opaque",route="POST /pagamentos"}`]; got != "1" {
		t.Errorf("counted %q times", got)
	}
}

// TestUnsettledGauge: whoever starts after a crash sees what it left.
func TestUnsettledGauge(t *testing.T) {
	g := newGate(t)
	defer close(g.open)
	s := newShop(t)
	s.pay("seen", "500")
	s.start([]string{holdAt + "=" + g.url}, "--lease", "1s")
	background(s.p.URL+"/pagamentos", "killed", "201")
	<-g.entered
	if err := s.p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.p.Ended()
	beside := []string{"--store", s.store}
	waitUntil(t, "the lease of a killed process runs out", func() bool { return len(s.list(beside, "--state", "unknown")) == 2 })
	s.start(nil)
	got := metricsOf(t, s.p.Admin)
	for state, want := range map[string]string{"unknown": "2", "lost": "0", "running": "0"} {
		if name := `umavez_unsettled{state="` + state + `"}`; got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
}

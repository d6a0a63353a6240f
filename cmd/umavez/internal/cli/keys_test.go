package cli

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeys is an operator's day, in both ways, on the file of a serve that runs.
func TestKeys(t *testing.T) {
	s := newShop(t)
	body := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(body, []byte(`{"id":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, carrier := range s.carriers() {
		t.Run(name, func(t *testing.T) {
			s := &shop{t: t, p: s.p, store: s.store, token: s.token}
			key := "k-" + name
			if a := s.pay(key, "500"); a.status != 500 {
				t.Fatalf("%+v", a)
			}
			s.pay("done-"+name, "201")
			unknown := s.only(carrier, "--state", "unknown")
			if unknown.State != "unknown" || unknown.Reason != "5xx" || unknown.Route != "POST /pagamentos" || unknown.Label != "" || unknown.Tries != 1 {
				t.Errorf("listed as %+v", unknown)
			}
			if text := s.must(carrier, "list", "--state", "unknown", "--older-than", "0s", "--limit", "5"); !strings.HasPrefix(text, "STATE ") || !strings.Contains(text, "\n  "+unknown.ID+"\n") {
				t.Errorf("the table is\n%s", text)
			}
			text := s.must(carrier, "show", "--key", key)
			for _, want := range []string{"id           " + unknown.ID, "unknown, for ", "last word    status 500", "\nwhy\n  ", "\nwhat to do\n  "} {
				if !strings.Contains(text, want) {
					t.Errorf("show lacks %q:\n%s", want, text)
				}
			}
			got := s.must(carrier, "settle", unknown.ID, "--happened", "--status", "201", "--header", "Location: /pagamentos/7",
				"--body", "@"+body, "--reason", "found in the gateway's ledger, ticket 12")
			if want := unknown.ID + ": unknown (5xx) → done\n"; got != want {
				t.Errorf("settle prints %q, want %q", got, want)
			}
			if a := s.pay(key, "500"); a.status != 201 || a.body != `{"id":7}` || !a.replayed() || a.header.Get("Location") != "/pagamentos/7" || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("after settling a retry gets %+v", a)
			}
			shown := s.shown(carrier, unknown.ID)
			who := whoami()
			if name == "admin" {
				who += " via admin"
			}
			if e := shown.Trail; len(e) != 1 || e[0].Who != who || e[0].Why != "found in the gateway's ledger, ticket 12" || e[0].Before != "lost" || e[0].After != "done" || e[0].At == "" {
				t.Errorf("the trail is %+v, want %s", e, who)
			}
			s.must(carrier, "forget", unknown.ID, "--who", "dpo", "--reason", "the customer asked")
			if a := s.pay(key, "500"); a.status != 409 || !strings.Contains(a.body, "key-expired") {
				t.Errorf("after forgetting a retry gets %+v", a)
			}
			if got := s.must(carrier, "show", unknown.ID); !strings.Contains(got, "forget by dpo") || !strings.Contains(got, "done → expired") {
				t.Errorf("the trail is not shown:\n%s", got)
			}
			if got := s.must(carrier, "purge"); !strings.HasSuffix(got, " rows were over\n") {
				t.Errorf("purge prints %q", got)
			}
		})
	}
	if n := len(s.charges); n != 4 {
		t.Errorf("%d requests reached the upstream, want 4", n)
	}
	if !strings.Contains(s.p.Stderr(), "msg=settled") || metricsOf(t, s.p.Admin)[`umavez_settled_total{policy="opaque",route="POST /pagamentos"}`] != "2" {
		t.Error("what was settled by the admin address is not in the log, or not in the metrics")
	}
}

// TestCannotHappen: too early it is refused, by force it is not, and the next
// attempt runs.
func TestCannotHappen(t *testing.T) {
	s := newShop(t)
	for name, carrier := range s.carriers() {
		s.pay(name, "500")
		id := s.only(carrier, "--state", "unknown").ID
		s.refuses(1, "too early to say that it cannot happen", carrier, "settle", id, "--cannot-happen", "--reason", "r")
		s.must(carrier, "settle", id, "--cannot-happen", "--force", "--reason", "the gateway has cancelled it")
		if a := s.pay(name, "201"); a.status != 201 || a.replayed() {
			t.Errorf("%s: after settling the next attempt gets %+v", name, a)
		}
		// Parked is unknown too.
		s.pay("park-"+name, "500")
		id = s.only(carrier, "--state", "unknown").ID
		s.must(carrier, "settle", id, "--park", "--reason", "asked the bank")
		if k := s.only(carrier, "--reason", "parked"); k.State != "unknown" {
			t.Errorf("%s: parked is %+v", name, k)
		}
		s.must(carrier, "settle", id, "--cannot-happen", "--force", "--reason", "the bank says no")
	}
}

// TestTwoOperatorsOneListing: both saw the same, and the second is refused, told
// what became of it, and leaves nothing in the trail.
func TestTwoOperatorsOneListing(t *testing.T) {
	s := newShop(t)
	ways := s.carriers()
	for first, second := range map[string]string{"store": "admin", "admin": "store"} {
		s.pay("two-"+first, "500")
		seen := s.only(ways[first], "--state", "unknown").ID
		if also := s.only(ways[second], "--state", "unknown").ID; also != seen {
			t.Fatalf("the listings differ: %s and %s", seen, also)
		}
		s.must(ways[first], "settle", seen, "--happened", "--status", "201", "--who", "ana", "--reason", "it is in the ledger")
		s.refuses(1, "the record has moved: it was lost (5xx) when it was listed, it is done now (happened by ana", ways[second],
			"settle", seen, "--cannot-happen", "--force", "--who", "bia", "--reason", "it is not in the ledger")
		if e := s.shown(ways[second], seen).Trail; len(e) != 1 || !strings.HasPrefix(e[0].Who, "ana") {
			t.Errorf("the trail is %+v", e)
		}
	}
}

// TestLiveLeaseIsNotSettled, by force neither.
func TestLiveLeaseIsNotSettled(t *testing.T) {
	b := newBank(t, true)
	token := secretFile(t, "token", shopToken)
	store := sqliteFile(t)
	s := &shop{t: t, store: store, token: token, p: start(t, protect(b, store, "--admin-token", token)...)}
	running := background(s.p.URL+"/pagamentos", "k", `1`)
	<-b.entered
	for _, carrier := range s.carriers() {
		id := s.only(carrier, "--state", "running").ID
		for _, verdict := range [][]string{{"--cannot-happen"}, {"--cannot-happen", "--force"}, {"--park"}, {"--happened", "--status", "201"}} {
			s.refuses(1, "it is running: its attempt holds it", carrier, append([]string{"settle", id, "--reason", "r"}, verdict...)...)
		}
		s.refuses(1, "only what is done can be forgotten", carrier, "forget", id, "--reason", "r")
	}
	b.leave <- struct{}{}
	if a := <-running; a.status != 201 {
		t.Errorf("the operation was disturbed: %+v", a)
	}
}

// TestAdminToken: none, a wrong one, and the right one; and where none is set.
func TestAdminToken(t *testing.T) {
	s := newShop(t)
	admin := []string{"--admin", s.p.Admin}
	s.refuses(2, "needs --admin-token", admin, "list")
	s.refuses(1, "this is not serve's token", append(admin, "--admin-token", secretFile(t, "wrong", "s3cret-wrong-token")), "list")
	s.refuses(2, "--admin-token /does/not/exist: ", append(admin, "--admin-token", "/does/not/exist"), "list")
	s.must(append(admin, "--admin-token", s.token), "list")
	if err := os.Chmod(s.token, 0o644); err != nil {
		t.Fatal(err)
	}
	s.refuses(2, "chmod 600", append(admin, "--admin-token", s.token), "list")
	if status := statusOf(t, s.p.Admin+"/keys"); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	closed := start(t, protect(newBank(t, false), "memory:")...)
	if status := statusOf(t, closed.Admin+"/keys"); status != 404 {
		t.Errorf("where no token is set: %d", status)
	}
	s.refuses(1, "start it with --admin-token FILE", []string{"--admin", closed.Admin, "--admin-token", secretFile(t, "right", shopToken)}, "list")
	mustNotStart(t, 2, "chmod 600", "--upstream", "http://127.0.0.1:1", "--route", "POST /a", "--principal", "none", "--store", "memory:", "--admin-token", s.token)
}

// TestWhoami names somebody who can be asked.
func TestWhoami(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("user ", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if got := whoami(); got != name+"@"+host {
		t.Errorf("%q", got)
	}
}

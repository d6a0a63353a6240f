package expresstest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
)

// The rows about who the caller is.

// TestE8_UserHeader: the caller is whom the gateway names, not the token.
func TestE8_UserHeader(t *testing.T) {
	a := newApp(t, nil, "--principal", "header:X-User", "--trusted-proxy", "127.0.0.1/32")
	ana := header{"X-User": "ana", "Authorization": "Bearer first"}
	refreshed := header{"X-User": "ana", "Authorization": "Bearer second"}
	wantReplay(t, a.post("/pagamentos", "k", ana), a.post("/pagamentos", "k", refreshed))
	if r := a.post("/pagamentos", "k", header{"X-User": "bia", "Authorization": "Bearer first"}); r.status != http.StatusCreated || r.replayed() {
		t.Errorf("another user's equal key: %+v, want a payment of her own", r)
	}
	if r := a.post("/pagamentos", "k", nil); r.status != http.StatusUnauthorized {
		t.Errorf("nobody: %+v, want 401", r)
	}
	a.wantCharges(2)
}

// TestE8_TokenAsUser: with the raw token as the caller, a refreshed one would pay
// twice, so umavez does not start.
func TestE8_TokenAsUser(t *testing.T) {
	command := umavezCommand(slices.Concat(inMemory, allRoutes, []string{
		"--upstream", "http://127.0.0.1:1", "--principal", "header:Authorization", "--trusted-proxy", "127.0.0.1/32",
	})...)
	p, err := child.Start(command)
	if err == nil {
		p.Kill()
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "a credential is not a caller") {
		t.Errorf("it did not say why: %v", err)
	}
}

// TestE9_Sessions: the application itself says whose cookie it is. A new cookie
// of the same person is the same caller, and a replay sets none.
func TestE9_Sessions(t *testing.T) {
	a := newApp(t, nil, "--principal", "auth", "--auth-url", "NODE/quem")
	first := a.post("/sessao/pagamentos", "k", header{"Cookie": "sessao=s1"})
	again := a.post("/sessao/pagamentos", "k", header{"Cookie": "sessao=s2"})
	wantReplay(t, first, again)
	wantHeader(t, first, "Set-Cookie", "sessao=s2; Path=/")
	wantHeader(t, again, "Set-Cookie", "")
	if r := a.post("/sessao/pagamentos", "k", header{"Cookie": "sessao=s3"}); r.status != http.StatusCreated || r.replayed() {
		t.Errorf("another person's equal key: %+v, want a payment of her own", r)
	}
	if r := a.post("/sessao/pagamentos", "k", header{"Cookie": "sessao=forged"}); r.status != http.StatusUnauthorized {
		t.Errorf("a session that the application does not know: %+v, want 401", r)
	}
	a.wantCharges(2)
}

// TestE9_KeepCookies: where the answer's cookie is part of it, a route keeps it.
func TestE9_KeepCookies(t *testing.T) {
	a := startApp(t, nil, config(t, "routes: [{route: POST /sessao/pagamentos, keep-cookies: true}]\n"), "--principal", "auth", "--auth-url", "NODE/quem")
	first := a.post("/sessao/pagamentos", "k", header{"Cookie": "sessao=s1"})
	again := a.post("/sessao/pagamentos", "k", header{"Cookie": "sessao=s1"})
	wantReplay(t, first, again)
	wantHeader(t, again, "Set-Cookie", "sessao=s2; Path=/")
}

package cli

import (
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
)

// attemptAs posts with a header.
func attemptAs(t *testing.T, client *http.Client, p *child.Process, header, value string) answer {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.URL+"/pagamentos", strings.NewReader(`1`))
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = nil
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	if header != "" {
		req.Header.Set(header, value)
	}
	a, err := do(client, req)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// principalArgs is protect with another principal.
func principalArgs(b *bank, store string, principal ...string) []string {
	return append([]string{"--upstream", b.URL, "--route", "POST /pagamentos", "--store", store, "--principal"}, principal...)
}

// jwtIssuer publishes one key, and signs with it.
type jwtIssuer struct {
	key  *ecdsa.PrivateKey
	jwks []byte
}

func newJWTIssuer(t *testing.T) *jwtIssuer {
	t.Helper()
	i := &jwtIssuer{key: newECKey(t)}
	point, err := i.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	i.jwks, err = json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig", "x": b64(point[1:33]), "y": b64(point[33:]),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// token signs with method and key, or with the issuer's own.
func (i *jwtIssuer) token(t *testing.T, change func(*jwt.Token), method jwt.SigningMethod, key any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims{
		"iss": "https://id.example", "aud": "loja", "sub": "ana", "exp": time.Now().Add(time.Hour).Unix(), "jti": time.Now().String(),
	})
	token.Header["kid"] = "1"
	if change != nil {
		change(token)
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + text
}

// TestF2_ForgedTokensGetNoStoredAnswer: with the answer in the store, only the
// caller's own verified token gets it, and a refreshed one does.
func TestF2_ForgedTokensGetNoStoredAnswer(t *testing.T) {
	t.Parallel()
	is := newJWTIssuer(t)
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, is.jwks, 0o600); err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(is.jwks) }))
	t.Cleanup(served.Close)
	for name, where := range map[string]string{"URL": served.URL, "FILE": file} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, false)
			p := start(t, principalArgs(b, "memory:", "jwt:https://id.example+sub", "--jwks", where, "--audience", "loja")...)
			as := func(token string) answer { return attemptAs(t, http.DefaultClient, p, "Authorization", token) }
			own := func(change func(*jwt.Token)) string { return is.token(t, change, jwt.SigningMethodES256, is.key) }
			claim := func(name string, value any) func(*jwt.Token) {
				return func(tok *jwt.Token) { tok.Claims.(jwt.MapClaims)[name] = value }
			}
			if a := as(own(nil)); a.status != http.StatusCreated || a.replayed() {
				t.Fatalf("first: %+v", a)
			}
			if a := as(own(nil)); a.status != http.StatusCreated || !a.replayed() {
				t.Errorf("a refreshed token: %+v, want the replay", a)
			}
			if a := as(own(claim("sub", "bia"))); a.status != http.StatusCreated || a.replayed() {
				t.Errorf("another caller: %+v, want an answer of her own", a)
			}
			charges := len(b.charges)
			for kind, token := range map[string]string{
				"none":           "",
				"alg:none":       is.token(t, nil, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
				"HS256":          is.token(t, nil, jwt.SigningMethodHS256, is.jwks),
				"forged":         is.token(t, nil, jwt.SigningMethodES256, newECKey(t)),
				"unknown key":    own(func(tok *jwt.Token) { tok.Header["kid"] = "2" }),
				"expired":        own(claim("exp", time.Now().Add(-time.Hour).Unix())),
				"not yet":        own(claim("nbf", time.Now().Add(time.Hour).Unix())),
				"wrong issuer":   own(claim("iss", "https://other.example")),
				"wrong audience": own(claim("aud", "banco")),
			} {
				a := as(token)
				if a.status != http.StatusUnauthorized || a.replayed() || strings.Contains(a.body, "charged") || a.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s: %+v, want 401 and nothing stored", kind, a)
				}
			}
			if len(b.charges) != charges {
				t.Errorf("a token that was refused reached the upstream")
			}
			if got := metricsOf(t, p.Admin)["umavez_unauthenticated_total"]; got != "9" {
				t.Errorf("umavez_unauthenticated_total is %s, want 9", got)
			}
		})
	}
}

// TestServeNeedsItsKeys: without the keys that verify tokens there is no service.
func TestServeNeedsItsKeys(t *testing.T) {
	status, _, stderr := run("serve", "--upstream", "http://127.0.0.1:1", "--route", "POST /a", "--store", "memory:",
		"--principal", "jwt:iss+sub", "--jwks", "http://127.0.0.1:1/jwks", "--listen", "127.0.0.1:0", "--admin", "")
	if status != 1 || !strings.Contains(stderr, "\numavez: jwks: ") {
		t.Errorf("status %d, stderr %s", status, stderr)
	}
}

// TestMutualTLS: the caller is who the certificate names, verified by our own
// authority; nobody else is anybody.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	b, ca, other := newBank(t, false), newAuthority(t), newAuthority(t)
	args := principalArgs(b, "memory:", "mtls", "--client-ca", ca.caFile(t))
	p := start(t, append(args, ca.files(t, "server")...)...)
	ana := ca.client(t, true, ca.issue(t, "ana"))
	if a := attemptAs(t, ana, p, "", ""); a.status != http.StatusCreated || a.replayed() {
		t.Fatalf("first: %+v", a)
	}
	renewed := ca.client(t, false, ca.issue(t, "ana"))
	if a := attemptAs(t, renewed, p, "", ""); a.status != http.StatusCreated || !a.replayed() {
		t.Errorf("a renewed certificate: %+v, want the replay", a)
	}
	bia := ca.client(t, true, ca.issue(t, "bia"))
	if a := attemptAs(t, bia, p, "", ""); a.status != http.StatusCreated || a.replayed() {
		t.Errorf("another caller: %+v", a)
	}
	if a := attemptAs(t, ca.client(t, true), p, "", ""); a.status != http.StatusUnauthorized {
		t.Errorf("without a certificate: %+v, want 401", a)
	}
	thief := ca.client(t, true, other.issue(t, "ana"))
	if a, err := post(thief, p.URL+"/pagamentos", "k", `1`); err == nil {
		t.Errorf("a certificate of another authority: %+v, want a failed handshake", a)
	}
	if n := len(b.charges); n != 2 {
		t.Errorf("%d charges, want 2", n)
	}
}

// TestHeaderFromTrustedNetworksOnly: anybody can write a header.
func TestHeaderFromTrustedNetworksOnly(t *testing.T) {
	for network, want := range map[string]int{"127.0.0.0/8": http.StatusCreated, "10.0.0.0/8": http.StatusUnauthorized} {
		b := newBank(t, false)
		p := start(t, principalArgs(b, "memory:", "header:X-Tenant", "--trusted-proxy", network)...)
		if a := attemptAs(t, http.DefaultClient, p, "X-Tenant", "ana"); a.status != want {
			t.Errorf("trusting %s: %+v, want %d", network, a, want)
		}
		if a := attemptAs(t, http.DefaultClient, p, "", ""); a.status != http.StatusUnauthorized {
			t.Errorf("trusting %s, without the header: %+v, want 401", network, a)
		}
	}
}

// TestAuthRequest: another service says who the caller is, also for a replay.
func TestAuthRequest(t *testing.T) {
	who := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Cookie") {
		case "s=ana":
			w.Header().Set("X-Quem", "ana")
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(who.Close)
	b := newBank(t, false)
	yaml := filepath.Join(t.TempDir(), "umavez.yaml")
	if err := os.WriteFile(yaml, []byte("auth-header: x-quem\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, principalArgs(b, "memory:", "auth", "--auth-url", who.URL, "--config", yaml)...)
	if a := attemptAs(t, http.DefaultClient, p, "Cookie", "s=ana"); a.status != http.StatusCreated {
		t.Errorf("first: %+v", a)
	}
	if a := attemptAs(t, http.DefaultClient, p, "Cookie", "s=ana"); !a.replayed() {
		t.Errorf("retry: %+v, want the replay", a)
	}
	if a := attemptAs(t, http.DefaultClient, p, "Cookie", "s=logged-out"); a.status != http.StatusForbidden || a.replayed() {
		t.Errorf("logged out: %+v, want 403", a)
	}
}

// TestChangedPrincipalDoesNotStart: keys would silently become other keys. It
// starts again after somebody has accepted that, with a reason.
func TestChangedPrincipalDoesNotStart(t *testing.T) {
	t.Parallel()
	b, store := newBank(t, false), sqliteFile(t)
	start(t, principalArgs(b, store, "none")...).Kill()
	changed := append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", ""},
		principalArgs(b, store, "header:X-Tenant", "--trusted-proxy", "127.0.0.0/8")...)
	status, _, stderr := run(changed...)
	if status != 1 || !strings.Contains(stderr, `namespace "default" scopes its keys by "none", this process by "header:X-Tenant"`) ||
		!strings.Contains(stderr, "umavez namespace accept --reason") {
		t.Fatalf("status %d, stderr\n%s\nwant 1 and both recipes", status, stderr)
	}
	status, stdout, stderr := run("namespace", "accept", "--store", store, "--principal", "header:x-tenant", "--reason", "we have tenants now")
	if status != 0 || stdout != "namespace default now scopes its keys by header:X-Tenant\n" || stderr != "" {
		t.Fatalf("accept: status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	p := start(t, changed[5:]...)
	if a := attemptAs(t, http.DefaultClient, p, "X-Tenant", "ana"); a.status != http.StatusCreated {
		t.Errorf("after accepting: %+v", a)
	}
	// Another namespace in the same file is not concerned.
	start(t, principalArgs(b, store, "none", "--namespace", "other")...)
	if status, _, stderr := run("namespace", "accept", "--store", store, "--namespace", "nobody", "--principal", "none", "--reason", "x"); status != 1 || !strings.Contains(stderr, "nobody") {
		t.Errorf("a namespace that is not there: status %d, stderr %q", status, stderr)
	}
}

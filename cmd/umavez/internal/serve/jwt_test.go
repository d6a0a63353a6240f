package serve

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/umavez/umavez/umavezhttp"
)

// issuerKeys are an issuer's private keys, one of each kind, made once: an RSA
// key takes a while.
var issuerKeys = sync.OnceValue(func() (k struct {
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	ed  ed25519.PrivateKey
},
) {
	var err error
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		panic(err)
	}
	if k.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		panic(err)
	}
	if _, k.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		panic(err)
	}
	return k
})

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwks spells the public keys as their issuer publishes them.
func jwks(t *testing.T, extra ...map[string]string) []byte {
	t.Helper()
	k := issuerKeys()
	point, err := k.ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	keys := append([]map[string]string{
		{"kid": "r", "kty": "RSA", "use": "sig", "n": b64(k.rsa.N.Bytes()), "e": b64(big.NewInt(int64(k.rsa.E)).Bytes())},
		{"kid": "e", "kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
		{"kid": "o", "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": b64(k.ed.Public().(ed25519.PublicKey))},
	}, extra...)
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// claims are good ones, as of now.
func claims(now time.Time) jwt.MapClaims {
	return jwt.MapClaims{
		"iss": "https://id.example", "sub": "ana", "aud": "loja",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

func sign(t *testing.T, method jwt.SigningMethod, kid string, key any, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// fakeNow is a clock that a test moves.
type fakeNow struct{ at atomic.Int64 }

func newFakeNow() *fakeNow {
	f := new(fakeNow)
	f.at.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	return f
}

func (f *fakeNow) now() time.Time          { return time.Unix(0, f.at.Load()) }
func (f *fakeNow) advance(d time.Duration) { f.at.Add(int64(d)) }

func bearerRequest(values ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/pagamentos", nil)
	for _, v := range values {
		r.Header.Add("Authorization", v)
	}
	return r
}

func newTestTokens(t *testing.T, clock *fakeNow, p Principal) *tokens {
	t.Helper()
	keys, err := newKeySource(t.Context(), writeFile(t, "jwks.json", jwks(t)), clock.now, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return newTokens(keys, p, "loja", clock.now)
}

func TestTokensAccepted(t *testing.T) {
	clock := newFakeNow()
	v := newTestTokens(t, clock, Principal{Kind: PrincipalJWT, Issuer: "https://id.example", Claim: "sub"})
	k := issuerKeys()
	want := umavezhttp.PrincipalOf("jwt", "https://id.example", "ana")
	for _, c := range []struct {
		name, kid string
		method    jwt.SigningMethod
		key       crypto.PrivateKey
	}{
		{"RS256", "r", jwt.SigningMethodRS256, k.rsa},
		{"PS512", "r", jwt.SigningMethodPS512, k.rsa},
		{"ES256", "e", jwt.SigningMethodES256, k.ec},
		{"EdDSA", "o", jwt.SigningMethodEdDSA, k.ed},
		{"no key id", "", jwt.SigningMethodES256, k.ec},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := v.Principal(bearerRequest("Bearer " + sign(t, c.method, c.kid, c.key, claims(clock.now()))))
			if err != nil || got != want {
				t.Errorf("principal = %q, %v; want %q", got, err, want)
			}
		})
	}
	refreshed := claims(clock.now().Add(time.Second))
	got, err := v.Principal(bearerRequest("bearer " + sign(t, jwt.SigningMethodES256, "e", k.ec, refreshed)))
	if err != nil || got != want {
		t.Errorf("a refreshed token gave %q, %v; want the same caller %q", got, err, want)
	}
}

// TestTokensRefused: whatever is not proved is nobody.
func TestTokensRefused(t *testing.T) {
	clock := newFakeNow()
	v := newTestTokens(t, clock, Principal{Kind: PrincipalJWT, Issuer: "https://id.example", Claim: "sub"})
	k := issuerKeys()
	good := claims(clock.now())
	with := func(name string, value any) jwt.MapClaims {
		c := claims(clock.now())
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return c
	}
	es := func(c jwt.MapClaims) string { return sign(t, jwt.SigningMethodES256, "e", k.ec, c) }
	thief, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&k.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	parts := strings.Split(es(good), ".")
	other := strings.Split(es(with("sub", "bia")), ".")

	for name, token := range map[string]string{
		"alg none":                   sign(t, jwt.SigningMethodNone, "e", jwt.UnsafeAllowNoneSignatureType, good),
		"alg none, key id of RSA":    sign(t, jwt.SigningMethodNone, "r", jwt.UnsafeAllowNoneSignatureType, good),
		"alg NoNe":                   b64([]byte(`{"alg":"NoNe","kid":"e"}`)) + "." + parts[1] + ".",
		"HS256 with the public key":  sign(t, jwt.SigningMethodHS256, "r", public, good),
		"HS256 with the modulus":     sign(t, jwt.SigningMethodHS256, "r", k.rsa.N.Bytes(), good),
		"HS256 with an empty secret": hs256WithEmptySecret(good, t),
		"forged":                     sign(t, jwt.SigningMethodES256, "e", thief, good),
		"forged, key not known":      sign(t, jwt.SigningMethodES256, "x", thief, good),
		"forged, no key id":          sign(t, jwt.SigningMethodES256, "", thief, good),
		"key of another kind":        sign(t, jwt.SigningMethodES256, "r", k.ec, good),
		"another's claims":           parts[0] + "." + other[1] + "." + parts[2],
		"no signature":               parts[0] + "." + parts[1] + ".",
		"expired":                    es(with("exp", clock.now().Add(-time.Minute).Unix())),
		"never expires":              es(with("exp", nil)),
		"not yet":                    es(with("nbf", clock.now().Add(time.Minute).Unix())),
		"issued later":               es(with("iat", clock.now().Add(time.Minute).Unix())),
		"wrong issuer":               es(with("iss", "https://other.example")),
		"no issuer":                  es(with("iss", nil)),
		"wrong audience":             es(with("aud", "banco")),
		"no audience":                es(with("aud", nil)),
		"no subject":                 es(with("sub", nil)),
		"empty subject":              es(with("sub", "")),
		"subject is a number":        es(with("sub", 7)),
		"critical header":            critical(t, k.ec, good),
		"not a token":                "abc",
		"empty":                      "",
		"too long":                   es(with("x", strings.Repeat("x", maxToken))),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := v.Principal(bearerRequest("Bearer " + token)); !errors.Is(err, umavezhttp.ErrUnauthenticated) || got != "" {
				t.Errorf("principal = %q, %v; want %v", got, err, umavezhttp.ErrUnauthenticated)
			}
		})
	}
}

func TestTokensNeedOneAuthorizationField(t *testing.T) {
	clock := newFakeNow()
	v := newTestTokens(t, clock, Principal{Kind: PrincipalJWT, Claim: "sub"})
	token := sign(t, jwt.SigningMethodES256, "e", issuerKeys().ec, claims(clock.now()))
	for name, fields := range map[string][]string{
		"none":        nil,
		"two":         {"Bearer " + token, "Bearer " + token},
		"basic":       {"Basic YTpi"},
		"no scheme":   {token},
		"scheme only": {"Bearer"},
	} {
		if got, err := v.Principal(bearerRequest(fields...)); err == nil {
			t.Errorf("%s: accepted as %q", name, got)
		}
	}
}

// TestTokensKeepIssuersApart: equal subjects of two issuers are two callers.
func TestTokensKeepIssuersApart(t *testing.T) {
	clock := newFakeNow()
	v := newTestTokens(t, clock, Principal{Kind: PrincipalJWT, Claim: "sub"})
	seen := map[string]string{}
	for _, pair := range [][2]string{{"https://a.example", "bc"}, {"https://a.exampleb", "c"}, {"https://b.example", "bc"}} {
		c := claims(clock.now())
		c["iss"], c["sub"] = pair[0], pair[1]
		got, err := v.Principal(bearerRequest("Bearer " + sign(t, jwt.SigningMethodES256, "e", issuerKeys().ec, c)))
		if err != nil {
			t.Fatal(err)
		}
		if before, twice := seen[got]; twice {
			t.Errorf("%v and %s are both %q", pair, before, got)
		}
		seen[got] = pair[0] + " " + pair[1]
	}
}

// TestTokenErrorsHoldNoToken: errors are logged.
func TestTokenErrorsHoldNoToken(t *testing.T) {
	clock := newFakeNow()
	v := newTestTokens(t, clock, Principal{Kind: PrincipalJWT, Issuer: "https://other.example", Claim: "sub"})
	token := sign(t, jwt.SigningMethodES256, "e", issuerKeys().ec, claims(clock.now()))
	for _, text := range []string{token, token[:len(token)-8], "x" + token} {
		_, err := v.Principal(bearerRequest("Bearer " + text))
		if err == nil {
			t.Fatal("accepted")
		}
		for _, part := range strings.Split(token, ".") {
			if strings.Contains(err.Error(), part) {
				t.Errorf("the error shows a part of the token: %v", err)
			}
		}
		if strings.Contains(err.Error(), "ana") {
			t.Errorf("the error shows the caller: %v", err)
		}
	}
}

// hs256WithEmptySecret signs by hand: the library refuses to.
func hs256WithEmptySecret(c jwt.MapClaims, t *testing.T) string {
	t.Helper()
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	signed := b64([]byte(`{"alg":"HS256","kid":"r"}`)) + "." + b64(body)
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte(signed))
	return signed + "." + b64(mac.Sum(nil))
}

// critical names an extension that the verifier must understand or refuse.
func critical(t *testing.T, key *ecdsa.PrivateKey, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, c)
	token.Header["kid"], token.Header["crit"], token.Header["b64"] = "e", []string{"b64"}, false
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

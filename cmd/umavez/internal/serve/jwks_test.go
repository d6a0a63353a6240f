package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/umavez/umavez/umavezhttp"
)

// issuer serves a set of keys, counts the readings, and can be made to fail.
type issuer struct {
	*httptest.Server
	text  atomic.Value // []byte
	reads atomic.Int64
	down  atomic.Bool
}

func newIssuer(t *testing.T, text []byte) *issuer {
	t.Helper()
	i := new(issuer)
	i.text.Store(text)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.reads.Add(1)
		if i.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		w.Write(i.text.Load().([]byte))
	}))
	t.Cleanup(i.Close)
	return i
}

// newKey is a key that the issuer begins to use, and how it publishes it.
func newKey(t *testing.T, kid string) (*ecdsa.PrivateKey, map[string]string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return key, map[string]string{"kid": kid, "kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])}
}

func tokensFrom(t *testing.T, where string, clock *fakeNow) *tokens {
	t.Helper()
	keys, err := newKeySource(t.Context(), where, clock.now, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return newTokens(keys, Principal{Kind: PrincipalJWT, Claim: "sub"}, "", clock.now)
}

func accepts(t *testing.T, v *tokens, kid string, key *ecdsa.PrivateKey, clock *fakeNow) error {
	t.Helper()
	_, err := v.Principal(bearerRequest("Bearer " + sign(t, jwt.SigningMethodES256, kid, key, claims(clock.now()))))
	return err
}

// TestKeysAreCached: one reading serves every token.
func TestKeysAreCached(t *testing.T) {
	is, clock := newIssuer(t, jwks(t)), newFakeNow()
	v := tokensFrom(t, is.URL, clock)
	for range 50 {
		if err := accepts(t, v, "e", issuerKeys().ec, clock); err != nil {
			t.Fatal(err)
		}
	}
	if n := is.reads.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times, want once", n)
	}
}

// TestNewKeyIsFetched: a token under a key that the issuer has just begun to
// use is accepted, and an old key that it withdrew is not.
func TestNewKeyIsFetched(t *testing.T) {
	is, clock := newIssuer(t, jwks(t)), newFakeNow()
	v := tokensFrom(t, is.URL, clock)
	key, published := newKey(t, "new")
	text, err := json.Marshal(map[string]any{"keys": []any{published}})
	if err != nil {
		t.Fatal(err)
	}
	is.text.Store(text)
	clock.advance(jwksApart)
	if err := accepts(t, v, "new", key, clock); err != nil {
		t.Errorf("the new key's token: %v", err)
	}
	if err := accepts(t, v, "e", issuerKeys().ec, clock); err == nil {
		t.Error("the withdrawn key's token was accepted")
	}
}

// TestUnknownKeysAskRarely: forged tokens that name unknown keys do not become
// a flood of requests to the issuer.
func TestUnknownKeysAskRarely(t *testing.T) {
	is, clock := newIssuer(t, jwks(t)), newFakeNow()
	v := tokensFrom(t, is.URL, clock)
	for round := range 3 {
		clock.advance(jwksApart)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if accepts(t, v, "forged", issuerKeys().ec, clock) == nil {
					t.Error("accepted")
				}
			})
		}
		all.Wait()
		if n := is.reads.Load(); n != int64(round)+2 {
			t.Errorf("after %d rounds of forged tokens the issuer was asked %d times, want %d", round+1, n, round+2)
		}
	}
}

// TestKeysOutliveAnIssuersFault: the keys read before are used while the issuer
// is away, though not for ever.
func TestKeysOutliveAnIssuersFault(t *testing.T) {
	is, clock := newIssuer(t, jwks(t)), newFakeNow()
	v := tokensFrom(t, is.URL, clock)
	is.down.Store(true)
	v.keys.readAgain(t.Context(), 0)
	clock.advance(jwksStale)
	if err := accepts(t, v, "e", issuerKeys().ec, clock); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	clock.advance(time.Second)
	if err := accepts(t, v, "e", issuerKeys().ec, clock); !errors.Is(err, errKeysStale) || errors.Is(err, umavezhttp.ErrUnauthenticated) {
		t.Errorf("after the bound: %v, want %v", err, errKeysStale)
	}
	is.down.Store(false)
	clock.advance(jwksApart)
	if err := accepts(t, v, "e", issuerKeys().ec, clock); err != nil {
		t.Errorf("when the issuer is back: %v", err)
	}
}

// TestKeysFromAFileAreReadAgain: replacing the file is enough.
func TestKeysFromAFileAreReadAgain(t *testing.T) {
	clock := newFakeNow()
	file := writeFile(t, "jwks.json", jwks(t))
	v := tokensFrom(t, file, clock)
	key, published := newKey(t, "new")
	if err := os.WriteFile(file, jwks(t, published), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := accepts(t, v, "new", key, clock); err == nil {
		t.Error("read again within the bound")
	}
	clock.advance(jwksApart)
	if err := accepts(t, v, "new", key, clock); err != nil {
		t.Error(err)
	}
}

// TestKeysThatAreNone: what cannot verify a token is a reason not to start.
func TestKeysThatAreNone(t *testing.T) {
	oct := `{"kty":"oct","kid":"s","alg":"HS256","k":"c2VjcmV0"}`
	is := newIssuer(t, nil)
	is.down.Store(true)
	for name, c := range map[string]struct{ where, want string }{
		"missing file": {"/does/not/exist.json", "no such file"},
		"not JSON":     {writeFile(t, "a", []byte("keys")), "invalid character"},
		"no keys":      {writeFile(t, "b", []byte(`{"keys":[]}`)), "no public key"},
		"only secrets": {writeFile(t, "c", []byte(`{"keys":[`+oct+`]}`)), "no public key"},
		"too large":    {writeFile(t, "d", []byte(strings.Repeat(" ", maxJWKS+1))), "more than"},
		"issuer down":  {is.URL, "status 502"},
		"no issuer":    {"http://127.0.0.1:1/jwks", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newKeySource(t.Context(), c.where, time.Now, quiet())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "umavez: jwks") {
				t.Errorf("error %v, want umavez: jwks… %s", err, c.want)
			}
		})
	}
}

// TestKeysPassOverWhatOthersUse: unknown kinds, secrets and encryption keys in
// the set disturb nobody, and verify nothing.
func TestKeysPassOverWhatOthersUse(t *testing.T) {
	clock := newFakeNow()
	key, forEncryption := newKey(t, "enc")
	forEncryption["use"] = "enc"
	v := tokensFrom(t, writeFile(t, "jwks.json", jwks(t,
		map[string]string{"kty": "strange", "kid": "q"},
		map[string]string{"kty": "oct", "kid": "s", "k": "c2VjcmV0"},
		forEncryption)), clock)
	if err := accepts(t, v, "e", issuerKeys().ec, clock); err != nil {
		t.Error(err)
	}
	if err := accepts(t, v, "enc", key, clock); err == nil {
		t.Error("a key for encryption verified a token")
	}
	hs := sign(t, jwt.SigningMethodHS256, "s", []byte("secret"), claims(clock.now()))
	if _, err := v.Principal(bearerRequest("Bearer " + hs)); err == nil {
		t.Error("a secret from the set verified a token")
	}
}

// TestKeysAreReadFromTimeToTime runs the refresh in a bubble of virtual time.
func TestKeysAreReadFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		k := &keySource{where: "x", now: time.Now, log: quiet(), reading: make(chan struct{}, 1)}
		text := jwks(t)
		k.read = func(context.Context) ([]byte, error) { reads.Add(1); return text, nil }
		go k.Run(t.Context())
		<-time.After(3*jwksEvery + time.Second)
		if n := reads.Load(); n != 3 {
			t.Errorf("read %d times in %v, want 3", n, 3*jwksEvery)
		}
	})
}

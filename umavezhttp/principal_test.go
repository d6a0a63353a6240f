package umavezhttp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/umavez/umavez/internal/wire"
)

func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/pagamentos", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestF1_NoPrincipalIsAnErrorAtWiring(t *testing.T) {
	_, err := Options{Namespace: "loja"}.check()
	if err == nil || !strings.Contains(err.Error(), "Options.Principal") || !strings.Contains(err.Error(), "Anonymous") {
		t.Errorf("without a Principal: %v", err)
	}
	if _, err := (Options{Namespace: "loja", Principal: Anonymous}).check(); err != nil {
		t.Errorf("with Anonymous, chosen in words: %v", err)
	}
}

func TestF1_UnknownCallerIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name      string
		principal string
		err       error
		code      string
		status    int
	}{
		{"unauthenticated", "", ErrUnauthenticated, wire.CodeUnauthenticated, 401},
		{"unauthenticated, wrapped", "x", errors.Join(errors.New("expired"), ErrUnauthenticated), wire.CodeUnauthenticated, 401},
		// What a missing value in a context looks like: all callers would be one.
		{"empty", "", nil, wire.CodeUnauthenticated, 401},
		{"the lookup failed", "", errors.New("pq: no route to 10.0.0.7"), wire.CodeCallerUnavailable, 503},
	} {
		o := Options{Principal: func(*http.Request) (string, error) { return tc.principal, tc.err }}
		principal, p, ok := o.caller(request())
		if ok || principal != "" || p.Code != tc.code || p.Status != tc.status {
			t.Errorf("%s: %q, %d %s, %v", tc.name, principal, p.Status, p.Code, ok)
		}
		if strings.Contains(p.detail(english), "10.0.0.7") {
			t.Errorf("%s: the refusal tells of the inside: %s", tc.name, p.detail(english))
		}
	}
	o := Options{Principal: Anonymous}
	if principal, _, ok := o.caller(request()); !ok || principal == "" {
		t.Errorf("anonymous: %q, %v", principal, ok)
	}
}

func TestF2_BasicUser(t *testing.T) {
	r := request()
	r.SetBasicAuth("ana", "one")
	first, err := BasicUser(r)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("ana", "two, after a change")
	if again, err := BasicUser(r); err != nil || again != first {
		t.Errorf("with another password: %q, %v; first %q", again, err, first)
	}
	r.SetBasicAuth("Ana", "one")
	if other, err := BasicUser(r); err != nil || other == first {
		t.Errorf("Ana is ana: %q, %v", other, err)
	}
	for _, authorization := range []string{"", "Basic", "Basic !", "Bearer YW5hOm9uZQ==", "Basic Om9uZQ=="} {
		if p, err := BasicUser(request("Authorization", authorization)); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%q is the caller %q, %v", authorization, p, err)
		}
	}
}

func TestF2_APIKeyIsHashed(t *testing.T) {
	apiKey := APIKey("x-api-key")
	first, err := apiKey(request("X-Api-Key", "sk_live_segredo"))
	if err != nil || strings.Contains(first, "segredo") {
		t.Fatalf("the principal is %q, %v", first, err)
	}
	if again, _ := apiKey(request("X-Api-Key", "sk_live_segredo")); again != first {
		t.Errorf("the same key is %q and %q", first, again)
	}
	if other, _ := apiKey(request("X-Api-Key", "sk_live_outra")); other == first {
		t.Error("two keys are one caller")
	}
	for _, r := range []*http.Request{request(), request("X-Api-Key", ""), request("X-Api-Key", "a", "X-Api-Key", "a")} {
		if p, err := apiKey(r); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%v is the caller %q, %v", r.Header, p, err)
		}
	}
}

func TestF2_NeverTheBearerToken(t *testing.T) {
	for _, header := range []string{"Authorization", "authorization", "Proxy-Authorization", "Cookie", "no header", ""} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("APIKey(%q) is taken", header)
				}
			}()
			APIKey(header)
		}()
	}
}

func TestF2_JWTSubject(t *testing.T) {
	claims := func(issuer, subject string, err error) Principal {
		return JWTSubject(func(*http.Request) (string, string, error) { return issuer, subject, err })
	}
	// A refreshed token has the same issuer and subject: the retry is a retry.
	before, err := claims("https://id.example", "ana", nil)(request("Authorization", "Bearer aaa.bbb.ccc"))
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := claims("https://id.example", "ana", nil)(request("Authorization", "Bearer ddd.eee.fff")); after != before {
		t.Errorf("after a refresh ana is %q, before %q", after, before)
	}
	if other, _ := claims("https://id.examplea", "na", nil)(request()); other == before {
		t.Error("the parts of the principal run into each other")
	}
	for _, p := range []Principal{claims("", "ana", nil), claims("https://id.example", "", nil), claims("i", "s", ErrUnauthenticated)} {
		if got, err := p(request()); !errors.Is(err, ErrUnauthenticated) || got != "" {
			t.Errorf("half a claim is the caller %q, %v", got, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("JWTSubject(nil) is taken")
		}
	}()
	JWTSubject(nil)
}

func TestPrincipalOf(t *testing.T) {
	if anonymous != PrincipalOf("anonymous") {
		t.Errorf("anonymous is %q", anonymous)
	}
	seen := map[string][]string{}
	for _, parts := range [][]string{
		nil, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab"}, {"a,1:b"}, {"a,", "b"}, {"1:a,"}, {"a", "b", "c"}, {"a", "b,1:c"},
	} {
		p := PrincipalOf(parts...)
		if other, ok := seen[p]; ok {
			t.Errorf("%q and %q are one principal: %q", other, parts, p)
		}
		seen[p] = parts
	}
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/umavez/umavez/proxy"
	"github.com/umavez/umavez/umavezhttp"
)

// tokenAlgorithms are the only ones that count. All of them sign with a key
// that only the issuer has: no "none", and no HS*, under which anybody who
// knows the public key could sign with it as if it were a secret.
var tokenAlgorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
	"ES256", "ES384", "ES512", "EdDSA",
}

// tokenLeeway is how far the issuer's clock may be from ours.
const tokenLeeway = 30 * time.Second

// maxToken bounds what is looked at, in bytes.
const maxToken = 16 << 10

var (
	errNoToken    = errors.New("no bearer token")
	errCritical   = errors.New("the token has critical extensions")
	errManyTokens = errors.New("more than one Authorization field")
)

// tokens verifies bearer tokens and says whom they name. An identity counts
// only after that: a replay never reaches the application, so nobody behind us
// would notice a forged one. Rule F2.
type tokens struct {
	keys   *keySource
	parser *jwt.Parser
	claim  string
	recipe string
}

var _ proxy.Source = (*tokens)(nil)

func newTokens(keys *keySource, p Principal, audience string, now func() time.Time) *tokens {
	opts := []jwt.ParserOption{
		jwt.WithValidMethods(tokenAlgorithms),
		// A token that never ends would be an identity for ever.
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(tokenLeeway),
		jwt.WithTimeFunc(now),
		jwt.WithIssuedAt(),
	}
	if p.Issuer != "" {
		opts = append(opts, jwt.WithIssuer(p.Issuer))
	}
	if audience != "" {
		opts = append(opts, jwt.WithAudience(audience))
	}
	return &tokens{keys: keys, parser: jwt.NewParser(opts...), claim: p.Claim, recipe: p.Recipe()}
}

// Recipe implements proxy.Source.
func (t *tokens) Recipe() string { return t.recipe }

// Principal implements proxy.Source. It returns whom the request's token names: issuer and claim, so that
// two issuers' equal subjects are two callers. It never holds the token, which
// is another one after every refresh. An error names no part of the token; it
// is umavezhttp.ErrUnauthenticated, unless no token at all can be verified now.
func (t *tokens) Principal(r *http.Request) (string, error) {
	issuer, caller, err := t.verify(r)
	switch {
	case errors.Is(err, errKeysStale):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w: jwt: %w", umavezhttp.ErrUnauthenticated, err)
	}
	return umavezhttp.PrincipalOf("jwt", issuer, caller), nil
}

func (t *tokens) verify(r *http.Request) (issuer, caller string, err error) {
	text, err := bearer(r.Header)
	if err != nil {
		return "", "", err
	}
	claims := jwt.MapClaims{}
	if _, err := t.parser.ParseWithClaims(text, claims, t.keyFor(r.Context())); err != nil {
		return "", "", err
	}
	if issuer, err = nonEmpty(claims, "iss"); err != nil {
		return "", "", err
	}
	caller, err = nonEmpty(claims, t.claim)
	return issuer, caller, err
}

func (t *tokens) keyFor(ctx context.Context) jwt.Keyfunc {
	return func(token *jwt.Token) (any, error) {
		// Extensions that must be understood (RFC 7515, 4.1.11). We know none.
		if _, has := token.Header["crit"]; has {
			return nil, errCritical
		}
		return t.keys.key(ctx, token)
	}
}

// bearer takes the token out of the one Authorization field. With several, the
// application might believe another one than we verified.
func bearer(h http.Header) (string, error) {
	fields := h.Values("Authorization")
	if len(fields) > 1 {
		return "", errManyTokens
	}
	if len(fields) == 0 {
		return "", errNoToken
	}
	scheme, token, ok := strings.Cut(fields[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken {
		return "", errNoToken
	}
	return strings.TrimSpace(token), nil
}

// nonEmpty returns a claim that must be text. A number would be text in more
// than one spelling.
func nonEmpty(claims jwt.MapClaims, name string) (string, error) {
	text, _ := claims[name].(string)
	if text == "" {
		return "", fmt.Errorf("the token's %q is missing, empty or not text", name)
	}
	return text, nil
}

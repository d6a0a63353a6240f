package serve

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// PrincipalKind is a way to know who the caller is.
type PrincipalKind string

// The kinds, as --principal spells them.
const (
	PrincipalNone   PrincipalKind = "none"
	PrincipalMTLS   PrincipalKind = "mtls"
	PrincipalAuth   PrincipalKind = "auth"
	PrincipalHeader PrincipalKind = "header"
	PrincipalJWT    PrincipalKind = "jwt"
)

// Principal is the setting that says who the caller is.
type Principal struct {
	Kind PrincipalKind
	// Header is the canonical name of the header that names the caller: of the
	// request (kind header), or of the answer to the sub-request (kind auth).
	Header string
	// Issuer is the one accepted issuer; empty: any whose key is known. Kind jwt.
	Issuer string
	// Claim names the caller among the issuer's. Kind jwt.
	Claim string
}

// Recipe says in words how keys get their scope; the store keeps it for the
// namespace, and a process with another recipe does not start. Which issuer is
// accepted is not part of it: the principal is issuer and claim either way. It
// is the recipe of the source that newSource makes, known without the addresses
// and files that a source needs.
func (p Principal) Recipe() string {
	switch p.Kind {
	case PrincipalHeader, PrincipalAuth:
		return string(p.Kind) + ":" + p.Header
	case PrincipalJWT:
		return "jwt:iss+" + p.Claim
	default:
		return string(p.Kind)
	}
}

// principalForms is what an error offers.
const principalForms = "none, mtls, auth, header:NAME or jwt:ISS+SUB"

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	claimName  = regexp.MustCompile(`^[A-Za-z0-9_.:/-]+$`)
)

// credentials are headers that say how a caller proves who it is, and not who it
// is (rule F2): a token is refreshed and a session renewed at any time.
var credentials = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// parsePrincipal reads the setting. The namespace's recipe is made of it, so it
// accepts one spelling for each meaning.
func parsePrincipal(text string) (Principal, error) {
	kind, rest, more := strings.Cut(text, ":")
	p := Principal{Kind: PrincipalKind(kind)}
	switch {
	case !more && (p.Kind == PrincipalNone || p.Kind == PrincipalMTLS || p.Kind == PrincipalAuth):
		return p, nil
	case p.Kind == PrincipalHeader && more:
		if !headerName.MatchString(rest) {
			return p, usagef("--principal %s: %q is not a header's name", text, rest)
		}
		p.Header = http.CanonicalHeaderKey(rest)
		if slices.Contains(credentials, p.Header) {
			return p, usagef("--principal %s: a credential is not a caller: it changes between two attempts, and the retry would run again; take jwt:ISS+SUB, auth or a header that names the caller", text)
		}
		return p, nil
	case p.Kind == PrincipalJWT && more:
		return parseJWTPrincipal(text, rest)
	}
	return p, usagef("--principal %s: must be %s", text, principalForms)
}

// parseJWTPrincipal reads ISS+SUB. The last + divides, since an issuer is a URL
// and may hold one.
func parseJWTPrincipal(text, rest string) (Principal, error) {
	p := Principal{Kind: PrincipalJWT}
	plus := strings.LastIndexByte(rest, '+')
	if plus < 0 {
		return p, usagef("--principal %s: must be jwt:ISS+SUB, such as jwt:iss+sub", text)
	}
	issuer, claim := rest[:plus], rest[plus+1:]
	if !claimName.MatchString(claim) {
		return p, usagef("--principal %s: %q is not a claim's name", text, claim)
	}
	p.Claim = claim
	if issuer == "iss" {
		return p, nil
	}
	// An issuer is a URL nearly always. The rest of the check is for the slip of
	// naming a claim here, which would refuse every token.
	if !strings.ContainsAny(issuer, ":/.") {
		return p, usagef("--principal %s: %q is neither iss (any issuer whose key is known) nor an issuer such as https://id.example", text, issuer)
	}
	p.Issuer = issuer
	return p, nil
}

package umavezhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/textproto"
	"strconv"

	"github.com/umavez/umavez/internal/wire"
)

// Principal says who is calling: the account or tenant whose keys these are
// (rule F1). Two callers' equal keys are two keys, and a stored answer is given
// to its own caller only, so everything rests on this function.
//
// It must go by what an authentication outside of this middleware has *verified*
// and put into the request's context or headers, since a replay never reaches
// the application. What a client merely claims counts for nothing.
//
// It must return the same string on every attempt of one intent. A bearer token
// is not such a string: it is refreshed between attempts, and the retry would
// then run again (rule F2).
//
// [ErrUnauthenticated], or no error with the empty string (which is what a
// missing value in a context looks like), refuses the request with 401. Any
// other error refuses it with 503. Nothing is run in either case.
type Principal func(r *http.Request) (string, error)

// ErrUnauthenticated is what a [Principal] returns when the request has no
// authenticated caller.
var ErrUnauthenticated = errors.New("umavez: the request has no authenticated caller")

// anonymous is [PrincipalOf]("anonymous"), which no helper and no account
// returns by accident.
const anonymous = "9:anonymous,"

// Anonymous is the [Principal] of a service that does not tell callers apart:
// whoever sends a key that was used gets the answer that belongs to it. It is
// right where there is one caller, or where the keys themselves cannot be
// guessed and are shared with nobody. It must be chosen in words.
func Anonymous(*http.Request) (string, error) { return anonymous, nil }

// BasicUser is the [Principal] of services with Basic authentication: the user's
// name. The password must have been verified outside.
//
// The principal of ana is PrincipalOf("basic", "ana"), which is 5:basic,3:ana, in
// its stored form: whoever looks for her keys by name has to say so.
func BasicUser(r *http.Request) (string, error) {
	user, _, ok := r.BasicAuth()
	if !ok || user == "" {
		return "", ErrUnauthenticated
	}
	return PrincipalOf("basic", user), nil
}

// APIKey returns the [Principal] of services whose clients send an API key in
// the named header: the key's SHA-256, so that the key itself is kept nowhere.
// The key must have been verified outside. A rotated key is another caller; if
// that happens while requests are retried, use the account that it belongs to.
//
// It panics for Authorization, Proxy-Authorization and Cookie: what stands there
// is refreshed between attempts.
func APIKey(header string) Principal {
	name := textproto.CanonicalMIMEHeaderKey(header)
	switch {
	case !wire.IsToken(header):
		panic("umavez: APIKey: no header name: " + strconv.Quote(header))
	case name == "Authorization" || name == "Proxy-Authorization" || name == "Cookie":
		panic("umavez: APIKey: what is in " + name + " may be refreshed between attempts, and the retry would run again; " +
			"write a Principal that returns the account it was verified for")
	}
	return func(r *http.Request) (string, error) {
		// Two keys would leave it open which of them was verified.
		line, lines := fieldLine(r.Header, name)
		if lines != 1 || line == "" {
			return "", ErrUnauthenticated
		}
		sum := sha256.Sum256([]byte(line))
		return PrincipalOf("apikey", hex.EncodeToString(sum[:])), nil
	}
}

// JWTSubject returns the [Principal] of services that authenticate by JWT: the
// issuer and the subject of the token. verified returns the claims of the token
// that was *verified* for this request, signature, expiry and audience; it must
// not read them out of the header by itself.
func JWTSubject(verified func(r *http.Request) (issuer, subject string, err error)) Principal {
	if verified == nil {
		panic("umavez: JWTSubject: without a function")
	}
	return func(r *http.Request) (string, error) {
		issuer, subject, err := verified(r)
		switch {
		case err != nil:
			return "", err
		case issuer == "" || subject == "":
			return "", ErrUnauthenticated
		}
		return PrincipalOf("jwt", issuer, subject), nil
	}
}

// PrincipalOf makes one principal of several parts, such as a tenant and a user,
// in such a way that different parts never give the same one: each part is
// written as its length, a colon, the part and a comma.
func PrincipalOf(parts ...string) string {
	var b []byte
	for _, part := range parts {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(b, ':')
		b = append(b, part...)
		b = append(b, ',')
	}
	return string(b)
}

// caller asks the Principal, and turns its error into a refusal. The error's own
// text may tell of the service's inside and is not shown.
func (o *Options) caller(r *http.Request) (principal string, refusal Problem, ok bool) {
	principal, err := o.Principal(r)
	switch {
	case err == nil && principal != "":
		return principal, Problem{}, true
	case err == nil || errors.Is(err, ErrUnauthenticated):
		return "", problemFor(wire.CodeUnauthenticated), false
	default:
		return "", problemFor(wire.CodeCallerUnavailable), false
	}
}

package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"

	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// Source finds out who is calling (rule F2). An identity counts only after the
// source itself has verified it, since a replay never reaches the application:
// nobody behind the sidecar would notice a forged one.
//
// The sources of this package are [NoPrincipal], [MTLS], [FromHeader] and
// [AuthRequest]; a command line may add others, such as verified tokens.
type Source interface {
	// Recipe names how the caller is found, such as "mtls". All processes of a
	// namespace must use the same one: see umavezhttp.Options.Recipe.
	Recipe() string
	// Principal returns the caller of a request, the same one on every attempt
	// of an intent. It is asked before the key is looked up, also for a replay,
	// and must not read the body.
	//
	// umavezhttp.ErrUnauthenticated (or an empty principal) is answered with
	// 401, a [*Refused] with what it holds, and any other error with 503.
	// Nothing is run in any of these cases.
	Principal(r *http.Request) (string, error)
}

// Scrubber is a [Source] whose evidence stands in the request's headers, where
// anybody can write. Scrub removes it from a request that it does not believe,
// before the request is forwarded, enrolled route or not: the upstream sees
// every request come from the sidecar, and may believe the sidecar.
type Scrubber interface {
	Source
	Scrub(r *http.Request)
}

// Refused is an answer that a [Source] has for the client itself.
type Refused struct {
	Status int
	Header http.Header
	Body   []byte
}

// Error names the status.
func (e *Refused) Error() string {
	return fmt.Sprintf("umavez: the caller was refused with %d", e.Status)
}

// NoPrincipal returns the [Source] of a service that does not tell callers
// apart. It must be chosen in words: see umavezhttp.Anonymous.
func NoPrincipal() Source { return noPrincipal{} }

type noPrincipal struct{}

func (noPrincipal) Recipe() string { return "none" }

func (noPrincipal) Principal(r *http.Request) (string, error) { return umavezhttp.Anonymous(r) }

// tellsApart reports whether callers' equal keys are different keys. It goes by the
// recipe, which a Source that is put around another one keeps.
func tellsApart(s Source) bool { return s.Recipe() != noPrincipal{}.Recipe() }

// FromHeader returns the [Source] that takes the caller from a header which a
// gateway in front has set, after it authenticated the caller. It counts only
// when the request comes from one of the trusted networks: everybody else could
// write the header as well, and gets 401. The header is not forwarded for them.
//
// A gateway must replace the header, not add to it: two lines are refused.
func FromHeader(name string, trusted []netip.Prefix) (Source, error) {
	if !wire.IsToken(name) {
		return nil, fmt.Errorf("umavez: %q is no header name", name)
	}
	if len(trusted) == 0 {
		return nil, fmt.Errorf("umavez: principals from the header %s need the networks that may set it: "+
			"without them any client could be anybody", name)
	}
	return fromHeader{name: textproto.CanonicalMIMEHeaderKey(name), trusted: trusted}, nil
}

type fromHeader struct {
	name    string
	trusted []netip.Prefix
}

func (s fromHeader) Recipe() string { return "header:" + s.name }

func (s fromHeader) Principal(r *http.Request) (string, error) {
	// The reasons are for whoever sets a gateway up and sees nothing but 401. They
	// hold the connection's address, and nothing that the request says.
	lines := r.Header[s.name]
	switch {
	case !isTrusted(r, s.trusted):
		return "", fmt.Errorf("%w: it comes from %s, which is in no trusted network", umavezhttp.ErrUnauthenticated, r.RemoteAddr)
	case len(lines) != 1:
		return "", fmt.Errorf("%w: it has %d fields %s, want one", umavezhttp.ErrUnauthenticated, len(lines), s.name)
	case lines[0] == "":
		return "", fmt.Errorf("%w: %s is empty", umavezhttp.ErrUnauthenticated, s.name)
	}
	return umavezhttp.PrincipalOf("header", lines[0]), nil
}

// Scrub implements [Scrubber].
func (s fromHeader) Scrub(r *http.Request) {
	endToEnd(r.Header, func(name string) bool { return name == s.name })
	if !isTrusted(r, s.trusted) {
		r.Header.Del(s.name)
	}
}

// isTrusted reports whether the request's connection comes from one of the
// networks. Only the connection counts: X-Forwarded-For is what a client says.
func isTrusted(r *http.Request, networks []netip.Prefix) bool {
	peer, ok := peerOf(r)
	if !ok {
		return false
	}
	for _, n := range networks {
		if n.Contains(peer) {
			return true
		}
	}
	return false
}

// peerOf returns the address of the request's connection. One that came in as
// ::ffff:10.0.0.1 is 10.0.0.1, as networks are written.
func peerOf(r *http.Request) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.Unmap().WithZone(""), true
}

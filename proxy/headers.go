package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// hopByHop are the headers that belong to one connection (RFC 9110, 7.6.1).
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ownAnswerHeaders are what only the sidecar says, in answers (rule P6). A
// client that sends them could make an upstream that copies request headers
// into its answers say them.
var ownAnswerHeaders = []string{
	wire.IdempotentReplayed, wire.IdempotencyStatus, wire.IdempotencyExpires, wire.IdempotencyOutcome,
}

// removeHopByHop removes what belongs to the connection that h came on, and
// what its Connection header names.
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// endToEnd strikes the headers that are ours out of Connection. A header that is
// named there is removed on the way, so a client could otherwise take from the
// upstream what the sidecar says: where the request came from, who sent it, and
// its key.
func endToEnd(h http.Header, ours func(name string) bool) {
	lines := h["Connection"]
	for i, line := range lines {
		kept := make([]string, 0, 4)
		for option := range strings.SplitSeq(line, ",") {
			if !ours(textproto.CanonicalMIMEHeaderKey(textproto.TrimString(option))) {
				kept = append(kept, option)
			}
		}
		lines[i] = strings.Join(kept, ",")
	}
}

// isForwarding reports whether a header says where a request came from.
func isForwarding(name string) bool {
	return strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" || name == "X-Real-Ip"
}

// setForwarded tells the upstream where the request came from. What a trusted
// proxy in front says is kept and added to. What anybody else says is replaced,
// the headers of other conventions included: the upstream may believe them,
// since they now come from the sidecar.
func setForwarded(out http.Header, in *http.Request, trusted []netip.Prefix) {
	if !isTrusted(in, trusted) {
		for name := range out {
			if isForwarding(name) {
				delete(out, name)
			}
		}
	}
	peer, known := peerOf(in)
	if known {
		// A list of lines is one list (RFC 9110, 5.3); one line is understood by all.
		chain := append(out["X-Forwarded-For"][:len(out["X-Forwarded-For"]):len(out["X-Forwarded-For"])], peer.String())
		out.Set("X-Forwarded-For", strings.Join(chain, ", "))
	}
	if out.Get("X-Forwarded-Proto") == "" {
		out.Set("X-Forwarded-Proto", schemeOf(in))
	}
	if out.Get("X-Forwarded-Host") == "" && in.Host != "" {
		out.Set("X-Forwarded-Host", in.Host)
	}
	if lines := out["Forwarded"]; len(lines) > 0 && known {
		out["Forwarded"] = append(lines[:len(lines):len(lines)], forwardedElement(peer, in))
	}
}

// forwardedElement is this hop in the terms of RFC 7239.
func forwardedElement(peer netip.Addr, in *http.Request) string {
	node := peer.String()
	if peer.Is6() {
		node = `"[` + node + `]"`
	}
	return "for=" + node + ";proto=" + schemeOf(in)
}

// schemeOf is how the client spoke to the sidecar.
func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// hostOnly returns a Host without its port, in lower case and without the dot
// that may end a name: api.example, API.example:443 and api.example. are one host.
func hostOnly(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

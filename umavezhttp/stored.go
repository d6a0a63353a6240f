package umavezhttp

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// fieldKind says what a header field of an answer is about, as far as keeping
// it is concerned (rule A7).
type fieldKind uint8

const (
	// ofAnswer: about the answer. Kept.
	ofAnswer fieldKind = iota
	// ofMessage: about this message on this connection, or about this moment.
	// Never kept.
	ofMessage
	// ofCaller: about when and how the caller may come again. Never kept, but
	// passed to those who waited for an answer that is not kept.
	ofCaller
	// ofCookie: a session of the caller that asked first. Kept if the route says so.
	ofCookie
	// ofOrigin: about one origin. Kept with it, if at all.
	ofOrigin
)

// kindOf sorts a header field. Trailer is not among the hop-by-hop fields here:
// it announces the trailers of the replay, too.
func kindOf(name string) fieldKind {
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade",
		"Proxy-Authorization", "Content-Length", "Date", "Age", "Via",
		"Server-Timing", "Traceparent", "Tracestate", "X-Request-Id", "Alt-Svc", "Clear-Site-Data",
		wire.IdempotencyKey, wire.IdempotentReplayed, wire.IdempotencyStatus,
		wire.IdempotencyExpires, wire.PreferenceApplied:
		return ofMessage
	case "Www-Authenticate", "Proxy-Authenticate", "Authentication-Info",
		"Proxy-Authentication-Info", wire.RetryAfter:
		return ofCaller
	case "Set-Cookie":
		return ofCookie
	}
	switch {
	case strings.HasPrefix(name, "Access-Control-"):
		return ofOrigin
	case strings.HasPrefix(name, "Ratelimit"), strings.HasPrefix(name, "X-Ratelimit-"):
		return ofCaller
	case strings.HasPrefix(name, http.TrailerPrefix):
		return ofMessage // kept among the trailers
	}
	return ofAnswer
}

// keeps reports whether a field of an answer is kept. released: the answer is
// not stored, but passed to those who waited for it.
func (o *Once) keeps(name string, released bool) bool {
	switch kindOf(name) {
	case ofMessage:
		return false
	case ofCaller:
		return released
	case ofCookie:
		return o.route.KeepCookies && !released
	case ofOrigin:
		return o.opt.KeepCORS
	case ofAnswer:
	}
	// What a replay takes from its own request need not be kept.
	return len(o.route.Echo) == 0 || !slices.Contains(o.route.Echo, textproto.CanonicalMIMEHeaderKey(name))
}

// keptFields appends to list what is kept of an answer's fields: those that the
// handler itself set or changed. What stood in base before the handler ran was
// put there by somebody outside, who does so again on a replay. A field of base
// that the handler removed is kept as one without values.
func (o *Once) keptFields(list, fields []field, base http.Header, released bool) []field {
	start := len(list)
	perHop := connectionOptions(fields)
	for _, f := range fields {
		if !o.keeps(f.name, released) || len(perHop) > 0 && slices.ContainsFunc(perHop, f.named) {
			continue
		}
		if before, ok := base[f.name]; ok && slices.Equal(before, f.values) {
			continue
		}
		list = append(list, f)
	}
	for name, values := range base {
		if len(values) > 0 && o.keeps(name, released) && !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			list = append(list, field{name: name})
		}
	}
	sortFields(list[start:])
	return list
}

// connectionOptions are the fields that Connection names: they are about this
// hop only (RFC 9110, 7.6.1).
func connectionOptions(fields []field) (names []string) {
	for _, f := range fields {
		if f.named("Connection") {
			for _, v := range f.values {
				for name := range strings.SplitSeq(v, ",") {
					names = append(names, textproto.TrimString(name))
				}
			}
		}
	}
	return names
}

// named reports whether the field has this name, in whatever case.
func (f field) named(name string) bool { return strings.EqualFold(f.name, name) }

// value returns the first value of the field of this canonical name, or "".
func valueOf(fields []field, name string) string {
	for _, f := range fields {
		if f.name == name && len(f.values) > 0 {
			return f.values[0]
		}
	}
	return ""
}

// has reports whether there is a field of this canonical name, even if it has
// no values.
func has(fields []field, name string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.name == name })
}

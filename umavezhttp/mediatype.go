package umavezhttp

import (
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// mediaType is what of a request's Content-Type counts: type and charset. Other
// parameters do not, above all not a multipart boundary, which clients draw
// anew for each attempt.
type mediaType struct {
	// media and charset are parts of the header, in its own case.
	media, charset string
	boundary       string
	// raw holds the header's lines when they could not be understood; then they
	// count as they are.
	raw []string
}

// parseMediaType reads the lines of a Content-Type header. It does what
// mime.ParseMediaType does, but for escapes, and allocates nothing.
func parseMediaType(lines []string) mediaType {
	if len(lines) == 0 {
		return mediaType{}
	}
	misread := mediaType{raw: lines}
	if len(lines) > 1 {
		return misread
	}
	if lines[0] == "application/json" {
		return mediaType{media: lines[0]} // what most requests say: there is nothing to take apart
	}
	media, params, _ := strings.Cut(lines[0], ";")
	m := mediaType{media: strings.Trim(media, " \t")}
	major, minor, ok := strings.Cut(m.media, "/")
	if !ok || !wire.IsToken(major) || !wire.IsToken(minor) {
		return misread
	}
	for params != "" {
		var name, value string
		if name, value, params, ok = nextParameter(params); !ok {
			return misread
		}
		var field *string
		switch {
		case strings.EqualFold(name, "charset"):
			field = &m.charset
		case strings.EqualFold(name, "boundary"):
			field = &m.boundary
		default:
			continue
		}
		// Named twice, or empty, it means this to one reader and that to another.
		if *field != "" || value == "" {
			return misread
		}
		*field = value
	}
	return m
}

// nextParameter reads one parameter, up to and with the semicolon after it. An
// empty one, as after a last semicolon, has no name.
func nextParameter(s string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	if s == "" {
		return "", "", "", true
	}
	if s[0] == ';' {
		return "", "", s[1:], true
	}
	name, s, ok = strings.Cut(s, "=")
	if !ok || !wire.IsToken(name) {
		return "", "", "", false
	}
	if strings.HasPrefix(s, `"`) {
		value, rest, ok = strings.Cut(s[1:], `"`)
		if !ok || strings.Contains(value, `\`) {
			return "", "", "", false
		}
		rest = strings.TrimLeft(rest, " \t")
		if rest != "" && rest[0] != ';' {
			return "", "", "", false
		}
		return name, value, strings.TrimPrefix(rest, ";"), true
	}
	value, rest, _ = strings.Cut(s, ";")
	value = strings.TrimRight(value, " \t")
	return name, value, rest, wire.IsToken(value)
}

// append adds what counts to a message.
func (m mediaType) append(b []byte) []byte {
	if m.raw != nil {
		b = append(b, 0) // which begins no media type
		for _, line := range m.raw {
			b = appendPart(b, line)
		}
		return b
	}
	b = appendLower(b, m.media)
	if m.charset != "" {
		b = append(b, ';')
		b = appendLower(b, m.charset)
	}
	return b
}

// isJSON reports whether the body is JSON whose strings may be compared by
// value. In a charset other than UTF-8, its bytes mean something else.
func (m mediaType) isJSON() bool {
	const suffix = "+json"
	n := len(m.media) - len(suffix)
	return (strings.EqualFold(m.media, "application/json") || n > 0 && strings.EqualFold(m.media[n:], suffix)) &&
		(m.charset == "" || strings.EqualFold(m.charset, "utf-8") || strings.EqualFold(m.charset, "us-ascii"))
}

func (m mediaType) isMultipart() bool {
	const prefix = "multipart/"
	return m.boundary != "" && len(m.media) > len(prefix) && strings.EqualFold(m.media[:len(prefix)], prefix)
}

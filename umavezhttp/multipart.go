package umavezhttp

import (
	"bytes"
	"encoding/binary"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// maxMIMEHeaders is how many header lines a part may have; clients send two or
// three. It bounds the work for a byte.
const maxMIMEHeaders = 32

// appendMultipart appends the canonical form of a multipart body: each part's
// name, file name, type, other headers and bytes, in order, and not the boundary
// (rule F5). Header names count without their case and their order; that a value
// is quoted or not makes no difference in Content-Disposition.
//
// It is stricter than mime/multipart. Where readers disagree about what the
// parts are (a preamble, bare line feeds, folded headers, something that begins
// like the boundary) the body has no canonical form, and false is returned.
func appendMultipart(out, body []byte, boundary string) ([]byte, bool) {
	if !isBoundary(boundary) {
		return out, false
	}
	var array [4 + 70]byte
	delimiter := append(append(array[:0], "\r\n--"...), boundary...)
	rest, ok := bytes.CutPrefix(body, delimiter[2:])
	if !ok {
		return out, false
	}
	for {
		if tail, last := bytes.CutPrefix(rest, []byte("--")); last {
			return out, len(tail) == 0 || string(tail) == "\r\n"
		}
		if rest, ok = bytes.CutPrefix(rest, []byte("\r\n")); !ok {
			return out, false
		}
		var headers mimeHeaders
		if rest, ok = headers.read(rest, delimiter[2:]); !ok {
			return out, false
		}
		content, after, ok := bytes.Cut(rest, delimiter)
		// An empty part whose delimiter shares its line end with the headers.
		if !ok || bytes.HasPrefix(content, delimiter[2:]) {
			return out, false
		}
		if out, ok = headers.append(out); !ok {
			return out, false
		}
		out = binary.AppendUvarint(out, uint64(len(content)))
		out = append(out, content...)
		rest = after
	}
}

// isBoundary checks a boundary by RFC 2046, 5.1.1.
func isBoundary(s string) bool {
	if len(s) < 1 || len(s) > 70 || s[len(s)-1] == ' ' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && strings.IndexByte("'()+_,-./:=? ", c) < 0 {
			return false
		}
	}
	return true
}

// mimeHeaders are the header lines of one part.
type mimeHeaders struct {
	lines [maxMIMEHeaders]mimeHeader
	n     int
}

type mimeHeader struct{ name, value string }

// read reads header lines and the empty line after them. A line that begins like
// the boundary ends the part for one reader and is a header for another.
func (p *mimeHeaders) read(b, boundary []byte) (rest []byte, ok bool) {
	for {
		line, rest, ok := bytes.Cut(b, []byte("\r\n"))
		switch {
		case !ok || bytes.ContainsAny(line, "\r\n\x00") || bytes.HasPrefix(line, boundary):
			return nil, false
		case len(line) == 0:
			return rest, true
		case p.n == maxMIMEHeaders:
			return nil, false
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || !wire.IsToken(name) { // a folded line begins with a space
			return nil, false
		}
		p.lines[p.n] = mimeHeader{strings.ToLower(name), strings.Trim(value, " \t")}
		p.n++
		b = rest
	}
}

// append appends the headers' canonical form: how many, and each with its name
// and value, sorted by name.
func (p *mimeHeaders) append(out []byte) ([]byte, bool) {
	lines := p.lines[:p.n]
	slices.SortStableFunc(lines, func(a, b mimeHeader) int { return strings.Compare(a.name, b.name) })
	out = binary.AppendUvarint(out, uint64(len(lines)))
	for i, line := range lines {
		// What stands there twice is read this way by one and that way by another.
		if i > 0 && line.name == lines[i-1].name {
			return out, false
		}
		out = appendPart(out, line.name)
		if line.name != "content-disposition" {
			out = appendPart(out, line.value)
			continue
		}
		var ok bool
		if out, ok = appendDisposition(out, line.value); !ok {
			return out, false
		}
	}
	return out, true
}

// appendDisposition appends a Content-Disposition, its parameters (name and file
// name among them) sorted. One with escapes or extended parameters, which
// readers decode in different ways, counts as it is written.
func appendDisposition(out []byte, value string) ([]byte, bool) {
	if strings.ContainsAny(value, `\*`) {
		return appendPart(append(out, 0), value), true
	}
	kind, params, err := mime.ParseMediaType(value)
	if err != nil {
		return out, false
	}
	out = appendPart(append(out, 1), kind)
	out = binary.AppendUvarint(out, uint64(len(params)))
	for _, name := range slices.Sorted(maps.Keys(params)) {
		out = appendPart(out, name)
		out = appendPart(out, params[name])
	}
	return out, true
}

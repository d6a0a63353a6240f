package umavezhttp

import (
	"net/http"
	"strings"
)

// The forms in which a body is hashed.
const (
	formRaw       = 'r' // as received, or as decoded (rules F4, F6, F7)
	formJSON      = 'j' // canonical JSON (rule F4)
	formMultipart = 'm' // the parts, without the boundary (rule F5)
)

// appendBody adds to the open part what counts of a body. Whatever cannot be
// understood in full counts byte by byte: that refuses a retry too many at
// worst, where guessing would give one request the answer of another.
func (f *fingerprinter) appendBody(h *hasher, r *http.Request, media mediaType, body []byte) {
	coding := contentCoding(r.Header["Content-Encoding"])
	if f.opt.Raw {
		h.body(formRaw, coding, body)
		return
	}
	if coding != "" {
		decoded, ok := h.decoder.decode(coding, body, f.decodedLimit(len(body)))
		if !ok {
			h.body(formRaw, coding, body)
			return
		}
		body = decoded
	}
	switch {
	case len(body) == 0:
		// Nothing to understand: the parsers below would call it malformed.
	case media.isJSON():
		if canonical, ok := h.json.canonical(body, f.exclude); ok {
			h.body(formJSON, "", canonical)
			return
		}
	case media.isMultipart():
		var ok bool
		if h.form, ok = appendMultipart(h.form[:0], body, media.boundary); ok {
			h.body(formMultipart, "", h.form)
			return
		}
	}
	h.body(formRaw, "", body)
}

// contentCoding returns the coding of a body in lower case, "" for none. More
// than one is a coding that nothing here knows.
func contentCoding(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	coding := strings.ToLower(strings.TrimSpace(strings.Join(lines, ",")))
	if coding == "identity" {
		return ""
	}
	return coding
}

// decodedLimit is how much a body of n bytes may be decoded to (rule F7).
func (f *fingerprinter) decodedLimit(n int) int64 {
	return min(f.opt.MaxDecoded, int64(n)*int64(f.opt.MaxRatio))
}

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// This file reads forms for where they stand, and gives each blank its place. A
// form in which a value could change more than itself is refused here, when the
// sidecar starts: one that chooses the host, a parameter's name or a member's, or
// stands where nobody could tell how to spell it.

// parseURLForm reads the form of an absolute URL.
func parseURLForm(text string) (form, *url.URL, error) {
	f, err := parseForm(text)
	if err != nil {
		return nil, nil, err
	}
	first := ""
	if len(f) > 0 {
		first = f[0].text
	}
	scheme, rest, ok := strings.Cut(first, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return nil, nil, errors.New("it must begin with http://HOST or https://HOST, and no value may stand there")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 && len(f) > 1 {
		return nil, nil, errors.New("its host must be written out: no value may be a part of it")
	}
	if end >= 0 {
		rest = rest[:end]
	}
	if rest == "" || strings.Contains(rest, "@") {
		return nil, nil, errors.New("it must name a host, without a user: credentials go into a header")
	}
	if err := f.placeInURL(len(scheme) + len("://") + len(rest)); err != nil {
		return nil, nil, err
	}
	u, err := url.Parse(f.sampled(sampleWord))
	if err != nil {
		return nil, nil, errors.New("it is no URL")
	}
	if u.Host != rest {
		return nil, nil, errors.New("its host must be written out: no value may be a part of it")
	}
	return f, u, checkSegments(u.EscapedPath())
}

// sampleWord fills in what any value looks like once it is spelled for a URL or
// a header.
func sampleWord(*blank) string { return "x" }

// placeInURL gives the blanks of a URL, or of a posted form, their places. What
// comes before the first from bytes is not looked at.
func (f form) placeInURL(from int) error {
	query, afterEqual := false, false
	for i := range f {
		if b := f[i].blank; b != nil {
			switch {
			case !query:
				b.at = inPath
			case !afterEqual:
				return fmt.Errorf("%s: in a query a value stands after NAME=", b.shown)
			default:
				b.at = inQuery
			}
			continue
		}
		text := f[i].text
		text, from = text[min(from, len(text)):], max(from-len(text), 0)
		for j := range len(text) {
			switch c := text[j]; {
			case c == '#':
				return errors.New("a fragment is not sent: write # as %23")
			case c == '?' && !query:
				query, afterEqual = true, false
			case c == '&' && query:
				afterEqual = false
			case c == '=' && query:
				afterEqual = true
			case !isUnreserved(c) && !strings.ContainsRune(":/?[]@!$&'()*+,;=%", rune(c)):
				return fmt.Errorf("%q cannot stand in a URL; write its code", string(c))
			}
		}
	}
	return nil
}

// notAsked are headers that belong to a connection or a message, and not to what
// is asked or answered.
var notAsked = append([]string{"Host", "Content-Length", "Expect", "Accept-Encoding", "Content-Encoding"}, hopByHop...)

// headerForm is a header field with blanks.
type headerForm struct {
	name string
	form form
}

// parseHeaderForms reads fields, in the order of their names.
func parseHeaderForms(fields map[string]string, refused []string) ([]headerForm, error) {
	all := make([]headerForm, 0, len(fields))
	for written, text := range fields {
		name := textproto.CanonicalMIMEHeaderKey(written)
		if !wire.IsToken(written) || slices.Contains(refused, name) {
			return nil, fmt.Errorf("%q cannot be set", written)
		}
		if slices.ContainsFunc(all, func(h headerForm) bool { return h.name == name }) {
			return nil, fmt.Errorf("%q stands there twice", name)
		}
		f, err := parseHeaderForm(name, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, headerForm{name, f})
	}
	slices.SortFunc(all, func(a, b headerForm) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// parseHeaderForm reads one value. In a header that is an address, values are
// spelled as in a URL.
func parseHeaderForm(name, text string) (form, error) {
	f, err := parseForm(text)
	if err != nil {
		return nil, err
	}
	for _, b := range f.blanks() {
		b.at = inHeader
	}
	if sample := f.sampled(sampleWord); !wire.IsFieldText(sample) || sample != strings.TrimSpace(sample) {
		return nil, errors.New("it holds what cannot stand in a header")
	}
	if (name != "Location" && name != "Content-Location") || len(f.blanks()) == 0 {
		return f, nil
	}
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") {
		return f, f.placeInURL(0)
	}
	f, _, err = parseURLForm(text)
	return f, err
}

// fill returns the field's value.
func (h *headerForm) fill(from *facts) (string, error) {
	text, err := h.form.fill(from)
	switch {
	case err != nil:
		return "", err
	case text != strings.TrimSpace(text):
		// A reader takes the spaces off, and has another value.
		return "", errHeader
	case len(h.form.blanks()) > 0 && h.form.blanks()[0].at != inHeader:
		path, _, _ := strings.Cut(text, "?")
		return text, checkSegments(path)
	}
	return text, nil
}

// parseBodyForm reads a body for its media type.
func parseBodyForm(media, text string) (form, error) {
	f, err := parseForm(text)
	if err != nil {
		return nil, err
	}
	base, _, err := mime.ParseMediaType(media)
	if err != nil || !strings.Contains(base, "/") {
		return nil, fmt.Errorf("its Content-Type %q is no media type", media)
	}
	switch {
	case base == "application/json" || strings.HasSuffix(base, "+json"):
		return f, f.placeInJSON()
	case base == "application/x-www-form-urlencoded":
		// As the query of a URL, whose path this is not.
		whole := append(form{{text: "?"}}, f...)
		return f, whole.placeInURL(0)
	case len(f.blanks()) > 0 && base != "text/plain":
		return nil, fmt.Errorf("it is not known how a value is spelled in %s: "+
			"values stand in JSON, in a posted form or in text/plain", base)
	}
	return f, nil
}

// placeInJSON gives the blanks of a JSON document their places.
func (f form) placeInJSON() error {
	inText, escaped := false, false
	for i := range f {
		if b := f[i].blank; b != nil {
			if b.at = inJSON; inText {
				b.at = inJSONString
			}
			if escaped {
				return fmt.Errorf("%s: a backslash stands before it", b.shown)
			}
			continue
		}
		for j := range len(f[i].text) {
			switch c := f[i].text[j]; {
			case escaped:
				escaped = false
			case c == '\\' && inText:
				escaped = true
			case c == '"':
				inText = !inText
			}
		}
	}
	// A value may be of any kind, so the document has to hold with each.
	for _, kind := range []string{"0", `"` + sampleText + `"`} {
		document := f.sampled(func(b *blank) string {
			if b.at == inJSONString {
				return sampleText
			}
			return kind
		})
		if !json.Valid([]byte(document)) {
			return errors.New("with its values filled in it is no JSON")
		}
		if namesMember([]byte(document), sampleText) {
			return errors.New("no value may name a member")
		}
	}
	return nil
}

// sampleText is a text that no form has by itself.
const sampleText = "umavez-sample-5fd1"

// namesMember reports whether a member of an object has such a name.
func namesMember(document []byte, part string) bool {
	found := false
	var walk func(raw json.RawMessage)
	walk = func(raw json.RawMessage) {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch raw = bytes.TrimSpace(raw); {
		case raw[0] == '{' && json.Unmarshal(raw, &object) == nil:
			for name, value := range object {
				found = found || strings.Contains(name, part)
				walk(value)
			}
		case raw[0] == '[' && json.Unmarshal(raw, &array) == nil:
			for _, value := range array {
				walk(value)
			}
		}
	}
	walk(document)
	return found
}

// mediaOf returns the Content-Type among fields, or otherwise.
func mediaOf(fields []headerForm, otherwise string) (string, error) {
	for _, h := range fields {
		if h.name != "Content-Type" {
			continue
		}
		text, ok := h.form.literal()
		if !ok {
			return "", errors.New("no value may stand in Content-Type")
		}
		return text, nil
	}
	return otherwise, nil
}

// fillHeaders fills fields in.
func fillHeaders(fields []headerForm, from *facts) (http.Header, error) {
	h := make(http.Header, len(fields))
	for i := range fields {
		text, err := fields[i].fill(from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fields[i].name, err)
		}
		h[fields[i].name] = []string{text}
	}
	return h, nil
}

package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// place says where in a form a value stands, and so how it is spelled.
type place uint8

const (
	bare         place = iota // compared, or in a plain text: as it is
	inPath                    // a path segment of a URL, or a part of one
	inQuery                   // the value of a parameter, in a URL or a posted form
	inHeader                  // a header's value, or a part of it
	inJSON                    // a value of JSON
	inJSONString              // within the quotes of a text of JSON
)

// facts are what values are taken from.
type facts struct {
	id, route string
	derived   func(step string) string
	// kept is set when the request was kept.
	kept *keptFacts
	// response is the body of the foreign system's answer, once there is one.
	response []byte
}

// keptFacts are what is used of a kept request.
type keptFacts struct {
	key, sentKey, principal string
	body                    []byte
}

var (
	errNotKept = errors.New("the request was not kept")
	errEmpty   = errors.New("it is empty, which would make it another address")
	errHeader  = errors.New("it holds what cannot stand in a header")
)

// read returns the value as JSON.
func (b *blank) read(from *facts) (json.RawMessage, error) {
	if b.from.needsRequest() && from.kept == nil {
		return nil, errNotKept
	}
	switch b.from {
	case fromKey:
		return jsonText(from.kept.key)
	case fromSentKey:
		return jsonText(from.kept.sentKey)
	case fromPrincipal:
		return jsonText(from.kept.principal)
	case fromID:
		return jsonText(from.id)
	case fromRoute:
		return jsonText(from.route)
	case fromDerived:
		return jsonText(from.derived(b.arg))
	case fromEnv:
		return jsonText(b.arg)
	case fromField:
		return mustFind(from.kept.body, b.path)
	case fromResponse:
		return mustFind(from.response, b.path)
	}
	return nil, errNoValue
}

func mustFind(document []byte, path []string) (json.RawMessage, error) {
	value, found, err := find(document, path)
	if err == nil && !found {
		err = errNoValue
	}
	return value, err
}

// spell returns the value as it stands in its place. No value can end its place:
// what would is spelled differently there, or is an error.
func (b *blank) spell(from *facts) (string, error) {
	value, err := b.read(from)
	if err != nil {
		return "", err
	}
	if b.at == inJSON {
		if value[0] == '"' {
			// Written anew: what one reader takes for half a character, another
			// may refuse.
			text, err := textOf(value)
			if err != nil {
				return "", err
			}
			value, err = jsonText(text)
			return string(value), err
		}
		return string(value), nil
	}
	text, err := textOf(value)
	if err != nil {
		return "", err
	}
	switch b.at {
	case inPath, inQuery:
		if text == "" {
			return "", errEmpty
		}
		return percent(text), nil
	case inHeader:
		if !wire.IsFieldText(text) {
			return "", errHeader
		}
	case inJSONString:
		quoted, err := jsonText(text)
		if err != nil {
			return "", err
		}
		return string(quoted[1 : len(quoted)-1]), nil
	case bare, inJSON:
	}
	return text, nil
}

// percent spells a value for a URL: everything but the unreserved characters of
// RFC 3986 (2.3) by its code, so that nothing of it can mean anything there.
func percent(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if isUnreserved(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// checkSegments refuses a path in which a segment has come to mean "here" or
// "the one above", which servers and proxies resolve.
func checkSegments(path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return fmt.Errorf("the path segment %q means another path", segment)
		}
	}
	return nil
}

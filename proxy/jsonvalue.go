package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Values of JSON are kept as the text that they were written in. A number that
// went through a float64 would be another one (9007199254740993), and a text that
// two readers could understand in two ways is an error: the foreign system, the
// upstream and this process must speak of the same payment.

var (
	errNotJSON   = errors.New("it is no JSON document that everybody reads alike")
	errNoValue   = errors.New("there is no such value")
	errNotScalar = errors.New("it is neither a text nor a number nor a boolean")
)

// parsePointer takes a JSON pointer (RFC 6901) apart. The empty pointer is the
// whole document.
func parsePointer(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' || !utf8.ValidString(text) {
		return nil, fmt.Errorf("%q is no JSON pointer such as /data/0/id", text)
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		rest := token
		for {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				break
			}
			if after == "" || after[0] != '0' && after[0] != '1' {
				return nil, fmt.Errorf("%q has a ~ that is followed by neither 0 nor 1", text)
			}
			rest = after[1:]
		}
		// In this order: "~01" is "~1", not "/".
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// find returns the value at a pointer in a JSON document. There is none where a
// member or an element is missing. A document that is not valid, or an object on
// the way with two members of one name, is errNotJSON.
func find(document []byte, path []string) (value json.RawMessage, found bool, err error) {
	if !utf8.Valid(document) || !json.Valid(document) {
		return nil, false, errNotJSON
	}
	value = bytes.TrimSpace(document)
	for _, name := range path {
		if value, found, err = child(value, name); err != nil || !found {
			return nil, false, err
		}
	}
	return value, true, nil
}

// child returns a member of an object, or an element of an array.
func child(value json.RawMessage, name string) (json.RawMessage, bool, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	opening, err := d.Token()
	if err != nil {
		return nil, false, errNotJSON
	}
	var found json.RawMessage
	switch opening {
	case json.Delim('{'):
		for d.More() {
			var member json.RawMessage
			token, err := d.Token()
			if err == nil {
				err = d.Decode(&member)
			}
			if err != nil {
				return nil, false, errNotJSON
			}
			if token == name {
				if found != nil {
					return nil, false, fmt.Errorf("%w: it has two members %q in one object", errNotJSON, name)
				}
				found = member
			}
		}
	case json.Delim('['):
		index, ok := parseIndex(name)
		if !ok {
			return nil, false, nil
		}
		for i := uint64(0); d.More() && i <= index; i++ {
			var element json.RawMessage
			if err := d.Decode(&element); err != nil {
				return nil, false, errNotJSON
			}
			if i == index {
				found = element
			}
		}
	}
	return found, found != nil, nil
}

// parseIndex reads a pointer's token as the index of an element. Neither 01 nor
// +1 is one.
func parseIndex(name string) (index uint64, ok bool) {
	index, err := strconv.ParseUint(name, 10, 31)
	return index, err == nil && strconv.FormatUint(index, 10) == name
}

// textOf returns a scalar as text: a text without its quotes, a number as it was
// written, true or false.
func textOf(value json.RawMessage) (string, error) {
	if len(value) == 0 {
		return "", errNoValue
	}
	switch value[0] {
	case '{', '[', 'n':
		return "", errNotScalar
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return "", errNotJSON
		}
		// It stands for what is no character, too, such as half of a pair.
		if strings.ContainsRune(s, utf8.RuneError) {
			return "", errNotJSON
		}
		return s, nil
	}
	return string(value), nil
}

// jsonText spells a text as JSON, quotes included.
func jsonText(s string) (json.RawMessage, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("it is not UTF-8")
	}
	text, err := json.Marshal(s)
	return text, err
}

// equalJSON reports whether two scalars are the same: texts by their characters,
// numbers by their value, as far as a float64 is exact about it, and else by how
// they are written. Values of different kinds differ.
func equalJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	switch {
	case a[0] == '"' || b[0] == '"':
		s, err := textOf(a)
		t, err2 := textOf(b)
		return a[0] == b[0] && err == nil && err2 == nil && s == t
	case isNumber(a) && isNumber(b) && max(len(a), len(b)) <= exactDigits:
		x, err := strconv.ParseFloat(string(a), 64)
		y, err2 := strconv.ParseFloat(string(b), 64)
		return err == nil && err2 == nil && x == y
	}
	return bytes.Equal(a, b)
}

// exactDigits is how many decimal digits a float64 always keeps apart.
const exactDigits = 15

func isNumber(v json.RawMessage) bool { return v[0] == '-' || v[0] >= '0' && v[0] <= '9' }

package wire

import "strings"

// MaxKey is the longest key, in bytes after unescaping (rule K6). A UUID has 36;
// 255 leaves room for composed keys and still fits any index.
const MaxKey = 255

// KeyFault says what is wrong with a key field.
type KeyFault uint8

// The faults. Every one of them is answered with 400 and never taken for "no
// key": a client that sends a key relies on it.
const (
	// KeyEmpty: nothing, only white space, or a quoted string of only spaces.
	KeyEmpty KeyFault = iota + 1
	// KeyTooLong: more than MaxKey bytes after unescaping.
	KeyTooLong
	// KeyBadByte: a byte that may not stand where it stands.
	KeyBadByte
	// KeyUnclosed: a quoted key whose closing quote is missing.
	KeyUnclosed
	// KeyTrailing: after the closing quote comes what is no parameter.
	KeyTrailing
)

// KeyError says why a field value is no key, and where. It quotes at most one
// byte of the value, so that it may be shown to the client and logged.
type KeyError struct {
	Fault KeyFault
	// At is the offset of the fault in the field value, in bytes from 0.
	At int
	// Byte is the offending byte, for KeyBadByte.
	Byte byte
}

var keyFaultNames = [...]string{
	"no fault", "the key is empty", "the key is too long", "a byte is not allowed there",
	"the closing quote is missing", "something other than a parameter follows the closing quote",
}

// Error names the fault in English, without the place.
func (e *KeyError) Error() string { return "umavez: " + keyFaultNames[e.Fault] }

// ParseKey reads the value of one key field (rules K3, K4, K6): a String of RFC
// 9651, in quotes, or a bare run of 0x21–0x7E without quote, comma, semicolon
// and backslash. "abc" and abc are the same key. Parameters after a quoted key
// must be well formed and are then ignored.
//
// It is deliberately not "String or Token": a UUID is a Token only when it
// begins with a letter, so ten of sixteen would be refused.
//
// A bare or unescaped key is a part of the value: nothing is allocated. The
// error is always a [*KeyError].
func ParseKey(value string) (string, error) {
	// What surrounds the value is no part of it (RFC 9110, 5.5). net/http has
	// removed it already; a handler that fills the map by itself may not have.
	start := 0
	for start < len(value) && isBlank(value[start]) {
		start++
	}
	end := len(value)
	for end > start && isBlank(value[end-1]) {
		end--
	}
	if start == end {
		return "", &KeyError{Fault: KeyEmpty}
	}
	if value[start] == '"' {
		return parseQuoted(value[:end], start)
	}
	for i := start; i < end; i++ {
		if !isBare(value[i]) {
			return "", &KeyError{Fault: KeyBadByte, At: i, Byte: value[i]}
		}
	}
	if end-start > MaxKey {
		return "", &KeyError{Fault: KeyTooLong, At: start + MaxKey}
	}
	return value[start:end], nil
}

// parseQuoted reads a String that begins at start and ends, parameters included,
// where the value does.
func parseQuoted(value string, start int) (string, error) {
	var unescaped strings.Builder // stays empty while nothing is escaped
	from := start + 1             // what has not been copied into it yet
	escaped := false
	for i := from; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			key := value[from:i]
			if escaped {
				unescaped.WriteString(key)
				key = unescaped.String()
			}
			return quotedKey(value, start, i+1, key)
		case c == '\\':
			if i+1 == len(value) {
				return "", &KeyError{Fault: KeyUnclosed, At: len(value)}
			}
			// Only these two may be escaped; the rest is an error, not a spelling.
			if next := value[i+1]; next != '"' && next != '\\' {
				return "", &KeyError{Fault: KeyBadByte, At: i + 1, Byte: next}
			}
			unescaped.WriteString(value[from:i])
			escaped, from = true, i+1
			i++
		case c < 0x20 || c > 0x7e:
			return "", &KeyError{Fault: KeyBadByte, At: i, Byte: c}
		}
	}
	return "", &KeyError{Fault: KeyUnclosed, At: len(value)}
}

// quotedKey checks the content of a quoted key and what follows it.
func quotedKey(value string, start, rest int, key string) (string, error) {
	switch {
	case strings.Trim(key, " ") == "":
		return "", &KeyError{Fault: KeyEmpty, At: start}
	case len(key) > MaxKey:
		return "", &KeyError{Fault: KeyTooLong, At: start}
	}
	if at, ok := skipParameters(value, rest); !ok {
		return "", &KeyError{Fault: KeyTrailing, At: at}
	}
	return key, nil
}

// FormatKey spells a key for the wire (rule P4): bare where the bare form can
// spell it, since most servers know no other, else as a quoted String. A key
// with bytes outside 0x20–0x7E, an empty one and one that is too long have no
// spelling that ParseKey reads: the result is "".
func FormatKey(key string) string {
	if len(key) > MaxKey || strings.Trim(key, " ") == "" {
		return ""
	}
	bare, escapes := true, 0
	for i := 0; i < len(key); i++ {
		c := key[i]
		if c < 0x20 || c > 0x7e {
			return ""
		}
		bare = bare && isBare(c)
		if c == '"' || c == '\\' {
			escapes++
		}
	}
	if bare {
		return key
	}
	quoted := make([]byte, 0, len(key)+escapes+2)
	quoted = append(quoted, '"')
	for i := 0; i < len(key); i++ {
		if key[i] == '"' || key[i] == '\\' {
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, key[i])
	}
	return string(append(quoted, '"'))
}

// isBare reports whether c may stand in a key without quotes. The comma would
// make a joined pair of fields look like one key, the semicolon begins a
// parameter, and quote and backslash belong to the other spelling.
func isBare(c byte) bool {
	return c > 0x20 && c < 0x7f && c != '"' && c != ',' && c != ';' && c != '\\'
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

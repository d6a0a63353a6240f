package wire

import "strings"

// The parameters of a structured field (RFC 9651, 3.1.2), read only to see that
// they are well formed. They must be: if anything could follow a quoted key, two
// keys that a proxy joined with a comma would pass for the first one.

// skipParameters reads the parameters from i to the end of s. When something
// else stands there, ok is false and at is where.
func skipParameters(s string, i int) (at int, ok bool) {
	for i < len(s) && s[i] == ';' {
		at := i + 1
		for at < len(s) && s[at] == ' ' {
			at++
		}
		name := skipWhile(s, at, isParameterName)
		// A name begins with a lower-case letter or a star.
		if name == at || s[at] != '*' && !isLower(s[at]) {
			return at, false
		}
		i = name
		if i < len(s) && s[i] == '=' {
			end, ok := skipItem(s, i+1)
			if !ok {
				return i, false
			}
			i = end
		}
	}
	return i, i == len(s)
}

// skipItem returns the offset after the bare item at i (RFC 9651, 3.3). Numbers
// and dates are read a little too widely: their value is of no interest.
func skipItem(s string, i int) (end int, ok bool) {
	if i >= len(s) {
		return i, false
	}
	switch c := s[i]; {
	case c == '"':
		return skipQuoted(s, i)
	case c == ':':
		end := skipWhile(s, i+1, isBase64)
		return end + 1, end < len(s) && s[end] == ':'
	case c == '?':
		return i + 2, i+1 < len(s) && (s[i+1] == '0' || s[i+1] == '1')
	case c == '@':
		return skipNumber(s, i+1)
	case c == '%':
		if i+1 >= len(s) || s[i+1] != '"' {
			return i, false
		}
		end := skipWhile(s, i+2, isDisplayed)
		return end + 1, end < len(s) && s[end] == '"'
	case c == '-' || isDigit(c):
		return skipNumber(s, i)
	case c == '*' || isLower(c) || 'A' <= c && c <= 'Z':
		return skipWhile(s, i, isTokenItem), true
	}
	return i, false
}

func skipQuoted(s string, i int) (end int, ok bool) {
	for i++; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1, true
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return i, false
			}
		case c < 0x20 || c > 0x7e:
			return i, false
		}
	}
	return i, false
}

func skipNumber(s string, i int) (end int, ok bool) {
	if i < len(s) && s[i] == '-' {
		i++
	}
	end = skipWhile(s, i, isDigit)
	if ok = end > i; ok && end < len(s) && s[end] == '.' {
		from := end + 1
		end = skipWhile(s, from, isDigit)
		ok = end > from
	}
	return end, ok
}

func skipWhile(s string, i int, is func(byte) bool) int {
	for i < len(s) && is(s[i]) {
		i++
	}
	return i
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool { return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' }

func isParameterName(c byte) bool {
	return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0
}

func isDisplayed(c byte) bool { return 0x20 <= c && c <= 0x7e && c != '"' }

func isBase64(c byte) bool { return isAlnum(c) || strings.IndexByte("+/=", c) >= 0 }

// isTokenItem is for tokens of RFC 9651, which may hold a colon and a slash too.
func isTokenItem(c byte) bool { return isAlnum(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0 }

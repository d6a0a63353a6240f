package wire

import "strings"

// IsToken reports whether s is a token of RFC 9110, 5.6.2: the form of header
// names, methods and the parts of media types.
func IsToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isAlnum(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// IsFieldText reports whether s can be a header's value, or a part of one, that
// every reader takes alike: visible ASCII and spaces.
func IsFieldText(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

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

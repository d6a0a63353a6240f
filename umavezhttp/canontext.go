package umavezhttp

import "unicode/utf8"

// The strings of canonical JSON: equal exactly when their characters are,
// however a document escapes them. What stands for no characters has no form.

// text reads a string and writes it with the fewest escapes. Runs without
// escapes are copied as they are.
func (c *canonJSON) text() bool {
	c.out = append(c.out, '"')
	c.pos++
	run := c.pos
	for c.pos < len(c.in) {
		switch b := c.in[c.pos]; {
		case b == '"':
			c.out = append(c.out, c.in[run:c.pos]...)
			c.out = append(c.out, '"')
			c.pos++
			return true
		case b == '\\':
			c.out = append(c.out, c.in[run:c.pos]...)
			if !c.escape() {
				return false
			}
			run = c.pos
		case b < 0x20:
			return false
		case b < utf8.RuneSelf:
			c.pos++
		default:
			r, size := utf8.DecodeRune(c.in[c.pos:])
			if r == utf8.RuneError && size == 1 {
				return false
			}
			c.pos += size
		}
	}
	return false
}

// escape reads one escape and writes the character that it stands for.
func (c *canonJSON) escape() bool {
	if c.pos+1 >= len(c.in) {
		return false
	}
	b := c.in[c.pos+1]
	c.pos += 2
	switch b {
	case '"', '\\', '/':
		c.out = appendCanonicalRune(c.out, rune(b))
	case 'b', 'f', 'n', 'r', 't':
		c.out = append(c.out, '\\', b)
	case 'u':
		r, ok := c.codePoint()
		c.out = appendCanonicalRune(c.out, r)
		return ok
	default:
		return false
	}
	return true
}

// codePoint reads what follows \u: four digits, or a pair of surrogates. Half a
// pair stands for no character, and readers disagree on what to make of it.
func (c *canonJSON) codePoint() (rune, bool) {
	r, ok := c.hex4()
	if !ok || r < 0xd800 || r > 0xdfff {
		return r, ok
	}
	if r > 0xdbff || !c.take('\\') || !c.take('u') {
		return 0, false
	}
	low, ok := c.hex4()
	if !ok || low < 0xdc00 || low > 0xdfff {
		return 0, false
	}
	return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, true
}

func (c *canonJSON) hex4() (rune, bool) {
	if len(c.in)-c.pos < 4 {
		return 0, false
	}
	var r rune
	for _, b := range c.in[c.pos : c.pos+4] {
		switch {
		case '0' <= b && b <= '9':
			b -= '0'
		case 'a' <= b && b <= 'f':
			b -= 'a' - 10
		case 'A' <= b && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	c.pos += 4
	return r, true
}

// appendCanonicalText appends the characters of s as a canonical string has them.
func appendCanonicalText(b []byte, s string) []byte {
	for _, r := range s {
		b = appendCanonicalRune(b, r)
	}
	return b
}

// appendCanonicalRune appends a character as a canonical string has it: escaped
// only if it must be, and then in the shortest way.
func appendCanonicalRune(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	if r < 0x20 {
		const hex = "0123456789abcdef"
		return append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
	}
	return utf8.AppendRune(b, r)
}

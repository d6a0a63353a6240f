package wire

import (
	"strings"
	"testing"
)

// TestIsToken looks at every byte: RFC 9110, 5.6.2 lists what a token may hold,
// and each delimiter that it may not.
func TestIsToken(t *testing.T) {
	const delimiters = "\"(),/:;<=>?@[\\]{}"
	for c := range 256 {
		want := c > 0x20 && c < 0x7f && !strings.ContainsRune(delimiters, rune(c))
		if got := IsToken("a" + string([]byte{byte(c)})); got != want {
			t.Errorf("with byte %#x: %v, want %v", c, got, want)
		}
	}
	if IsToken("") {
		t.Error("nothing is no token")
	}
}

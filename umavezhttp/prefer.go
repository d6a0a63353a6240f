package umavezhttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

// preferredWait reads `Prefer: wait=N` (RFC 7240, 4.3; rule R2): how long the
// client is ready to wait, up to most. As the RFC has it, the first preference
// of a name counts, and one that cannot be read counts as none.
func preferredWait(h http.Header, most time.Duration) (wait time.Duration, ok bool) {
	for _, line := range h[wire.Prefer] {
		for line != "" {
			var preference string
			preference, line = cutPreference(line)
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.TrimSpace(name), "wait") {
				return parseSeconds(strings.TrimSpace(value), most)
			}
		}
	}
	return 0, false
}

// cutPreference cuts the first preference, without its parameters, off a line.
// Commas and semicolons inside of quotes separate nothing.
func cutPreference(line string) (preference, rest string) {
	end, quoted := -1, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';' && end < 0:
			end = i
		case c == ',':
			if end < 0 {
				end = i
			}
			return line[:end], line[i+1:]
		}
	}
	if end < 0 {
		end = len(line)
	}
	return line[:end], ""
}

// parseSeconds reads a whole number of seconds, with or without quotes. What is
// longer than most is most, however many digits it has.
func parseSeconds(s string, most time.Duration) (time.Duration, bool) {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if s == "" {
		return 0, false
	}
	var d time.Duration
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		d = min(10*d+time.Duration(s[i]-'0')*time.Second, most)
	}
	return d, true
}

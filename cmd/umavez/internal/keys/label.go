package keys

import (
	"strconv"
	"strings"
)

// inWords is a record's label as a table shows it: the key first, then the
// caller in the parts that it was made of, and the namespace where it is not the
// default one. A label of another form than umavezhttp's stands as it is.
func inWords(label string) string {
	space, rest, ok := cutQuoted(label)
	if !ok {
		return label
	}
	caller, rest, ok := cutQuoted(rest)
	if !ok {
		return label
	}
	cut := strings.HasPrefix(rest, "... ") // it was too long for the record
	key, rest, ok := cutQuoted(strings.TrimPrefix(rest, "..."))
	if !ok || rest != "" {
		return label
	}
	words := []string{word(key)}
	parts, whole := partsOf(caller)
	switch {
	case cut:
		words = append(words, "of", strconv.Quote(caller)+"...")
	case !whole:
		words = append(words, "of", word(caller))
	case len(parts) == 1 && parts[0] == "anonymous": // nobody in particular
	default:
		words = append(words, "of")
		for _, p := range parts {
			words = append(words, word(p))
		}
	}
	if space != DefaultNamespace {
		words = append(words, "in", word(space))
	}
	return strings.Join(words, " ")
}

// cutQuoted takes a text in Go's quotes from the front of a line, and the space
// before it.
func cutQuoted(line string) (text, rest string, ok bool) {
	line = strings.TrimPrefix(line, " ")
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", "", false
	}
	text, err = strconv.Unquote(quoted)
	return text, line[len(quoted):], err == nil
}

// word is a text as it stands where nothing in it could be taken for something
// else, and in quotes where it could.
func word(text string) string {
	quoted := strconv.Quote(text)
	if text == "" || strings.Contains(text, " ") || quoted != `"`+text+`"` {
		return quoted
	}
	return text
}

// partsOf takes a principal apart that umavezhttp.PrincipalOf has made. whole is
// false of any other.
func partsOf(principal string) (parts []string, whole bool) {
	for principal != "" {
		digits, rest, ok := strings.Cut(principal, ":")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != ',' {
			return nil, false
		}
		parts, principal = append(parts, rest[:n]), rest[n+1:]
	}
	return parts, len(parts) > 0
}

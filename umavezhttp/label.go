package umavezhttp

import (
	"strconv"

	"github.com/umavez/umavez"
)

// label is a key in words, for operators: namespace, principal and key, each in
// the quotes of Go, in ASCII, so that none can pass for another. A principal that
// is too long for a record is cut, and an ellipsis stands behind its quotes.
func label(k *umavez.Key) string {
	space, name := strconv.QuoteToASCII(k.Scope.Namespace), strconv.QuoteToASCII(k.Name)
	principal := strconv.QuoteToASCII(k.Scope.Principal)
	whole := space + " " + principal + " " + name
	if len(whole) <= umavez.MaxLabel {
		return whole
	}
	const cut = `"...`
	room := max(umavez.MaxLabel-len(space)-len(name)-2-len(cut), 1)
	return space + " " + principal[:min(room, len(principal))] + cut + " " + name
}

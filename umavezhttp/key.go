package umavezhttp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// invalidKey says which header holds no key, or not one key, and why. Its text
// names headers and positions, never a value: it is safe to show.
type invalidKey struct {
	// name is the header with the fault.
	name string
	// other is set when name and other hold different keys.
	other string
	// fault is nil when name stands there more than once, or other is set.
	fault *wire.KeyError
}

// Error says what is wrong in English.
func (e *invalidKey) Error() string { return "umavez: " + e.detail(english) }

// problem is the refusal of a request with this key.
func (e *invalidKey) problem() Problem {
	p := problemFor(wire.CodeInvalidKey)
	p.key = e
	return p
}

// readKey finds the key of a request under any of names, in canonical form.
// found is false when none of them is there. What is there but is no key is an
// error of type *invalidKey, never "no key" (rule K4): a client that sends a key
// relies on it. So are two field lines, even equal ones (rule K5), and two names
// with different keys (rule K8).
//
// A bare key is a part of the header's own string: nothing is allocated, neither
// for it nor for a request without one.
func readKey(h http.Header, names []string) (key string, found bool, err error) {
	var foundAs string
	for _, name := range names {
		line, lines := fieldLine(h, name)
		switch {
		case lines == 0:
			continue
		case lines > 1:
			return "", false, &invalidKey{name: name}
		}
		this, err := wire.ParseKey(line)
		if err != nil {
			fault, _ := errors.AsType[*wire.KeyError](err)
			return "", false, &invalidKey{name: name, fault: fault}
		}
		// Exact bytes, case included: a UUID in capitals is another key (rule K7).
		if found && this != key {
			return "", false, &invalidKey{name: foundAs, other: name}
		}
		key, found, foundAs = this, true, name
	}
	return key, found, nil
}

// fieldLine returns a line of the header called name, and how many there are.
// net/http files every line under its canonical name, but a handler outside may
// have set the map by itself, under "idempotency-key": passing over that would
// run the request unprotected, so every spelling counts.
func fieldLine(h http.Header, name string) (line string, lines int) {
	for k, values := range h {
		if len(k) != len(name) || len(values) == 0 || k != name && !strings.EqualFold(k, name) {
			continue
		}
		line = values[0]
		lines += len(values)
	}
	return line, lines
}

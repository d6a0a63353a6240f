package serve

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// problems gathers what is wrong with settings.
type problems []error

func (p *problems) add(err error) { *p = append(*p, err) }

func (p *problems) addf(format string, args ...any) { p.add(usagef(format, args...)) }

// err is nil when nothing was wrong.
func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	return &UsageError{err: usageList(*p)}
}

// usageList spells several usage errors under one "umavez: ".
type usageList []error

func (l usageList) Error() string {
	lines := make([]string, len(l))
	for i, err := range l {
		lines[i] = strings.TrimPrefix(err.Error(), "umavez: ")
	}
	return strings.Join(lines, "\numavez: ")
}

func (l usageList) Unwrap() []error { return l }

// url reads an absolute URL of one of the schemes, without what a base address
// cannot use.
func (p *problems) url(option string, text *string, schemes ...string) *url.URL {
	if text == nil {
		return nil
	}
	u, err := url.Parse(*text)
	switch {
	case err != nil && strings.Contains(*text, "://"):
		p.addf("%s %s: %w", option, *text, withoutURL(err))
	// To url.Parse, 127.0.0.1:3000 is a path with a fault in it.
	case err != nil || !slices.Contains(schemes, u.Scheme):
		p.addf("%s %s: must begin with %s://", option, *text, strings.Join(schemes, ":// or "))
	case u.Host == "":
		p.addf("%s %s: names no host", option, *text)
	case u.User != nil:
		p.addf("%s %s: must not hold a user or password", option, u.Redacted())
	case u.Fragment != "":
		p.addf("%s %s: must not hold a fragment", option, *text)
	}
	return u
}

// withoutURL drops the URL from a parse error, which repeats it: the option has
// named it already.
func withoutURL(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

// address checks HOST:PORT.
func (p *problems) address(option, text string) string {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		p.addf("%s %s: must be HOST:PORT", option, text)
	}
	return text
}

// anyPort reports whether the system chooses the port, so that two equal
// addresses are two sockets.
func anyPort(address string) bool { return strings.HasSuffix(address, ":0") }

func (p *problems) prefixes(option string, texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); err != nil && addrErr == nil {
			prefix, err = addr.Prefix(addr.BitLen())
		}
		switch {
		case err != nil:
			p.addf("%s %s: must be a network such as 10.0.0.0/8", option, text)
		case prefix != prefix.Masked():
			p.addf("%s %s: has bits beyond its length; the network is %s", option, text, prefix.Masked())
		default:
			all = append(all, prefix)
		}
	}
	return all
}

// between checks a duration against its sensible bounds.
func (p *problems) between(option string, d *Duration, otherwise, least, most time.Duration) time.Duration {
	v := time.Duration(or(d, Duration(otherwise)))
	if v < least || v > most {
		p.addf("%s %v: must be between %v and %v", option, v, least, most)
	}
	return v
}

// largest bounds sizes: bodies are held in memory.
const largest = 64 << 20

func (p *problems) size(option string, n *int64, otherwise int64) int64 {
	v := or(n, otherwise)
	if v < 1 || v > largest {
		p.addf("%s %d: must be between 1 and %d bytes", option, v, largest)
	}
	return v
}

// maxNamespace keeps the name printable in a line.
const maxNamespace = 255

func (p *problems) namespace(text *string) string {
	name := or(text, DefaultNamespace)
	if name == "" || len(name) > maxNamespace {
		p.addf("--namespace %q: must have 1 to %d bytes", name, maxNamespace)
	}
	return name
}

// header reads a header's name.
func (p *problems) header(option, name string) string {
	if !headerName.MatchString(name) {
		p.addf("%s %s: is not a header's name", option, name)
	}
	return http.CanonicalHeaderKey(name)
}

// origins checks what browsers send as Origin: scheme, host and port, nothing more.
func (p *problems) origins(texts []string) []string {
	for _, text := range texts {
		u, err := url.Parse(text)
		switch {
		case text == "*":
		case err != nil || u.Host == "" || u.Scheme+"://"+u.Host != text:
			p.addf("--cors %s: must be an origin such as https://loja.example", text)
		}
	}
	return texts
}

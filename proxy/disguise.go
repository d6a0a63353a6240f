package proxy

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// A request in disguise is one that the table does not find, or finds elsewhere,
// and that the upstream may take for one of an enrolled route all the same:
// "//pay", "/x/../pay", "/x%2f..%2fpay", "/pay;v=1", "post /pay". Forwarded as it
// is, it would be a way around the protection; put right, it would be another
// request than the one that was sent. So it is refused (rule P10).

// overrides are the headers by which some frameworks let a client name another
// method than the request's.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// find returns the route of a request, or nil, and whether the request is in
// disguise: then it must not be forwarded at all.
func (t *routes) find(r *http.Request) (e *enrolled, disguised bool) {
	escaped := r.URL.EscapedPath()
	if escaped == "" {
		escaped = "/"
	}
	if isClean(escaped) {
		e = t.lookup(r.Method, r.Host, escaped)
	}
	methods := otherMethods(r)
	if len(methods) == 0 && isPlain(escaped) {
		return e, false
	}
	paths := append(otherPaths(escaped), escaped)
	for _, method := range append(methods, r.Method) {
		for _, p := range paths {
			// Another method on the same route is for the route to judge.
			if other := t.lookup(method, r.Host, clean(p)); other != nil && other != e {
				return nil, true
			}
		}
	}
	return e, false
}

// isPlain reports whether every server reads the path in the same way: clean,
// and without a character that some take for another.
func isPlain(escaped string) bool {
	return isClean(escaped) && !strings.ContainsAny(escaped, `%;\`)
}

// isClean reports whether a ServeMux would leave the path alone.
func isClean(escaped string) bool { return clean(escaped) == escaped }

// clean resolves empty, "." and ".." segments, and keeps a slash at the end.
func clean(p string) string {
	cleaned := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}

// maxDecodings is how often a path is decoded. Servers decode once; behind a
// proxy that decodes too, twice.
const maxDecodings = 3

// otherPaths are the ways in which a server may read the path: with what is
// escaped taken for what it stands for, backslashes for slashes, and parameters
// ("/pay;v=1") for no part of it. They are escaped anew, but for the slashes.
func otherPaths(escaped string) []string {
	var all []string
	plain := escaped
	for range maxDecodings {
		decoded := unescape(plain)
		slashed := strings.ReplaceAll(decoded, `\`, "/")
		all = append(all, reescape(slashed), reescape(withoutParameters(slashed)))
		if decoded == plain {
			break
		}
		plain = decoded
	}
	return all
}

// unescape decodes what can be decoded and leaves the rest, as lenient servers do.
func unescape(s string) string {
	if whole, err := url.PathUnescape(s); err == nil {
		return whole
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func reescape(plain string) string {
	segments := strings.Split(plain, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return strings.Join(segments, "/")
}

func withoutParameters(plain string) string {
	segments := strings.Split(plain, "/")
	for i := range segments {
		segments[i], _, _ = strings.Cut(segments[i], ";")
	}
	return strings.Join(segments, "/")
}

// otherMethods are the methods that the upstream may see in the request besides
// its own: the same in upper case, which some frameworks make of any, and what
// an overriding header names.
func otherMethods(r *http.Request) []string {
	var all []string
	if upper := strings.ToUpper(r.Method); upper != r.Method {
		all = append(all, upper)
	}
	for _, name := range overrides {
		for _, value := range r.Header[name] {
			if m := strings.ToUpper(strings.TrimSpace(value)); m != r.Method {
				all = append(all, m)
			}
		}
	}
	return all
}

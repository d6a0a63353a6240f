package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// Route enrols the requests that match a pattern: their keys count.
type Route struct {
	// Pattern is one of http.ServeMux: "POST /pagamentos", "/cobs/{id}",
	// "PATCH api.example/orders/". Without a method it means those of HTTP, by
	// default POST and PATCH. A trailing slash of the request's path is ignored,
	// so "/pay" and "/pay/{$}" are one pattern, and "/pay/", which stands for
	// everything below, includes "/pay" too. Nothing is ever redirected.
	Pattern string
	// HTTP says what is particular to the operations behind it. Name defaults to
	// Pattern, and Host is set when Pattern names one.
	HTTP umavezhttp.Route
	// Policy is umavez.Opaque, the default, or umavez.Rerunnable: the author of
	// the operations declares that running one again is safe, so that the next
	// attempt does after one was lost, and with HTTP.KeepRequest the completer
	// too. The other policies need code in the operation, which the sidecar
	// cannot see into.
	Policy umavez.Policy
	// Reconcile finds out what became of lost operations. Nil: they stay unknown
	// until somebody settles them.
	Reconcile *Reconcile
}

// again is when another attempt may know more of an operation that was lost; 0:
// not until somebody settles it.
func (rt *Route) again() time.Duration {
	switch {
	case rt.Policy == umavez.Rerunnable:
		return time.Second // it runs; the upstream gets its breath back
	case rt.Reconcile != nil:
		return rt.Reconcile.after()
	}
	return 0
}

// enrolled is a route that is in force: what protects its operation.
type enrolled struct {
	pattern string
	handler http.Handler
}

// ServeHTTP lets a ServeMux hold it. It is never called: the table only looks up.
func (e *enrolled) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.handler.ServeHTTP(w, r) }

// routes finds the route of a request. It borrows the matching of http.ServeMux,
// precedence included, and none of its redirects: what it is asked about has
// been put into the form in which a ServeMux redirects nothing.
type routes struct {
	mux        *http.ServeMux
	ignoreCase bool
	seen       map[string]string // registered form to pattern as written
}

func newRoutes(ignoreCase bool) *routes {
	return &routes{mux: http.NewServeMux(), ignoreCase: ignoreCase, seen: make(map[string]string)}
}

// pattern is a Route's pattern, taken apart.
type pattern struct {
	methods []string
	host    string
	path    string // in canonical form: no trailing slash, wildcards renamed
	below   bool   // it also stands for everything below
}

// parsePattern takes a route's pattern apart. What ServeMux would refuse is left
// to it, but for what only it could explain badly.
func (t *routes) parsePattern(rt Route) (pattern, error) {
	method, rest, hasMethod := strings.Cut(strings.TrimSpace(rt.Pattern), " ")
	if !hasMethod {
		method, rest = "", method
	}
	rest = strings.TrimSpace(rest)
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return pattern{}, fmt.Errorf("umavez: the route %q has no path", rt.Pattern)
	}
	if strings.ContainsAny(rest[:slash], " \t{}") {
		return pattern{}, fmt.Errorf("umavez: the route %q is not METHOD [HOST]/PATH", rt.Pattern)
	}
	p := pattern{host: hostOnly(rest[:slash])}
	methods := rt.HTTP.Methods
	switch {
	case method != "" && len(methods) > 0 && !slices.Equal(methods, []string{method}):
		return pattern{}, fmt.Errorf("umavez: the route %q names a method, and its settings name others: %q", rt.Pattern, methods)
	case method != "":
		p.methods = []string{method}
	case len(methods) > 0:
		p.methods = slices.Clone(methods)
	default:
		p.methods = []string{http.MethodPost, http.MethodPatch}
	}
	var err error
	p.path, p.below, err = t.canonicalPath(rest[slash:])
	if err != nil {
		return pattern{}, fmt.Errorf("umavez: the route %q: %w", rt.Pattern, err)
	}
	return p, nil
}

// canonicalPath renames a pattern's wildcards by their place, so that equal
// patterns are equal strings, and splits what it says of the end off.
func (t *routes) canonicalPath(path string) (canonical string, below bool, err error) {
	segments := strings.Split(path[1:], "/")
	for i, seg := range segments {
		last := i == len(segments)-1
		switch {
		case seg == "{$}" && last, seg == "" && i == 0 && last:
			return join(segments[:i]), seg == "" && i == 0, nil
		case seg == "" && last:
			return join(segments[:i]), true, nil
		case seg == "":
			return "", false, errors.New("a path with // in it matches nothing")
		case strings.HasSuffix(seg, "...}") && last:
			return join(segments[:i]), true, nil
		case strings.HasPrefix(seg, "{"):
			if !strings.HasSuffix(seg, "}") || len(seg) < 3 || seg == "{$}" || strings.HasSuffix(seg, "...}") {
				return "", false, fmt.Errorf("the wildcard %q does not stand there", seg)
			}
			segments[i] = "{w" + strconv.Itoa(i) + "}"
		case strings.ContainsAny(seg, "{}"):
			return "", false, fmt.Errorf("a wildcard takes a whole segment, unlike %q", seg)
		default:
			segments[i] = t.fold(seg)
		}
	}
	return join(segments), false, nil
}

func join(segments []string) string { return "/" + strings.Join(segments, "/") }

// forms are what is registered for a pattern: the one that it says, and the one
// that comes along with it, if any. "/pay/" says everything below, and "/pay"
// comes along, unless that is a route of its own.
func (p pattern) forms() (said, along string) {
	switch {
	case p.path == "/" && p.below:
		return "/{below...}", ""
	case p.path == "/":
		return "/{$}", ""
	case p.below:
		return p.path + "/{below...}", p.path
	}
	return p.path, ""
}

// add enrols a route under what its pattern says. When all are there, addAlong
// adds what comes along.
func (t *routes) add(p pattern, e *enrolled) error {
	said, _ := p.forms()
	for _, method := range p.methods {
		form := method + " " + p.host + said
		if first, ok := t.seen[form]; ok {
			return fmt.Errorf("umavez: the routes %q and %q match the same requests", first, e.pattern)
		}
		if err := t.register(form, e); err != nil {
			return err
		}
	}
	return nil
}

func (t *routes) addAlong(p pattern, e *enrolled) error {
	_, along := p.forms()
	if along == "" {
		return nil
	}
	for _, method := range p.methods {
		form := method + " " + p.host + along
		if _, ok := t.seen[form]; ok {
			continue
		}
		if err := t.register(form, e); err != nil {
			return err
		}
	}
	return nil
}

// register puts a form into the ServeMux, which panics where two patterns match
// a common request and neither is the more specific one: then it is for the
// operator to say which is meant.
func (t *routes) register(form string, e *enrolled) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("umavez: the route %q: %v", e.pattern, v)
		}
	}()
	t.mux.Handle(form, e)
	t.seen[form] = e.pattern
	return nil
}

// lookup returns the route of requests with this method, host and path (as
// escaped by the client), or nil. The path must be clean.
func (t *routes) lookup(method, host, path string) *enrolled {
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	if t.ignoreCase {
		path = t.foldPath(path)
	}
	unescaped, err := url.PathUnescape(path)
	if err != nil {
		return nil
	}
	h, _ := t.mux.Handler(&http.Request{
		Method: method, Host: hostOnly(host), URL: &url.URL{Path: unescaped, RawPath: path},
	})
	e, _ := h.(*enrolled)
	return e
}

// foldPath puts each segment of a path into the form that fold gives it.
func (t *routes) foldPath(path string) string {
	segments := strings.Split(path, "/")
	for i := range segments {
		segments[i] = t.fold(segments[i])
	}
	return strings.Join(segments, "/")
}

// fold returns a segment in lower case when case is ignored, also where a letter
// is escaped.
func (t *routes) fold(segment string) string {
	if !t.ignoreCase {
		return segment
	}
	plain, err := url.PathUnescape(segment)
	if err != nil {
		return segment
	}
	return url.PathEscape(strings.ToLower(plain))
}

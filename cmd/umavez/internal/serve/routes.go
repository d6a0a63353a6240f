package serve

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/proxy"
	"github.com/umavez/umavez/umavezhttp"
)

// RouteSettings are a protected route as the file spells it. What is not
// written is as for every other route.
type RouteSettings struct {
	// Route is a ServeMux pattern, such as "POST /pagamentos".
	Route string `yaml:"route"`
	// Name is what logs, metrics and records call it. Default: the pattern.
	Name string `yaml:"name"`
	// Required refuses requests without a key (rule K2).
	Required bool `yaml:"required"`
	// Methods are those that the pattern protects when it names none itself.
	// Default POST and PATCH (rule K1).
	Methods []string `yaml:"methods"`
	// Release are statuses, 400 to 599, of which the author of the route knows
	// that nothing was done; or the word none, where not even a 401 says so.
	Release []string `yaml:"release"`
	// Preset is standard (the default), success-only or everything (rule A6).
	Preset string `yaml:"preset"`
	// Exclude are JSON pointers to fields that may differ between attempts (rule F8).
	Exclude []string `yaml:"exclude"`
	// Headers are request headers that are part of what makes two requests the
	// same (rule F3).
	Headers []string `yaml:"headers"`
	// Raw takes bodies as bytes, also where they are JSON (rule F4).
	Raw bool `yaml:"raw"`
	// Echo are headers of a replay that come from the present request (rule A7).
	Echo []string `yaml:"echo"`
	// KeepCookies keeps Set-Cookie in stored answers (rule A7).
	KeepCookies bool `yaml:"keep-cookies"`
	// NoBody never keeps an answer's body.
	NoBody bool `yaml:"no-body"`
	// Policy is opaque (the default) or rerunnable: running an operation again
	// is safe, so that the next attempt does after one was lost.
	Policy string `yaml:"policy"`
	// KeepRequest keeps the request with its key, for the reconciler, and for
	// the completer where the policy is rerunnable.
	KeepRequest bool `yaml:"keep-request"`
	// PlainRequests says that these requests hold no secret, and may lie in the
	// store as they came.
	PlainRequests bool `yaml:"plain-requests"`
	// Withhold are request headers that upstream does not get, so that they need
	// not be kept.
	Withhold []string `yaml:"withhold"`
	// CompleteAfter, CompleteUntil and CompleteTries say when a lost operation
	// is run again though its client does not come back: see umavez.Completer.
	CompleteAfter *Duration `yaml:"complete-after"`
	CompleteUntil *Duration `yaml:"complete-until"`
	CompleteTries *int      `yaml:"complete-tries"`
	// Reconcile finds out what became of lost operations.
	Reconcile *ReconcileSettings `yaml:"reconcile"`
	// Wait, Retain and Tombstone are as the options of that name.
	Wait      *Duration `yaml:"wait"`
	Retain    *Duration `yaml:"retain"`
	Tombstone *Duration `yaml:"tombstone"`
}

// RouteConfig is a checked RouteSettings.
type RouteConfig struct {
	Pattern string
	// HTTP is everything else. Its durations are set: the middleware's zero
	// would mean its own default.
	HTTP   umavezhttp.Route
	Policy umavez.Policy
	// Reconcile is nil where nobody is asked.
	Reconcile *proxy.Reconcile
}

func (s Settings) routes(c *Config, p *problems) {
	var general umavezhttp.Route
	p.release(&general, "--release", s.Release)
	all := make([]RouteSettings, 0, len(s.Route)+len(s.Routes))
	for _, pattern := range s.Route {
		all = append(all, RouteSettings{Route: pattern})
	}
	all = append(all, s.Routes...)
	if len(all) == 0 {
		p.addf("--route 'POST /path' is required: without one nothing is protected")
	}
	mux := http.NewServeMux()
	names := map[string]bool{}
	for _, r := range all {
		rc := r.config(c, general, p)
		r.recovery("--route "+r.Route, c, or(s.Keyring, "") != "" || len(s.KeyringCommand) > 0, &rc, p)
		if segment := foreignWildcard(rc.Pattern); segment != "" {
			p.addf("--route %s: %q is not a wildcard here: write {name} for one segment, or {name...} at the end for the rest", r.Route, segment)
		}
		if err := register(mux, rc.Pattern); err != nil {
			p.addf("--route %s: %w", r.Route, err)
		} else if names[rc.HTTP.Name] {
			p.addf("--route %s: another route has the name %q", r.Route, rc.HTTP.Name)
		}
		names[rc.HTTP.Name] = true
		c.Routes = append(c.Routes, rc)
	}
}

// config checks one route. What it does not say it inherits: the release list
// from general, the durations from c.
func (r RouteSettings) config(c *Config, general umavezhttp.Route, p *problems) RouteConfig {
	option := "--route " + r.Route
	rc := RouteConfig{Pattern: r.Route, HTTP: general}
	rt := &rc.HTTP
	if rt.Name = r.Name; r.Name == "" {
		rt.Name = r.Route
	}
	if len(rt.Name) > umavez.MaxRoute {
		p.addf("%s: its name has %d bytes, at most %d", option, len(rt.Name), umavez.MaxRoute)
	}
	rt.Required, rt.Raw, rt.KeepCookies, rt.NoBody = r.Required, r.Raw, r.KeepCookies, r.NoBody
	rt.Exclude, rt.Headers, rt.Echo = r.Exclude, r.Headers, r.Echo
	if r.Release != nil {
		p.release(rt, option+": release", r.Release)
	}
	rt.Preset = p.preset(option, r.Preset)
	rt.Methods = p.methods(option, r)
	rt.Wait = orNone(p.between(option+": wait", r.Wait, c.Wait, 0, c.WaitMax))
	rt.Retain = p.between(option+": retain", r.Retain, c.Retain, time.Second, longest)
	rt.Tombstone = orNone(p.between(option+": tombstone", r.Tombstone, c.Tombstone, 0, longest))
	for _, pointer := range r.Exclude {
		if !strings.HasPrefix(pointer, "/") {
			p.addf("%s: exclude %s: must be a JSON pointer such as /card/cvv", option, pointer)
		}
	}
	for _, name := range slices.Concat(r.Headers, r.Echo) {
		if !headerName.MatchString(name) {
			p.addf("%s: %q is not a header's name", option, name)
		}
	}
	return rc
}

func (p *problems) preset(option, text string) umavezhttp.Preset {
	for _, preset := range []umavezhttp.Preset{umavezhttp.Standard, umavezhttp.SuccessOnly, umavezhttp.Everything} {
		if text == preset.String() {
			return preset
		}
	}
	if text != "" {
		p.addf("%s: preset %s: must be %v, %v or %v", option, text, umavezhttp.Standard, umavezhttp.SuccessOnly, umavezhttp.Everything)
	}
	return umavezhttp.Standard
}

// protectable are the methods that can be protected. The others are safe to
// repeat by themselves (rule K1).
var protectable = []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}

// methods returns the pattern's own method, or the list in place of it. nil:
// the default.
func (p *problems) methods(option string, r RouteSettings) []string {
	list := r.Methods
	if method, _, named := strings.Cut(strings.TrimSpace(r.Route), " "); named {
		if len(list) > 0 {
			p.addf("%s: methods: the pattern names its method already", option)
		}
		list = []string{method}
	}
	for _, m := range list {
		if !slices.Contains(protectable, m) {
			p.addf("%s: %s is not protected; only %s are", option, m, strings.Join(protectable, ", "))
		}
	}
	return list
}

// release reads a list of statuses, or the word none, into a route.
func (p *problems) release(rt *umavezhttp.Route, option string, texts []string) {
	rt.Release, rt.ReleaseNone = nil, len(texts) == 1 && texts[0] == "none"
	if rt.ReleaseNone {
		return
	}
	for _, text := range texts {
		status, err := strconv.Atoi(text)
		if err != nil || status < 400 || status > 599 {
			p.addf("%s %s: must be statuses from 400 to 599, or none; no other answer can say that nothing was done", option, text)
			continue
		}
		rt.Release = append(rt.Release, status)
	}
}

// foreign is a segment that is a wildcard to other routers: :id (Express,
// Rails, Gin), * and ** (globs), *rest (Rails, Gin), <id> and <int:id> (Flask),
// and [id] (Next.js).
var foreign = regexp.MustCompile(`^(:.+|\*.*|<.+>|\[.+\])$`)

// foreignWildcard returns the first segment of a pattern that was meant for
// another router. ServeMux takes it literally, so the route would match nothing
// and everything that it was to protect would pass through, unprotected and
// without a word. Who does have such a path spells it with %3A or the like.
func foreignWildcard(pattern string) string {
	for segment := range strings.SplitSeq(pattern, "/") {
		if foreign.MatchString(segment) {
			return segment
		}
	}
	return ""
}

// registered is how ServeMux names the place of the other pattern: a line of
// this file, which says nothing to whoever wrote the route.
var registered = regexp.MustCompile(` \(registered at [^)]*\)`)

// register finds patterns that are wrong or in conflict. ServeMux panics on
// them, since they are usually written in code.
func register(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			text := registered.ReplaceAllString(fmt.Sprint(fault), "")
			err = errors.New(strings.Join(strings.Fields(text), " "))
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

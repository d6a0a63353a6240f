package umavezhttp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

func TestOptionsDefaults(t *testing.T) {
	o := *checkedOptions(t, Options{})
	switch {
	case o.Recipe == "", o.Challenge == "", o.ProblemBase == "", o.Docs != o.ProblemBase,
		o.Wait != 5*time.Second, o.WaitMax != 30*time.Second,
		o.MaxRequestBody != 1<<20, o.MaxAnswer != 1<<20, o.MaxDecoded != 1<<20, o.MaxRatio != 100:
		t.Errorf("the defaults are %+v", o)
	}
	if o := checkedOptions(t, Options{Wait: -1}); o.Wait != 0 {
		t.Errorf("a negative Wait becomes %v", o.Wait)
	}
	if o := checkedOptions(t, Options{Wait: time.Minute}); o.WaitMax != time.Minute {
		t.Errorf("with a Wait of a minute WaitMax is %v", o.WaitMax)
	}
	if o := checkedOptions(t, Options{MaxRequestBody: 10}); o.MaxDecoded != 10 {
		t.Errorf("with bodies of 10 bytes MaxDecoded is %d", o.MaxDecoded)
	}
	o = *checkedOptions(t, Options{Headers: []string{"x-idempotency-key", "X-Idempotency-Key", "webhook-id"}})
	if got := o.keyNames(); !slices.Equal(got, []string{"Idempotency-Key", "X-Idempotency-Key", "Webhook-Id"}) {
		t.Errorf("the names of keys are %q", got)
	}
}

// TestOptionsRefuseNonsense, and name the field.
func TestOptionsRefuseNonsense(t *testing.T) {
	for _, tc := range []struct {
		field string
		spoil func(*Options)
	}{
		{"Options.Namespace", func(o *Options) { o.Namespace = "" }},
		{"Options.Namespace", func(o *Options) { o.Namespace = strings.Repeat("n", 256) }},
		{"Options.Principal", func(o *Options) { o.Principal = nil }},
		{"Options.Challenge", func(o *Options) { o.Challenge = "Bearer\r\nSet-Cookie: a=b" }},
		{"Options.Headers", func(o *Options) { o.Headers = []string{"X Key"} }},
		{"Options.Headers", func(o *Options) { o.Headers = []string{""} }},
		{"Options.Headers", func(o *Options) { o.Headers = []string{"idempotency-key"} }},
		{"Options.WaitMax", func(o *Options) { o.WaitMax = -1 }},
		{"Options.WaitMax", func(o *Options) { o.Wait, o.WaitMax = 2, 1 }},
		{"Options.MaxRequestBody", func(o *Options) { o.MaxRequestBody = -1 }},
		{"Options.MaxAnswer", func(o *Options) { o.MaxAnswer = -1 }},
		{"Options.MaxDecoded", func(o *Options) { o.MaxDecoded = -1 }},
		{"Options.MaxRatio", func(o *Options) { o.MaxRatio = -1 }},
		{"Options.ProblemBase", func(o *Options) { o.ProblemBase = "https://loja.example/#a" }},
		{"Options.ProblemBase", func(o *Options) { o.ProblemBase = "://" }},
		{"Options.Docs", func(o *Options) { o.Docs = "https://loja.example/>; rel=next" }},
		{"Options.Docs", func(o *Options) { o.Docs = "https://loja.example/\r\n" }},
	} {
		o := Options{Namespace: "loja", Principal: Anonymous}
		tc.spoil(&o)
		if _, err := o.check(); err == nil || !strings.Contains(err.Error(), tc.field) || !strings.HasPrefix(err.Error(), "umavez: ") {
			t.Errorf("%+v: %v; want it to name %s", o, err, tc.field)
		}
	}
}

func TestRouteDefaults(t *testing.T) {
	rt, err := Route{}.check()
	if err != nil || !slices.Equal(rt.Methods, []string{"POST", "PATCH"}) || rt.Preset != Standard {
		t.Errorf("the defaults are %+v, %v", rt, err)
	}
}

// TestK1_SafeMethodsCannotBeEnrolled: they always pass, and a route that says
// otherwise is a misunderstanding.
func TestK1_SafeMethodsCannotBeEnrolled(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"} {
		if _, err := (Route{Methods: []string{"POST", method}}).check(); err == nil || !strings.Contains(err.Error(), method) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if rt, err := (Route{Methods: []string{"PUT", "DELETE"}}).check(); err != nil || len(rt.Methods) != 2 {
		t.Errorf("PUT and DELETE, by choice: %v", err)
	}
}

func TestRouteRefusesNonsense(t *testing.T) {
	for _, tc := range []struct {
		field string
		route Route
	}{
		{"Route.Name", Route{Name: strings.Repeat("n", umavez.MaxRoute+1)}},
		{"Route.Methods", Route{Methods: []string{}}},
		{"Route.Methods", Route{Methods: []string{"post"}}},
		{"Route.Methods", Route{Methods: []string{"PO ST"}}},
		{"Route.Release", Route{Release: []int{404, 200}}},
		{"Route.Release", Route{Release: []int{600}}},
		{"Route.ReleaseNone", Route{Release: []int{404}, ReleaseNone: true}},
		{"Route.ReleaseNone", Route{Preset: SuccessOnly, ReleaseNone: true}},
		{"Route.Preset", Route{Preset: 9}},
		{"Route.Headers", Route{Headers: []string{"a b"}}},
		{"Route.Echo", Route{Echo: []string{"a:b"}}},
		{"Route.Formerly", Route{Formerly: []Comparison{{Headers: []string{"a:b"}}}}},
		{"Route.Retain", Route{Retain: -1}},
		{"Exclude", Route{Raw: true, Exclude: []string{"/a"}}},
		{"Host", Route{Headers: []string{"host"}}},
		{"does not begin with a slash", Route{Exclude: []string{"a"}}},
		{"as a whole", Route{Exclude: []string{""}}},
		{"neither 0 nor 1", Route{Exclude: []string{"/a~2"}}},
		{"neither 0 nor 1", Route{Formerly: []Comparison{{Exclude: []string{"/a~"}}}}},
	} {
		if _, err := tc.route.check(); err == nil || !strings.Contains(err.Error(), tc.field) || !strings.HasPrefix(err.Error(), "umavez: ") {
			t.Errorf("%+v: %v; want it to name %s", tc.route, err, tc.field)
		}
	}
}

// TestRouteIsCopied: what a caller does to its slices afterwards changes nothing.
func TestRouteIsCopied(t *testing.T) {
	mine := Route{
		Methods: []string{http.MethodPut}, Release: []int{404}, Exclude: []string{"/a"},
		Headers: []string{"X-A"}, Echo: []string{"X-B"}, Formerly: []Comparison{{Exclude: []string{"/c"}}},
	}
	rt, err := mine.check()
	if err != nil {
		t.Fatal(err)
	}
	mine.Methods[0], mine.Release[0], mine.Exclude[0], mine.Headers[0], mine.Echo[0] = "GET", 200, "/z", "X-Z", "X-Z"
	mine.Formerly[0].Exclude[0] = "/z"
	mine.Formerly[0].Raw = true
	if rt.Methods[0] != "PUT" || rt.Release[0] != 404 || rt.Exclude[0] != "/a" || rt.Headers[0] != "X-A" || rt.Echo[0] != "X-B" ||
		rt.Formerly[0].Exclude[0] != "/c" || rt.Formerly[0].Raw {
		t.Errorf("the route changed with its caller's: %+v", rt)
	}
}

func TestPresetNames(t *testing.T) {
	for p, want := range map[Preset]string{Standard: "standard", SuccessOnly: "success-only", Everything: "everything", 9: "invalid"} {
		if p.String() != want {
			t.Errorf("%d is %q", p, p)
		}
	}
}

package umavezecho_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezecho"
	"github.com/umavez/umavez/umavezhttp"
)

// panicOf returns what f panics with, or empty.
func panicOf(f func()) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

func ask(context.Context, umavez.LostRecord) (umavez.Verdict, error) {
	return umavez.StillUnknown(), nil
}

// TestNonsenseIsRefusedAtWiring names what is wrong.
func TestNonsenseIsRefusedAtWiring(t *testing.T) {
	plain := newOnce(t, umavezhttp.Route{})
	named := newOnce(t, umavezhttp.Route{Name: "pagar"})
	keeps := newOnce(t, umavezhttp.Route{Name: "pagar", KeepRequest: true, PlainRequests: true})
	reconciler := umavez.Reconciler{Ask: ask}
	for name, tc := range map[string]struct {
		wire func()
		says string
	}{
		"no Once":               {func() { umavezecho.Opaque(nil) }, "umavezecho.Opaque needs a Once"},
		"no Once, stepped":      {func() { umavezecho.Stepped(nil) }, "umavezecho.Stepped needs a Once"},
		"no Once, rerunnable":   {func() { umavezecho.Rerunnable(nil) }, "umavezecho.Rerunnable needs a Once"},
		"no Once, status":       {func() { umavezecho.Status(nil) }, "umavezecho.Status needs a Once"},
		"no function":           {func() { umavezecho.Principal(nil) }, "without a function"},
		"completer, stepped":    {func() { umavezecho.Stepped(keeps) }, "Route.KeepRequest is for a completer"},
		"completer, rerunnable": {func() { umavezecho.Rerunnable(keeps, reconciler) }, "Route.KeepRequest is for a completer"},
		"two reconcilers":       {func() { umavezecho.Opaque(named, reconciler, reconciler) }, "one reconciler at most"},
		"no name":               {func() { umavezecho.Opaque(plain, reconciler) }, "needs a Route.Name"},
		"nobody to ask":         {func() { umavezecho.Opaque(named, umavez.Reconciler{}) }, "Reconciler.Ask is missing"},
		"kept, reconciled":      {func() { umavezecho.Opaque(keeps, reconciler) }, ""},
	} {
		if said := panicOf(tc.wire); !strings.Contains(said, tc.says) || (tc.says == "") != (said == "") {
			t.Errorf("%s: panics with %q, want %q", name, said, tc.says)
		}
	}
}

// TestProtectedTwice: it shows on the first request with a key.
func TestProtectedTwice(t *testing.T) {
	s := newService(t)
	s.POST("/pagar", s.counted(func(c *echo.Context) error { return c.NoContent(204) }),
		umavezecho.Opaque(s.once), umavezecho.Stepped(s.once))
	if r := s.post(t, "/pagar", "k", payment); r.status != 500 || !strings.Contains(r.seen.err, "/pagar is protected twice") {
		t.Errorf("%v, seen %+v", r, r.seen)
	}
	s.ran(t, 0)
}

// TestReconciler: a lost operation's request and route are in its record, and
// the reconciler's answer is everybody's.
func TestReconciler(t *testing.T) {
	eng := newEngine(t)
	s := newService(t)
	s.once = onceOver(t, eng, umavezhttp.Route{Name: "pagar", KeepRequest: true, PlainRequests: true})
	var lost umavez.LostRecord
	pay := umavezecho.Opaque(s.once, umavez.Reconciler{After: time.Nanosecond, Ask: func(_ context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
		lost = l
		return umavezhttp.Happened(umavezhttp.Answer{Status: 201, Body: []byte("found")})
	}})
	s.POST("/pedidos/:id/pagar", s.counted(func(c *echo.Context) error {
		if c.Request().Header.Get("Authorization") != "" {
			t.Error("a handler is shown what is not kept")
		}
		panic("after the charge")
	}), pay)
	r := s.request(t, http.MethodPost, "/pedidos/42/pagar", "k", payment)
	r.Header.Set("Authorization", "Basic x")
	if got := s.mustDo(t, r); got.status != 500 {
		t.Errorf("%v", got)
	}
	<-s.logs
	again := s.post(t, "/pedidos/42/pagar", "k", payment)
	if again.status != 201 || again.body != "found" || !again.replayed() {
		t.Errorf("%v", again)
	}
	var kept umavezhttp.Request
	if err := kept.UnmarshalBinary(lost.Request); err != nil {
		t.Fatal(err)
	}
	if lost.Route != "pagar" || kept.Pattern != "POST /pedidos/:id/pagar" || kept.Principal != "acme" || string(kept.Body) != payment {
		t.Errorf("route %q, kept %+v", lost.Route, kept)
	}
	s.ran(t, 1)
}

// TestRouteName: without a name of its own a record has method and template.
func TestRouteName(t *testing.T) {
	eng := newEngine(t)
	s := newService(t)
	s.once = onceOver(t, eng, umavezhttp.Route{})
	s.POST("/pedidos/:id/pagar", func(c *echo.Context) error { return c.NoContent(201) }, umavezecho.Opaque(s.once))
	s.post(t, "/pedidos/42/pagar", "k", payment)
	listed, err := eng.List(t.Context(), umavez.Query{Limit: 1})
	if err != nil || len(listed) != 1 || listed[0].Route != "POST /pedidos/:id/pagar" {
		t.Errorf("%+v, %v", listed, err)
	}
}

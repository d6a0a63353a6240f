package umavezgin_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezgin"
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
		"no Once":               {func() { umavezgin.Opaque(nil) }, "umavezgin.Opaque needs a Once"},
		"no Once, stepped":      {func() { umavezgin.Stepped(nil) }, "umavezgin.Stepped needs a Once"},
		"no Once, rerunnable":   {func() { umavezgin.Rerunnable(nil) }, "umavezgin.Rerunnable needs a Once"},
		"no Once, status":       {func() { umavezgin.Status(nil) }, "umavezgin.Status needs a Once"},
		"no function":           {func() { umavezgin.Principal(nil) }, "without a function"},
		"completer, stepped":    {func() { umavezgin.Stepped(keeps) }, "Route.KeepRequest is for a completer"},
		"completer, rerunnable": {func() { umavezgin.Rerunnable(keeps, reconciler) }, "Route.KeepRequest is for a completer"},
		"two reconcilers":       {func() { umavezgin.Opaque(named, reconciler, reconciler) }, "one reconciler at most"},
		"no name":               {func() { umavezgin.Opaque(plain, reconciler) }, "needs a Route.Name"},
		"nobody to ask":         {func() { umavezgin.Opaque(named, umavez.Reconciler{}) }, "Reconciler.Ask is missing"},
		"kept, reconciled":      {func() { umavezgin.Opaque(keeps, reconciler) }, ""},
	} {
		if said := panicOf(tc.wire); !strings.Contains(said, tc.says) || (tc.says == "") != (said == "") {
			t.Errorf("%s: panics with %q, want %q", name, said, tc.says)
		}
	}
}

// TestProtectedTwice: it shows on the first request with a key, before a claim.
func TestProtectedTwice(t *testing.T) {
	s := newService(t)
	var said any
	s.POST("/pagar", func(c *gin.Context) {
		defer func() { said = recover(); c.AbortWithStatus(500) }()
		c.Next()
	}, umavezgin.Opaque(s.once), umavezgin.Stepped(s.once), s.counted(func(c *gin.Context) {}))
	if r := s.post(t, "/pagar", "k", payment); r.status != 500 || !strings.Contains(fmt.Sprint(said), "/pagar is protected twice") {
		t.Errorf("%v, panic %v", r, said)
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
	pay := umavezgin.Opaque(s.once, umavez.Reconciler{After: time.Nanosecond, Ask: func(_ context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
		lost = l
		return umavezhttp.Happened(umavezhttp.Answer{Status: 201, Body: []byte("found")})
	}})
	s.POST("/pedidos/:id/pagar", pay, s.counted(func(c *gin.Context) {
		if c.GetHeader("Authorization") != "" {
			t.Error("a handler is shown what is not kept")
		}
		panic("after the charge")
	}))
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
	s.POST("/pedidos/:id/pagar", umavezgin.Opaque(s.once), func(c *gin.Context) { c.Status(201) })
	s.post(t, "/pedidos/42/pagar", "k", payment)
	listed, err := eng.List(t.Context(), umavez.Query{Limit: 1})
	if err != nil || len(listed) != 1 || listed[0].Route != "POST /pedidos/:id/pagar" {
		t.Errorf("%+v, %v", listed, err)
	}
}

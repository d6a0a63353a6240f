package umavezhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// TestR14_TooManyUnsettled: a caller with too many open keys gets no new ones,
// and is told when to come again. What has an answer is answered, other callers
// are served, and once some are settled it goes on.
func TestR14_TooManyUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		var broken atomic.Bool
		store := memstore.New(memstore.Options{})
		tenant := func(r *http.Request) (string, error) { return r.Header.Get("X-Tenant"), nil }
		h := setup{
			store: store, engine: umavez.Options{MaxUnsettled: 3}, http: umavezhttp.Options{Principal: tenant},
		}.opaque(t, counted(&runs, func(w http.ResponseWriter, r *http.Request) {
			if broken.Load() {
				panic(http.ErrAbortHandler)
			}
			pay(w, r)
		}))
		first := post(h, "done", "X-Tenant", "acme")
		broken.Store(true)
		for i := range 3 {
			mustPanic(t, func() { post(h, fmt.Sprint("lost", i), "X-Tenant", "acme") })
		}
		broken.Store(false)
		got := post(h, "new", "X-Tenant", "acme")
		got.mustRefuse(t, 429, "too-many-unsettled")
		got.mustWait(t, "30")
		if got.header["Stripe-Should-Retry"] != nil {
			t.Errorf("whether it helps depends on what is open, and nobody can say: %v", got)
		}
		pt := post(h, "new", "X-Tenant", "acme", "Accept-Language", "pt-BR")
		if pt.mustRefuse(t, 429, "too-many-unsettled"); !strings.Contains(pt.problem().Detail, "resultado em aberto") {
			t.Errorf("in Portuguese: %q", pt.problem().Detail)
		}
		if runs.Load() != 4 {
			t.Errorf("ran %d times", runs.Load())
		}
		post(h, "done", "X-Tenant", "acme").mustEqual(t, first)
		post(h, "lost0", "X-Tenant", "acme").mustRefuse(t, 409, "outcome-unknown")
		if got := post(h, "new", "X-Tenant", "other"); got.status != 201 {
			t.Errorf("another caller: %v", got)
		}
		lost, err := store.List(t.Context(), umavez.Query{Unknown: true, Limit: 10})
		if err != nil || len(lost) != 3 {
			t.Fatalf("%d are unknown, %v", len(lost), err)
		}
		time.Sleep(time.Hour)
		err = store.Settle(t.Context(), lost[0].ID, umavez.Settlement{
			ID: umavez.NewAttemptID(), Action: umavez.ActionCannotHappen, Fence: lost[0].Fence, Who: "test", Why: "test",
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := post(h, "new", "X-Tenant", "acme"); got.status != 201 {
			t.Errorf("after a settlement: %v", got)
		}
	})
}

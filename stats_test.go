package umavez_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s := newFaultStore(memstore.New(memstore.Options{}), func(op string, _ int) fault {
			return fault{lost: away.Load() && (op == "complete" || op == "release")}
		})
		e := newEngine(t, s, umavez.Options{})
		defer closeEngine(t, e)
		a, b := mustClaim(t, e, opaque("a")), mustClaim(t, e, opaque("b"))
		go func() {
			op := opaque("a")
			op.Wait = time.Minute
			if _, _, err := e.Claim(t.Context(), op); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if got, want := e.Stats(), (umavez.Stats{Running: 2, Waiting: 1}); got != want {
			t.Errorf("running: %+v, want %+v", got, want)
		}
		away.Store(true)
		if err := errors.Join(a.Complete(make([]byte, 100)), b.Release(nil)); !errors.Is(err, umavez.ErrUnsaved) {
			t.Fatal(err)
		}
		want := umavez.Stats{Running: 2, Waiting: 1, Backlog: 2, UnsavedBytes: 100, Releases: 1}
		if got := e.Stats(); got != want {
			t.Errorf("unsaved: %+v, want %+v", got, want)
		}
		away.Store(false)
		time.Sleep(5 * time.Second)
		if got := e.Stats(); got != (umavez.Stats{}) {
			t.Errorf("at rest: %+v", got)
		}
	})
}

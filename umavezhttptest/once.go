package umavezhttptest

import (
	"context"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// closeTimeout is how long an engine may take to end with its test. Operations
// in tests are over long before.
const closeTimeout = 10 * time.Second

// Once returns a Once over an empty store in memory, for callers that are not
// told apart. Its engine ends with the test, which fails if an operation is
// still running then.
func Once(t T) *umavezhttp.Once {
	t.Helper()
	return OnceWith(t, umavezhttp.Options{Namespace: "test", Principal: umavezhttp.Anonymous})
}

// OnceWith is Once with the service's own options.
func OnceWith(t T, o umavezhttp.Options) *umavezhttp.Once {
	t.Helper()
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := eng.Close(ctx); err != nil {
			t.Fatalf("%v", err)
		}
	})
	once, err := umavezhttp.New(eng, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return once
}

package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/proxy"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// A sidecar in front of an API that charges for every request it gets.
func Example() {
	charges := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charges++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"%d","status":"aprovado"}`, charges)
	}))
	defer api.Close()

	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	defer eng.Close(context.Background())
	sidecar, err := proxy.New(eng, proxy.Options{
		Upstream:  api.URL,
		Routes:    []proxy.Route{{Pattern: "POST /pagamentos"}},
		Principal: proxy.NoPrincipal(),
		HTTP:      umavezhttp.Options{Namespace: "loja"},
	})
	if err != nil {
		panic(err)
	}
	defer sidecar.Close()
	server := httptest.NewServer(sidecar)
	defer server.Close()

	for range 2 {
		r, _ := http.NewRequest("POST", server.URL+"/pagamentos", strings.NewReader(`{"valor":100}`))
		r.Header.Set("Idempotency-Key", "8e03978e-40d5-43dd-bc93-6894a57f9324")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Printf("%d %s replayed=%q\n", res.StatusCode, body, res.Header.Get("Idempotent-Replayed"))
	}
	fmt.Println("charges:", charges)
	// Output:
	// 201 {"id":"1","status":"aprovado"} replayed=""
	// 201 {"id":"1","status":"aprovado"} replayed="true"
	// charges: 1
}

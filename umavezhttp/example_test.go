package umavezhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// A payment is sent twice, as after a timeout. It is made once, and both get its
// answer.
func ExampleOnce_Opaque() {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	defer eng.Close(context.Background())
	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "loja", Principal: umavezhttp.Anonymous})
	if err != nil {
		panic(err)
	}
	payments := 0
	mux := http.NewServeMux()
	mux.Handle("POST /pagamentos", once.Opaque(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	})))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/pagamentos", strings.NewReader(`{"valor":1990}`))
		r.Header.Set("Idempotency-Key", "8e03978e-40d5-43e8-bc93-6894a57f9324")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Body)
		fmt.Printf("%d %s, replayed: %q\n", w.Code, body, w.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// 201 payment 1, replayed: ""
	// 201 payment 1, replayed: "true"
}

// A handler that knows that it has done nothing says so, whatever its status:
// the next attempt runs.
func ExampleOnce_Opaque_release() {
	eng, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	defer eng.Close(context.Background())
	once, err := umavezhttp.New(eng, umavezhttp.Options{Namespace: "loja", Principal: umavezhttp.Anonymous})
	if err != nil {
		panic(err)
	}
	stock := 0
	h := once.Opaque(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stock == 0 {
			stock++ // it arrives a little later
			_ = umavez.Release(r.Context())
			w.WriteHeader(http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/pedidos", nil)
		r.Header.Set("Idempotency-Key", "8e03978e-40d5-43e8-bc93-6894a57f9324")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 409
	// 201
}

// An answer outlives the process that gave it, so its stored form can be read
// and made by others: by somebody who settles a key, say.
func ExampleAnswer() {
	paid := umavezhttp.Answer{
		Status: http.StatusCreated,
		Header: http.Header{"Location": {"/pagamentos/42"}},
		Body:   []byte(`{"id":"42"}`),
	}
	stored, err := paid.MarshalBinary()
	if err != nil {
		panic(err)
	}
	var again umavezhttp.Answer
	if err := again.UnmarshalBinary(stored); err != nil {
		panic(err)
	}
	fmt.Println(again.Status, again.Header.Get("Location"), string(again.Body))

	stored[20] ^= 1
	fmt.Println(again.UnmarshalBinary(stored))
	// Output:
	// 201 /pagamentos/42 {"id":"42"}
	// umavez: stored answer: the check does not match at byte 49
}

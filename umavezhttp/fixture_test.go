package umavezhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/leak"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// TestMain fails when a test has left a goroutine of ours behind.
func TestMain(m *testing.M) { leak.Main(m) }

// setup is what a test wants to be different from the defaults.
type setup struct {
	store  umavez.Store
	engine umavez.Options
	http   umavezhttp.Options
	route  umavezhttp.Route
	// works runs the engine's housekeeping, completers and reconcilers included.
	works bool
}

// once makes a Once over a store in memory, and ends its engine with the test.
func (s setup) once(t testing.TB) *umavezhttp.Once {
	t.Helper()
	if s.store == nil {
		s.store = memstore.New(memstore.Options{})
	}
	eng, err := umavez.New(s.store, s.engine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := eng.Close(ctx); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	if s.works {
		ctx, stop := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- eng.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ran; err != nil {
				t.Errorf("the engine's housekeeping: %v", err)
			}
		})
	}
	if s.http.Namespace == "" {
		s.http.Namespace = "loja"
	}
	if s.http.Principal == nil {
		s.http.Principal = umavezhttp.Anonymous
	}
	once, err := umavezhttp.New(eng, s.http)
	if err != nil {
		t.Fatal(err)
	}
	if once, err = once.With(s.route); err != nil {
		t.Fatal(err)
	}
	return once
}

// opaque protects a handler under a setup.
func (s setup) opaque(t testing.TB, h http.HandlerFunc) http.Handler { return s.once(t).Opaque(h) }

// counted counts how often a handler runs.
func counted(n *atomic.Int64, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h(w, r)
	}
}

// pay is an operation with an answer of the usual kind.
func pay(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/pagamentos/42")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, `{"id":"42","status":"aprovado"}`+"\n")
}

// answers writes one fixed answer.
func answers(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Add(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		if body != "" {
			io.WriteString(w, body)
		}
	}
}

const payment = `{"valor":1990,"cartao":"4242424242424242"}`

// newRequest is a POST of a payment with a key, from header name and value pairs.
func newRequest(key string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/pagamentos", strings.NewReader(payment))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// reply is an answer as a client has it.
type reply struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
}

// post sends a payment to a handler, without a socket.
func post(h http.Handler, key string, headers ...string) reply {
	return serve(h, newRequest(key, headers...))
}

func serve(h http.Handler, r *http.Request) reply {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return replyOf(w.Result())
}

func replyOf(resp *http.Response) reply {
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	return reply{resp.StatusCode, resp.Header, string(body), resp.Trailer}
}

func (r reply) String() string { return fmt.Sprintf("%d %v %q", r.status, r.header, r.body) }

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// problem is a refusal of ours, or one without a code if the answer is none.
func (r reply) problem() (p umavezhttp.Problem) {
	if r.header.Get("Content-Type") == "application/problem+json" {
		_ = json.Unmarshal([]byte(r.body), &p)
	}
	return p
}

// mustRefuse checks that the answer is a refusal with this status and code.
func (r reply) mustRefuse(t *testing.T, status int, code string) {
	t.Helper()
	if r.status != status || r.problem().Code != code {
		t.Fatalf("got %v, want a refusal: %d %s", r, status, code)
	}
}

// mustEqual checks that a replay says what the first answer said: status, body,
// and every header but those that are about the moment.
func (r reply) mustEqual(t *testing.T, first reply) {
	t.Helper()
	if r.status != first.status || r.body != first.body {
		t.Fatalf("replayed: %v\nfirst:    %v", r, first)
	}
	a, b := comparable(first.header), comparable(r.header)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Fatalf("replayed header: %v\nfirst header:    %v", b, a)
	}
	if fmt.Sprint(first.trailer) != fmt.Sprint(r.trailer) {
		t.Fatalf("replayed trailer: %v\nfirst trailer:    %v", r.trailer, first.trailer)
	}
}

func comparable(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"Idempotent-Replayed", "Idempotency-Status", "Date", "Preference-Applied"} {
		h.Del(name)
	}
	return h
}

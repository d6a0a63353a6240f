package umavezhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/umavezhttp"
)

// TestMain fails when a test has left a goroutine of ours behind.
func TestMain(m *testing.M) {
	status := m.Run()
	if left := goroutinesLeft(5 * time.Second); status == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		status = 1
	}
	os.Exit(status)
}

// goroutinesLeft returns the stacks of goroutines in this module's code, once
// some are still there after the patience.
func goroutinesLeft(patience time.Duration) string {
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		var left []string
		for i, stack := range strings.Split(string(buf), "\n\n") {
			if i > 0 && strings.Contains(stack, "umavez/umavez") { // the first is this one
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		select {
		case <-tick.C:
		case <-deadline:
			return strings.Join(left, "\n\n")
		}
	}
}

// setup is what a test wants to be different from the defaults.
type setup struct {
	store  umavez.Store
	engine umavez.Options
	http   umavezhttp.Options
	route  umavezhttp.Route
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
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := eng.Close(ctx); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
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

// faultyStore lets a test fail the calls of a store, and see their order.
type faultyStore struct {
	umavez.Store
	// before is asked before a call; an error is the call's, which then is not
	// made. after is told of the call, and may lose its reply.
	before, after func(op string) error
}

var errStoreDown = &umavez.StoreError{Op: "test", Applied: umavez.No, Err: errors.New("secret: connection refused")}

func (s *faultyStore) call(op string, do func() error) error {
	if s.before != nil {
		if err := s.before(op); err != nil {
			return err
		}
	}
	err := do()
	if s.after != nil {
		if lost := s.after(op); lost != nil {
			return lost
		}
	}
	return err
}

func (s *faultyStore) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (rec umavez.Record, acquired bool, err error) {
	err = s.call("claim", func() error {
		rec, acquired, err = s.Store.Claim(ctx, id, req)
		return err
	})
	return rec, acquired, err
}

func (s *faultyStore) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.call("note", func() error { return s.Store.Checkpoint(ctx, l, step, result) })
}

func (s *faultyStore) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.call("complete", func() error { return s.Store.Complete(ctx, l, answer, keep) })
}

func (s *faultyStore) Release(ctx context.Context, l umavez.Lease) error {
	return s.call("release", func() error { return s.Store.Release(ctx, l) })
}

func (s *faultyStore) Abandon(ctx context.Context, l umavez.Lease, why umavez.Reason, last []byte) error {
	return s.call("abandon", func() error { return s.Store.Abandon(ctx, l, why, last) })
}

func (s *faultyStore) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.call("extend", func() error { return s.Store.Extend(ctx, l, d) })
}

func (s *faultyStore) Get(ctx context.Context, id umavez.ID) (rec umavez.Record, err error) {
	err = s.call("get", func() error {
		rec, err = s.Store.Get(ctx, id)
		return err
	})
	return rec, err
}

// journal lists what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, " ")
}

// journaling is a store that writes down its calls once they are acknowledged.
func journaling(j *journal) *faultyStore {
	return &faultyStore{Store: memstore.New(memstore.Options{}), after: func(op string) error {
		j.add(op)
		return nil
	}}
}

// journalWriter is a client's ResponseWriter that writes down what reaches it.
type journalWriter struct {
	*httptest.ResponseRecorder
	j *journal
}

func (w journalWriter) WriteHeader(status int) {
	w.j.add(fmt.Sprint("header-", status))
	w.ResponseRecorder.WriteHeader(status)
}

func (w journalWriter) Write(p []byte) (int, error) {
	w.j.add(fmt.Sprint("body-", len(p)))
	return w.ResponseRecorder.Write(p)
}

func (w journalWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w journalWriter) Flush() {
	w.j.add("flush")
	w.ResponseRecorder.Flush()
}

// damagedStore flips a bit of every answer, or of every last word, that it gives.
func damagedStore(state string) umavez.Store {
	return &damaging{Store: memstore.New(memstore.Options{}), state: state}
}

type damaging struct {
	umavez.Store
	state string
}

func (s *damaging) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	rec, acquired, err := s.Store.Claim(ctx, id, req)
	flip := func(b []byte) []byte {
		b = append([]byte(nil), b...)
		if len(b) > 0 {
			b[len(b)/2] ^= 4
		}
		return b
	}
	switch s.state {
	case "done":
		rec.Answer = flip(rec.Answer)
	case "lost":
		rec.Last = flip(rec.Last)
	}
	return rec, acquired, err
}

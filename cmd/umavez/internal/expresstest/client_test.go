package expresstest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// What a server may say to an attempt: a status line, headers and a body. "cut"
// is a connection that breaks after the request has arrived.
const (
	cut         = "cut"
	paid        = `201 {"id":"pag_1","status":"aprovado"}`
	inProgress  = `409 Retry-After:0 {"code":"in-progress"}`
	lost        = `409 {"code":"outcome-unknown"}`
	asked       = `409 Retry-After:0 {"code":"outcome-unknown"}`
	ownConflict = `409 {"erro":"pedido já pago"}`
)

// tries is how often a client tries here before it gives up.
const tries = 4

// TestClient: what client.js makes of a course of answers. The last one is given
// to every further attempt.
func TestClient(t *testing.T) {
	needsNode(t)
	for _, c := range []struct {
		name     string
		answers  []string
		outcome  int
		attempts int
	}{
		{"paid", []string{paid}, 0, 1},
		{"a network error", []string{cut, paid}, 0, 2},
		{"in progress", []string{inProgress, inProgress, paid}, 0, 3},
		{"too early, too many, and a 503", []string{`425 {}`, `429 {}`, `503 {}`, paid}, 0, 4},
		{"refused", []string{`400 {"erro":"valor"}`}, 1, 1},
		{"refused by the application's own 409", []string{ownConflict}, 1, 1},
		{"a key of another request", []string{`422 {"code":"key-reused"}`}, 1, 1},
		{"always too many", []string{`429 {}`}, 1, tries},
		{"a 5xx with its unknown outcome", []string{`500 Idempotency-Status:unknown {}`}, 3, 1},
		{"a replayed 5xx", []string{`500 Idempotent-Replayed:true {}`}, 3, 1},
		{"outcome unknown", []string{lost}, 3, 1},
		{"outcome unknown, and somebody is asked", []string{asked, paid}, 0, 2},
		{"it happened, and its answer was not kept", []string{`409 {"code":"replay-unavailable"}`}, 3, 1},
		{"only network errors", []string{cut}, 3, tries},
		{"only 500", []string{`500 {}`}, 3, tries},
		{"the store is away, and nothing was run", []string{`503 {"code":"store-unavailable"}`}, 1, tries},
		{"an attempt was lost, and then the token was refused", []string{cut, `401 {"code":"unauthenticated"}`}, 3, 2},
		{"an attempt was lost, and then the key was refused", []string{cut, `422 {"code":"key-reused"}`}, 3, 2},
		{"an attempt was lost, and then the payment was refused", []string{cut, `402 {"erro":"sem saldo"}`}, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := newScript(t, c.answers)
			client := exec.CommandContext(t.Context(), "node", filepath.Join(root, "examples", "express", "client.js"),
				"--url", server.URL, "--tries", strconv.Itoa(tries), "49.90", "4111111111111111")
			said, _ := client.CombinedOutput() // the exit status is looked at below
			attempts := server.attempts()
			if got := client.ProcessState.ExitCode(); got != c.outcome || len(attempts) != c.attempts {
				t.Errorf("it ended with %d after %d attempts, want %d after %d; it wrote:\n%s",
					got, len(attempts), c.outcome, c.attempts, said)
			}
			for _, attempt := range attempts {
				if attempt != attempts[0] {
					t.Errorf("two attempts of one intent are %q and %q", attempts[0], attempt)
				}
			}
		})
	}
}

// script is a server that gives answers in their order, and keeps what it was asked.
type script struct {
	*httptest.Server

	mu      sync.Mutex
	answers []string
	seen    []string // key and body of each attempt
}

func newScript(t *testing.T, answers []string) *script {
	t.Helper()
	s := &script{answers: answers}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// next writes an attempt down and says how it is answered.
func (s *script) next(attempt string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.answers[min(len(s.seen), len(s.answers)-1)]
	s.seen = append(s.seen, attempt)
	return answer
}

// attempts returns key and body of each attempt so far.
func (s *script) attempts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the request never arrived
	}
	answer := s.next(r.Header.Get("Idempotency-Key") + " " + string(body))
	if answer == cut {
		panic(http.ErrAbortHandler)
	}
	head, text, _ := strings.Cut(answer, "{")
	words := strings.Fields(head)
	for _, h := range words[1:] {
		name, value, _ := strings.Cut(h, ":")
		w.Header().Set(name, value)
	}
	if strings.HasPrefix(text, `"code"`) {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(status(words[0]))
	_, _ = io.WriteString(w, "{"+text) // the client may have gone
}

// status reads three digits.
func status(word string) (code int) {
	for _, digit := range word {
		code = 10*code + int(digit-'0')
	}
	return code
}

// TestClient_KeyOfAnIntent: a key of its own for each, and a UUID.
func TestClient_KeyOfAnIntent(t *testing.T) {
	needsNode(t)
	server := newScript(t, []string{paid})
	for range 2 {
		client := exec.CommandContext(t.Context(), "node", filepath.Join(root, "examples", "express", "client.js"),
			"--url", server.URL, "49.90", "4111111111111111")
		if said, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s", err, said)
		}
	}
	attempts := server.attempts()
	for _, attempt := range attempts {
		if key, _, _ := strings.Cut(attempt, " "); len(key) != 36 || strings.Count(key, "-") != 4 {
			t.Errorf("the key %q is no UUID", key)
		}
	}
	if attempts[0] == attempts[1] {
		t.Error("two intents have one key")
	}
}

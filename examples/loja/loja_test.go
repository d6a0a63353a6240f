package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// startLoja runs the program as the command line does, and returns its address.
func startLoja(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stderr, lines := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"--listen", "127.0.0.1:0"}, lines) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	ready, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(ready), "loja: listening on ")
	if !ok {
		t.Fatalf("the first line is %q", ready)
	}
	return url
}

// pay sends one attempt and returns its status, its body, and whether it is marked a replay.
func pay(t *testing.T, url, user, key, body string) (status int, text string, replayed bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/pagamentos", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, "segredo-da-"+user)
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(all), res.Header.Get("Idempotent-Replayed") == "true"
}

// TestLojaChargesOnce follows one order through a retry, a mistake, another
// customer with the same key, and a stranger.
func TestLojaChargesOnce(t *testing.T) {
	url := startLoja(t)
	const order, other = `{"valor": 49.90}`, `{"valor": 99.90}`
	steps := []struct {
		name, user, key, body string
		status                int
		contains              string
		replayed              bool
	}{
		{"first attempt", "ana", "pedido-42", order, http.StatusCreated, "pag_1", false},
		{"retry", "ana", "pedido-42", order, http.StatusCreated, "pag_1", true},
		{"another order under the same key", "ana", "pedido-42", other, http.StatusUnprocessableEntity, "key-reused", false},
		{"another customer's equal key", "bia", "pedido-42", order, http.StatusCreated, "pag_2", false},
		{"a stranger", "eva", "pedido-42", order, http.StatusUnauthorized, "who are you", false},
	}
	for _, s := range steps {
		status, text, replayed := pay(t, url, s.user, s.key, s.body)
		if status != s.status || !strings.Contains(text, s.contains) || replayed != s.replayed {
			t.Errorf("%s: answered %d %q, replayed: %v; want %d with %q, replayed: %v",
				s.name, status, text, replayed, s.status, s.contains, s.replayed)
		}
	}
}

func TestLojaRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{{"--listen", "nonsense"}, {"--unknown"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("run(%q) ended without an error", args)
		}
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

const order = `{"valor": 49.90, "cartao": "4111111111111111"}`

func newServer(t *testing.T, ledgerFile string, pause func()) *httptest.Server {
	t.Helper()
	book, err := openLedger(ledgerFile)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(newHandler(book, pause))
	t.Cleanup(func() {
		server.Close()
		if err := book.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func post(t *testing.T, url, key, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/pagamentos", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func charges(t *testing.T, url string) []charge {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/pagamentos", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body := do(t, req)
	var all []charge
	for line := range strings.Lines(body) {
		var c charge
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("ledger line %q: %v", line, err)
		}
		all = append(all, c)
	}
	return all
}

// TestChargesEveryTime: this API charges twice for one key. That is what it is for.
func TestChargesEveryTime(t *testing.T) {
	server := newServer(t, filepath.Join(t.TempDir(), "ledger"), func() {})
	for range 2 {
		res, body := post(t, server.URL, "k1", order)
		var got struct{ ID, Status string }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusCreated || got.Status != "aprovado" || res.Header.Get("Location") != "/pagamentos/"+got.ID {
			t.Errorf("answered %d %q at %q", res.StatusCode, body, res.Header.Get("Location"))
		}
	}
	all := charges(t, server.URL)
	if len(all) != 2 || all[0].ID == all[1].ID {
		t.Fatalf("the ledger holds %v, want two charges", all)
	}
	if want := (charge{ID: all[0].ID, Key: "k1", Amount: "49.90", Card: "1111"}); all[0] != want {
		t.Errorf("the ledger holds %v, want %v", all[0], want)
	}
}

// TestRefusesBeforeCharging: a request that is answered 400 has no effect.
func TestRefusesBeforeCharging(t *testing.T) {
	server := newServer(t, filepath.Join(t.TempDir(), "ledger"), func() {})
	for _, body := range []string{
		"", "{", "[]", "{}", `{"valor": 1}`, `{"cartao": "4111"}`,
		`{"valor": 0, "cartao": "4111"}`, `{"valor": -1, "cartao": "4111"}`, `{"valor": "x", "cartao": "4111"}`,
		`{"valor": 1, "cartao": "` + strings.Repeat("1", 65<<10) + `"}`,
	} {
		if res, text := post(t, server.URL, "k", body); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40q: answered %d %q, want 400", body, res.StatusCode, text)
		}
	}
	if all := charges(t, server.URL); len(all) != 0 {
		t.Errorf("charged %v", all)
	}
}

// TestChargesBeforeItAnswers: a client that gives up has been charged.
func TestChargesBeforeItAnswers(t *testing.T) {
	paused, goOn := make(chan struct{}), make(chan struct{})
	server := newServer(t, filepath.Join(t.TempDir(), "ledger"), func() { close(paused); <-goOn })
	defer close(goOn)
	ctx, giveUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/pagamentos", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-paused; giveUp() }()
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Errorf("answered %s, want no answer", res.Status)
	}
	if all := charges(t, server.URL); len(all) != 1 {
		t.Errorf("the ledger holds %v, want one charge", all)
	}
}

// TestRunServesAndStops goes the way of the command line: flags, the ready line,
// a ledger that is appended to, and an end by signal.
func TestRunServesAndStops(t *testing.T) {
	ledgerFile := filepath.Join(t.TempDir(), "ledger")
	for start := 1; start <= 2; start++ {
		ctx, stop := context.WithCancel(t.Context())
		stderr, lines := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--ledger", ledgerFile}, lines) }()

		ready, err := bufio.NewReader(stderr).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		url, ok := strings.CutPrefix(strings.TrimSpace(ready), "upstream: listening on ")
		if !ok {
			t.Fatalf("the first line is %q", ready)
		}
		post(t, url, "k", order)
		if all := charges(t, url); len(all) != start {
			t.Errorf("after start %d the ledger holds %v", start, all)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	}
}

func TestRunRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{
		{"--ledger", filepath.Join(t.TempDir(), "no such folder", "ledger")},
		{"--ledger", filepath.Join(t.TempDir(), "ledger"), "--listen", "nonsense"},
		{"--unknown"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("run(%q) ended without an error", args)
		}
	}
}

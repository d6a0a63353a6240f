package killtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
)

// killsReconciled is how often the sidecar dies while the upstream charges.
const killsReconciled = 6

// bank is an upstream, and the gateway behind it, which knows no keys: whoever
// sends a charge twice charges twice.
type bank struct {
	url string
	// arrived gets each charge's reference when the upstream has its request.
	arrived chan string

	mu      sync.Mutex
	charged map[string]int
	held    map[string]chan struct{} // charges that are on their way
	asking  map[string]int
	most    int            // questions about one reference at one time
	asked   map[string]int // questions that were answered
}

func newBank(t *testing.T) *bank {
	b := &bank{
		arrived: make(chan string, 1), charged: map[string]int{}, held: map[string]chan struct{}{},
		asking: map[string]int{}, asked: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pay", b.pay)
	mux.HandleFunc("GET /charges", b.list)
	server := httptest.NewServer(mux)
	b.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return b
}

// pay charges, after the hold on its reference if there is one.
func (b *bank) pay(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	reference := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	hold := b.held[reference]
	b.mu.Unlock()
	if hold != nil {
		b.arrived <- reference
		<-hold
	}
	b.mu.Lock()
	b.charged[reference]++
	b.mu.Unlock()
	if hold == nil {
		b.arrived <- reference
		<-r.Context().Done() // whoever waits for the answer is killed meanwhile
	}
	w.WriteHeader(http.StatusCreated)
}

func (b *bank) list(w http.ResponseWriter, r *http.Request) {
	reference := r.URL.Query().Get("reference")
	b.mu.Lock()
	b.asking[reference]++
	b.most = max(b.most, b.asking[reference])
	n := b.charged[reference]
	b.mu.Unlock()
	found := []map[string]string{}
	for range n {
		found = append(found, map[string]string{"reference": reference, "id": "of-" + reference})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asking[reference]--
	b.asked[reference]++
}

func (b *bank) count(reference string) (charged, asked int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.charged[reference], b.asked[reference]
}

// hold keeps a reference's charge on its way until it is let go.
func (b *bank) hold(reference string) (letGo func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gate := make(chan struct{})
	b.held[reference] = gate
	return sync.OnceFunc(func() { close(gate) })
}

// reconciling starts a sidecar on the file that asks the bank.
func reconciling(t *testing.T, b *bank, dir string) *child.Process {
	t.Helper()
	config := filepath.Join(dir, "umavez.yaml")
	err := os.WriteFile(config, []byte(`
upstream: `+b.url+`
principal: none
store: sqlite:`+filepath.Join(dir, "umavez.db")+`
listen: 127.0.0.1:0
admin: ''
lease: `+lease.String()+`
wait: 0s
log-level: error
routes:
  - route: POST /pay
    keep-request: true
    plain-requests: true
    reconcile:
      after: 1ms
      every: 1s
      ask: {url: '`+b.url+`/charges?reference={{.Key}}'}
      rules:
        - status: ['200']
          when: [{at: /0/reference, equals: '{{.Key}}'}]
          verdict: happened
          answer: {status: 201, body: '{"id":{{response "/0/id"}},"valor":{{field "/valor"}}}'}
        - {status: ['200'], verdict: cannot-happen}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(child.Command{
		Path: os.Args[0], Args: []string{"serve", "--config", config},
		Env: []string{asProgram + "=1", envJournal + "=" + filepath.Join(dir, "journal")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// payOnce sends a payment; an error means that the sidecar died meanwhile.
func payOnce(p *child.Process, key string) (status int, body string, err error) {
	req, err := http.NewRequest(http.MethodPost, p.URL+"/pay", strings.NewReader(`{"valor":100}`))
	if err != nil {
		return 0, "", err
	}
	req.Header["idempotency-key"] = []string{key} // so that net/http sends it once
	req.GetBody = nil
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// settled asks until the key has an answer to keep.
func settled(t *testing.T, p *child.Process, key string) string {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status, body, err := payOnce(p, key)
		switch {
		case err != nil:
			t.Fatalf("%s: %v\n%s", key, err, p.Stderr())
		case status == http.StatusCreated:
			return body
		case status != http.StatusConflict:
			t.Fatalf("%s: %d %s", key, status, body)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s was never settled: %s\n%s", key, body, p.Stderr())
		}
	}
}

// TestKilledAndReconciled: the sidecar is killed between charge and answer, again
// and again, and once while a charge is still on its way. Two others on the same
// file then ask the gateway. Every client's retry gets the gateway's answer, and
// nobody was charged twice.
func TestKilledAndReconciled(t *testing.T) {
	t.Parallel()
	b, dir := newBank(t), t.TempDir()
	letGo := b.hold("late")
	t.Cleanup(letGo)
	var keys []string
	for i := range killsReconciled {
		keys = append(keys, fmt.Sprintf("a-%d", i))
	}
	keys = append(keys, "late") // last, since questions grow rarer with the age of the loss
	for _, key := range keys {
		p := reconciling(t, b, dir)
		died := make(chan error, 1)
		go func() {
			_, _, err := payOnce(p, key)
			died <- err
		}()
		if got := <-b.arrived; got != key {
			t.Fatalf("%s charges for %s", key, got)
		}
		p.Kill()
		if err := <-died; err == nil {
			t.Fatalf("%s was answered by a process that was killed before", key)
		}
	}
	one, two := reconciling(t, b, dir), reconciling(t, b, dir)
	for i, key := range keys[:killsReconciled] {
		want := fmt.Sprintf(`{"id":"of-%s","valor":100}`, key)
		if got := settled(t, []*child.Process{one, two}[i%2], key); got != want {
			t.Errorf("%s: the retry got %s, want %s", key, got, want)
		}
	}
	// The charge that is on its way: asked for, not found, and not believed.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for asked := 0; asked == 0; _, asked = b.count("late") {
		if status, body, err := payOnce(one, "late"); err != nil || status != http.StatusConflict {
			t.Fatalf("while its charge was on its way, the retry got %d %s (%v)", status, body, err)
		}
		<-tick.C
	}
	letGo()
	if got := settled(t, two, "late"); got != `{"id":"of-late","valor":100}` {
		t.Errorf("after the charge has arrived the retry got %s", got)
	}
	for _, key := range keys {
		if charged, _ := b.count(key); charged != 1 {
			t.Errorf("%s was charged %d times", key, charged)
		}
	}
	if b.most != 1 {
		t.Errorf("%d processes asked about one key at once", b.most)
	}
}

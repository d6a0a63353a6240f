package killtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// padding makes answers long enough that one can break off in its middle.
var padding = strings.Repeat("0123456789abcdef", 512)

// upstream has an effect for every request that reaches it, and keeps a ledger.
type upstream struct {
	*httptest.Server

	// refuseFirst answers a key's first request with 429, without an effect.
	refuseFirst bool

	mu      sync.Mutex
	effects map[string][]string // key: the answers of its effects
	refused map[string]bool
	// kill, if set, is called once, by the request that makes it 0 by counting
	// down: before or after its effect.
	kill   func()
	before bool
	left   int
}

func newUpstream(t *testing.T, refuseFirst bool) *upstream {
	t.Helper()
	u := &upstream{refuseFirst: refuseFirst, effects: make(map[string][]string), refused: make(map[string]bool)}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

// killAt makes the nth request from now call kill before or after its effect.
func (u *upstream) killAt(nth int, before bool, kill func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.left, u.before, u.kill = nth, before, kill
}

// victim reports whether this request is the one that kills.
func (u *upstream) victim() (kill func(), before bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.kill == nil {
		return nil, false
	}
	if u.left--; u.left > 0 {
		return nil, false
	}
	kill, u.kill = u.kill, nil
	return kill, u.before
}

// ServeHTTP does the operation.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the request never arrived
	}
	if u.refuses(key) {
		http.Error(w, "later", http.StatusTooManyRequests)
		return
	}
	kill, before := u.victim()
	if kill != nil && before {
		// The sidecar dies, and the operation goes on all the same: nobody
		// tells an upstream that whoever asked is gone.
		kill()
	}
	answer := u.effect(key)
	if kill != nil && !before {
		kill()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Effect", key)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

func (u *upstream) refuses(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.refuseFirst || u.refused[key] {
		return false
	}
	u.refused[key] = true
	return true
}

// effect writes into the ledger. Two effects of one key have different answers.
func (u *upstream) effect(key string) (answer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answer = fmt.Sprintf(`{"key":%q,"effect":%d,"padding":%q}`, key, len(u.effects[key])+1, padding)
	u.effects[key] = append(u.effects[key], answer)
	return answer
}

func (u *upstream) ledger(key string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.effects[key]
}

package serve

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// lockedBuffer is written by the process and read by its test.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// until polls for a condition; only a failing test waits to the end.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			stacks := make([]byte, 1<<16)
			t.Fatalf("never happened: %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// goroutines counts them, with the one that package signal starts once and keeps.
func goroutines() int {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	signal.Stop(c)
	return runtime.NumGoroutine()
}

var readyLine = regexp.MustCompile(`umavez: listening on (http://\S+)\n`)

// TestRunEndsWithItsContext: the hooks see every request and moment, and no
// goroutine outlives the process.
func TestRunEndsWithItsContext(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer up.Close()
	before := goroutines()
	cfg, err := fromYAML(t, "upstream: "+up.URL+"\nprincipal: none\nroute: [POST /a]\nstore: 'memory:'\nlisten: 127.0.0.1:0\nadmin: 127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var moments []umavez.Moment
	wrapped := 0
	hooks := Hooks{
		Observe: func(o umavez.Observation) {
			mu.Lock()
			defer mu.Unlock()
			moments = append(moments, o.Moment)
		},
		Wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				wrapped++
				mu.Unlock()
				next.ServeHTTP(w, r)
			})
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stderr, ended := new(lockedBuffer), make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, stderr, hooks) }()
	until(t, "the ready line", func() bool { return readyLine.MatchString(stderr.String()) })
	url := readyLine.FindStringSubmatch(stderr.String())[1]
	client := &http.Client{Transport: &http.Transport{}}
	for range 2 {
		req, err := http.NewRequest(http.MethodPost, url+"/a", strings.NewReader("1"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	want := []umavez.Moment{umavez.MomentClaimed, umavez.MomentStarted, umavez.MomentCompleting, umavez.MomentCompleted, umavez.MomentReplayed}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(moments, want) || wrapped != 2 {
		t.Errorf("the hooks saw %v and %d requests, want %v and 2", moments, wrapped, want)
	}
	client.CloseIdleConnections()
	up.CloseClientConnections()
	until(t, "every goroutine has ended", func() bool { return runtime.NumGoroutine() <= before })
}

// TestRunThatCannotStartLeavesNothing: at whichever step it fails.
func TestRunThatCannotStartLeavesNothing(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	address := taken.Listener.Addr().String()
	before := goroutines()
	base := "upstream: http://127.0.0.1:1\nroute: [POST /a]\nstore: 'memory:'\n"
	for name, yaml := range map[string]string{
		"no certificate": base + "principal: none\nlisten: 127.0.0.1:0\ntls-cert: /does/not/exist\ntls-key: /does/not/exist",
		"no store":       "store: sqlite:/does/not/exist/a.db\nupstream: http://127.0.0.1:1\nroute: [POST /a]\nprincipal: none",
		"no keys":        base + "principal: jwt:iss+sub\njwks: /does/not/exist",
		"listen taken":   base + "principal: none\nlisten: " + address,
		"admin taken":    base + "principal: none\nlisten: 127.0.0.1:0\nadmin: " + address,
	} {
		cfg, err := fromYAML(t, yaml)
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(context.Background(), cfg, io.Discard, Hooks{}); err == nil || !strings.HasPrefix(err.Error(), "umavez: ") {
			t.Errorf("%s: Run = %v", name, err)
		}
	}
	until(t, "every goroutine has ended", func() bool { return runtime.NumGoroutine() <= before })
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
)

// bank is an upstream that charges for every request that reaches it.
type bank struct {
	*httptest.Server
	// entered gets a value when an operation has begun; it then waits for a
	// value of leave. Both are nil for a bank that answers at once.
	entered, leave chan struct{}
	charges        chan string
}

func newBank(t *testing.T, slow bool) *bank {
	t.Helper()
	b := &bank{charges: make(chan string, 1000)}
	if slow {
		b.entered, b.leave = make(chan struct{}, 100), make(chan struct{}, 100)
	}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if slow {
			b.entered <- struct{}{}
			<-b.leave
		}
		b.charges <- string(body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"charged":`+string(body)+`}`)
	}))
	t.Cleanup(func() {
		if slow {
			close(b.leave)
		}
		b.Close()
	})
	return b
}

// answer is what a client sees of an answer.
type answer struct {
	status int
	body   string
	header http.Header
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// post makes one attempt.
func post(client *http.Client, target, key, body string) (answer, error) {
	req, err := http.NewRequest(http.MethodPost, target, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{}, err
	}
	// One attempt is one request: the client must not repeat it by itself.
	req.GetBody = nil
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return do(client, req)
}

func do(client *http.Client, req *http.Request) (answer, error) {
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, string(text), res.Header}, err
}

func mustPost(t *testing.T, target, key, body string) answer {
	t.Helper()
	a, err := post(http.DefaultClient, target, key, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func statusOf(t *testing.T, target string) int {
	t.Helper()
	res, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func protect(b *bank, store string, more ...string) []string {
	return append([]string{
		"--upstream", b.URL, "--route", "POST /pagamentos", "--principal", "none", "--store", store,
	}, more...)
}

func sqliteFile(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "umavez.db")
}

// background posts and delivers the outcome.
func background(target, key, body string) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		a, err := post(http.DefaultClient, target, key, body)
		if err != nil {
			a.body = err.Error()
		}
		done <- a
	}()
	return done
}

// TestDrainFinishesWhatRuns: after SIGTERM no new connection is taken and
// /readyz says so, and the running operation ends, is saved and answered. Its
// answer is there for the next process.
func TestDrainFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	b, store := newBank(t, true), sqliteFile(t)
	p := start(t, protect(b, store)...)
	if got := statusOf(t, p.Admin+"/readyz"); got != http.StatusOK {
		t.Fatalf("readyz is %d before the drain", got)
	}
	done := background(p.URL+"/pagamentos", "k", `1`)
	<-b.entered
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "readyz is 503", func() bool { return statusOf(t, p.Admin+"/readyz") == http.StatusServiceUnavailable })
	waitUntil(t, "the listener is closed", func() bool { return refusesConnections(p) })
	if got := statusOf(t, p.Admin+"/healthz"); got != http.StatusOK {
		t.Errorf("healthz is %d while draining", got)
	}
	select {
	case a := <-done:
		t.Fatalf("answered before the operation ended: %+v", a)
	default:
	}
	b.leave <- struct{}{}
	if a := <-done; a.status != http.StatusCreated || a.body != `{"charged":1}` {
		t.Errorf("the running operation's client got %+v", a)
	}
	if code := p.ExitCode(); code != 0 {
		t.Errorf("exit status %d after a complete drain, want 0", code)
	}

	next := start(t, protect(b, store)...)
	if a := mustPost(t, next.URL+"/pagamentos", "k", `1`); a.status != http.StatusCreated || !a.replayed() {
		t.Errorf("the next process answered %+v", a)
	}
}

// TestDrainWaitsForOperationsWithoutAClient: the client has hung up, and its
// operation must be finished and saved all the same.
func TestDrainWaitsForOperationsWithoutAClient(t *testing.T) {
	t.Parallel()
	b, store := newBank(t, true), sqliteFile(t)
	p := start(t, protect(b, store)...)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/pagamentos", strings.NewReader(`1`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	left := make(chan error, 1)
	go func() {
		_, err := do(http.DefaultClient, req)
		left <- err
	}()
	<-b.entered
	hangUp()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatalf("the client was answered, or got %v", err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the listener is closed", func() bool { return refusesConnections(p) })
	b.leave <- struct{}{}
	if code := p.ExitCode(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	next := start(t, protect(b, store)...)
	if a := mustPost(t, next.URL+"/pagamentos", "k", `1`); a.status != http.StatusCreated || !a.replayed() {
		t.Errorf("the next process answered %+v", a)
	}
}

// TestDrainOverHTTP2: a connection without requests holds nothing up, and one
// with a running operation stays until that has been answered.
func TestDrainOverHTTP2(t *testing.T) {
	t.Parallel()
	b := newBank(t, true)
	p := start(t, protect(b, "memory:")...)
	client := func() *http.Client {
		tr := &http.Transport{Protocols: new(http.Protocols)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	b.leave <- struct{}{}
	if a, err := post(client(), p.URL+"/pagamentos", "idle", `1`); err != nil || a.status != http.StatusCreated {
		t.Fatalf("%+v, %v", a, err)
	}
	<-b.entered
	done := make(chan answer, 1)
	go func() {
		a, err := post(client(), p.URL+"/pagamentos", "running", `2`)
		if err != nil {
			a.body = err.Error()
		}
		done <- a
	}()
	<-b.entered
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the listener is closed", func() bool { return refusesConnections(p) })
	b.leave <- struct{}{}
	if a := <-done; a.status != http.StatusCreated || a.body != `{"charged":2}` {
		t.Errorf("the running operation's client got %+v", a)
	}
	if code := p.ExitCode(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
}

// TestDrainEndsInTime: what does not end within --drain is left, said in the
// log by record ID, and the exit status is 1.
func TestDrainEndsInTime(t *testing.T) {
	t.Parallel()
	b := newBank(t, true)
	p := start(t, protect(b, sqliteFile(t), "--drain", "100ms")...)
	background(p.URL+"/pagamentos", "pedido-42", `1`)
	<-b.entered
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.ExitCode(); code != 1 {
		t.Errorf("exit status %d, want 1", code)
	}
	log := p.Stderr()
	if n := strings.Count(log, "left running"); n != 1 || !strings.Contains(log, `route="POST /pagamentos"`) {
		t.Errorf("the log names %d operations left running, want 1:\n%s", n, log)
	}
	if strings.Contains(log, "pedido-42") {
		t.Errorf("the log shows the key:\n%s", log)
	}
}

// TestSecondSignalEndsAtOnce, for both signals that end a process; but not one
// that comes with the first, as timeout(1) sends it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(second.String(), func(t *testing.T) {
			b := newBank(t, true)
			p := start(t, protect(b, sqliteFile(t), "--drain", "1h")...)
			background(p.URL+"/pagamentos", "k", `1`)
			<-b.entered
			for _, s := range []syscall.Signal{syscall.SIGTERM, second} {
				if err := p.Signal(s); err != nil {
					t.Fatal(err)
				}
				waitUntil(t, "draining", func() bool { return strings.Contains(p.Stderr(), "msg=draining") })
			}
			// Well after the first second, one more; and again only if that one
			// still counted for the same, on a machine that is slow.
			later := time.NewTicker(1500 * time.Millisecond)
			defer later.Stop()
			for signals, over := 2, false; !over; {
				select {
				case <-p.Ended():
					over = true
				case <-later.C:
					if err := p.Signal(second); err != nil && !errors.Is(err, os.ErrProcessDone) {
						t.Fatal(err)
					}
					signals++
					continue
				}
				if signals == 2 {
					t.Error("two signals that came together ended it at once")
				}
			}
			if code := p.ExitCode(); code != 1 {
				t.Errorf("exit status %d, want 1", code)
			}
			if !strings.Contains(p.Stderr(), "umavez: ended at once by a second signal") || !strings.Contains(p.Stderr(), "left running") {
				t.Errorf("the log does not say what was left:\n%s", p.Stderr())
			}
		})
	}
}

// refusesConnections reports whether the listener for clients is closed.
func refusesConnections(p *child.Process) bool {
	u, err := url.Parse(p.URL)
	if err != nil {
		return false
	}
	c, err := net.Dial("tcp", u.Host)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// waitUntil asks again and again until the condition holds; only a failing test
// waits to the end.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never happened: %s", what)
		}
	}
}

package expresstest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
)

// patience is how long a test waits for what must come. Only a fault waits so long.
const patience = 60 * time.Second

// world is the Express server and its clients, with umavez between them or not.
type world struct {
	t *testing.T
	// front is where clients go, and behind what is between them and the server.
	front, behind *relay
	gate          *gate
	ledger, store string
	node, umavez  *child.Process
}

func newWorld(t *testing.T, protected bool) *world {
	t.Helper()
	needsNode(t)
	dir := t.TempDir()
	w := &world{
		t: t, front: newRelay(t), gate: newGate(t),
		ledger: filepath.Join(dir, "ledger.jsonl"), store: filepath.Join(dir, "umavez.db"),
	}
	w.behind = w.front
	if protected {
		w.behind = newRelay(t)
	}
	w.startNode()
	if protected {
		w.startUmavez()
	}
	return w
}

func (w *world) startNode() {
	w.t.Helper()
	w.node = startNode(w.t, []string{"LEDGER=" + w.ledger, "NOTIFY=" + w.gate.URL}, "server.js")
	w.behind.move(address(w.node))
}

func (w *world) startUmavez() {
	w.t.Helper()
	w.umavez = startUmavez(w.t, "--upstream", w.behind.url, "--route", "POST /pagamentos", "--principal", "none",
		"--ignore-case", "--store", "sqlite:"+w.store, "--lease", "2s")
	w.front.move(address(w.umavez))
}

// killNode kills the server where it stands, and starts another one on its ledger.
func (w *world) killNode() {
	w.t.Helper()
	w.behind.move("")
	w.node.Kill()
	w.behind.cut()
	w.startNode()
}

// killFront kills umavez where it stands, and starts it again on its file. Where
// it is not there, the connections break.
func (w *world) killFront() {
	w.t.Helper()
	if w.umavez == nil {
		w.front.cut()
		return
	}
	w.front.move("")
	w.umavez.Kill()
	w.front.cut()
	w.startUmavez()
}

func address(p *child.Process) string { return strings.TrimPrefix(p.URL, "http://") }

// charges returns the ids in the ledger.
func (w *world) charges() []string {
	w.t.Helper()
	text, err := os.ReadFile(w.ledger)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(string(text)) {
		var charge struct{ ID string }
		if err := json.Unmarshal([]byte(line), &charge); err != nil {
			w.t.Fatalf("the ledger holds %q: %v", line, err)
		}
		ids = append(ids, charge.ID)
	}
	return ids
}

// gate is what the server tells of every charge before it answers. While it is
// shut, the server is in the middle of its payment.
type gate struct {
	*httptest.Server
	charged chan struct{} // one for each charge
	opened  chan struct{}
	open    func()
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{charged: make(chan struct{}, 16), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	g.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.charged <- struct{}{}
		select {
		case <-g.opened:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		g.open()
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

func (g *gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.charged:
	case <-time.After(patience):
		t.Fatal("the server did not charge")
	}
}

// purchase is client.js, as it pays.
type purchase struct {
	t      *testing.T
	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer
}

// newKey returns a key of its own for each payment.
func newKey() string { return rand.Text() }

// pay starts the client with a key.
func (w *world) pay(key string) *purchase {
	w.t.Helper()
	p := &purchase{t: w.t, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(w.t.Context(), "node", filepath.Join(root, "examples", "express", "client.js"),
		"--url", w.front.url, "--key", key, "49.90", "4111111111111111")
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its error is the exit status, which outcome reads
		close(p.ended)
	}()
	w.t.Cleanup(p.kill)
	return p
}

// kill ends the client where it stands.
func (p *purchase) kill() {
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	<-p.ended
}

// outcome waits for the end and returns what the client says that it knows, and
// its words.
func (p *purchase) outcome() (outcome, said string) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.kill()
		p.t.Fatalf("the client did not end; it wrote:\n%s", p.output.String())
	}
	said = p.output.String()
	switch code := p.cmd.ProcessState.ExitCode(); code {
	case 0:
		return done, said
	case 3:
		return unknown, said
	default:
		p.t.Fatalf("the client ended with %d; it wrote:\n%s", code, said)
		return "", ""
	}
}

// What a client knows in the end.
const (
	done    = "done"
	unknown = "unknown"
)

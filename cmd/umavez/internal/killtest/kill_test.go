package killtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
)

const (
	// killsEach is how often the process dies in each phase.
	killsEach = 20
	// clients is how many keys are under way at a time.
	clients = 8
	// latest is the most often that a phase is reached before the death.
	latest = 24
	// lease is short, so that a dead attempt's key is soon known to be lost.
	lease = time.Second
)

// trial is one phase's test: an upstream with its ledger, a file, and a row of
// processes on it, each of which dies but for the last.
type trial struct {
	t        *testing.T
	phase    phase
	upstream *upstream
	store    string
	journal  string
	place    *place
	client   *client
	random   *rand.Rand

	next  atomic.Int64 // number of the next key
	kills int
}

// TestKill kills the sidecar in each phase of an operation, under load, starts
// it again on the same file, and audits the ledger.
func TestKill(t *testing.T) {
	for i, p := range phases {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tr := &trial{
				t: t, phase: p, upstream: newUpstream(t, p.release), place: newPlace(),
				store: filepath.Join(dir, "umavez.db"), journal: filepath.Join(dir, "journal"),
				// A seed of its own: a run that failed can be had again, as far
				// as the machine's scheduling allows.
				random: rand.New(rand.NewPCG(1, uint64(i))),
			}
			tr.client = newClient(tr.place)
			tr.run()
		})
	}
}

// run loads the sidecar until it has died often enough, and then audits.
func (tr *trial) run() {
	stop := make(chan struct{})
	var load sync.WaitGroup
	started := make(chan struct{}) // the first process is there
	for range clients {
		load.Go(func() {
			<-started
			tr.load(stop)
		})
	}
	p := tr.start(true)
	tr.place.move(p.URL)
	close(started)
	for tr.kills < killsEach {
		tr.awaitDeath(p)
		p = tr.start(tr.kills < killsEach)
		tr.place.move(p.URL)
	}
	close(stop)
	load.Wait()
	tr.audit()
	if tr.t.Failed() {
		tr.t.Logf("the last process wrote:\n%s", p.Stderr())
	}
}

// start starts the next process, which dies when the phase has been reached
// for the nth time, or lives.
func (tr *trial) start(dies bool) *child.Process {
	tr.t.Helper()
	env := []string{asProgram + "=1", envJournal + "=" + tr.journal}
	nth := 1 + tr.random.IntN(latest)
	if dies {
		env = append(env, envPhase+"="+tr.phase.name, envNth+"="+strconv.Itoa(nth))
	}
	p, err := child.Start(child.Command{Path: os.Args[0], Env: env, Args: []string{
		"serve", "--upstream", tr.upstream.URL, "--route", "POST /pagamentos", "--principal", "none",
		"--store", "sqlite:" + tr.store, "--listen", "127.0.0.1:0", "--admin", "",
		"--lease", lease.String(), "--wait", "200ms", "--log-level", "error",
	}})
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(p.Kill)
	if dies && (tr.phase.name == beforeEffect || tr.phase.name == afterEffect) {
		tr.upstream.killAt(nth, tr.phase.name == beforeEffect, p.Kill)
	}
	return p
}

// awaitDeath waits until the process has died, as it was told to.
func (tr *trial) awaitDeath(p *child.Process) {
	tr.t.Helper()
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	select {
	case <-p.Ended():
	case <-timeout.C:
		p.Kill()
		tr.t.Fatalf("the process did not die in phase %s; it wrote:\n%s", tr.phase.name, p.Stderr())
	}
	if code := p.ExitCode(); code != -1 {
		tr.t.Fatalf("the process ended with status %d, and not by a signal:\n%s", code, p.Stderr())
	}
	tr.kills++
}

// load is one client's work: new keys, one after the other. Every third key is
// sent twice at a time, as an impatient person does.
func (tr *trial) load(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		n := tr.next.Add(1) - 1
		key := keyOf(n)
		var twin sync.WaitGroup
		if n%3 == 0 {
			twin.Go(func() { tr.client.settle(stop, key) })
		}
		tr.client.settle(stop, key)
		twin.Wait()
	}
}

func keyOf(n int64) string { return fmt.Sprintf("pedido-%d", n) }

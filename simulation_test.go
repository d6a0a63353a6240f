package umavez_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// This file is a simulation: a few engines on one store, clients that retry,
// hang up and come with the wrong request, a store that loses calls and replies
// and answers late, processes that die. Each seed draws its own rates of all of
// these: fixed ones would go down the same few paths again and again. What was
// done goes into a ledger, and the ledger is held against the promise.

var (
	simSeeds = flag.Int("sim.seeds", 3000, "how many worlds TestSimulation goes through")
	simFirst = flag.Uint64("sim.first", 0, "the first seed of TestSimulation; 0: a fresh one")
)

// TestSimulation: whatever happens, the promise holds. A seed that fails can be
// run again by -sim.first and -sim.seeds=1; it draws the same faults, though the
// order of what happens at one instant may differ.
func TestSimulation(t *testing.T) {
	first := *simFirst
	if first == 0 {
		first = rand.Uint64()
	}
	seeds := *simSeeds
	if testing.Short() {
		seeds = min(seeds, 200)
	}
	next := make(chan uint64)
	var wg sync.WaitGroup
	var total tally
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				synctest.Test(t, func(t *testing.T) { total.add(newWorld(t, seed).run()) })
			}
		})
	}
	for i := range seeds {
		if t.Failed() {
			break
		}
		next <- first + uint64(i)
	}
	close(next)
	wg.Wait()
	t.Logf("seeds %d to %d: %v", first, first+uint64(seeds)-1, total.counts)
	for _, what := range []string{
		"asked", "found", "cancelled", "settled by a person", "completed", "arrived late", "stopped in time",
		"settled: happened", "settled: cannot-happen", "settled: park",
		"effects", "replayed", "shared", "lost", "unavailable", "reused", "killed", "taken over", "unsaved", "in progress",
	} {
		if total.counts[what] == 0 && seeds >= 1000 {
			t.Errorf("in %d worlds there was never one %q: the simulation has gone blind", seeds, what)
		}
	}
}

// tally counts what happened in all worlds, so that a simulation in which
// nothing happens any more is noticed.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(more map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	for what, n := range more {
		c.counts[what] += n
	}
}

// world is one run.
type world struct {
	t     *testing.T
	seed  uint64
	rates rates
	mem   *memstore.Store
	start time.Time

	mu        sync.Mutex
	rng       *rand.Rand
	calm      bool // faults are over
	processes []*process
	ledger    map[string]*page
	started   map[umavez.AttemptID]bool
	counts    map[string]int
}

// rates are how often what happens, drawn anew for each world; 0 for many.
type rates struct {
	lost, replyLost, refused, late, slow float64 // of a call to the store
	kill                                 float64 // of a client's step
	leave                                float64 // a client gives up early
	wrong                                float64 // another request under the same key
	release, abandon, hang               float64 // how an operation ends
	prompt                               bool
	policy                               umavez.Policy
	lease, maxRun                        time.Duration
	engines, keys, clients, steps        int
	waiters                              int
	recovery
}

// page is what the ledger knows of one key.
type page struct {
	effects  []string // the attempts that had one
	saved    string   // the answer that the store acknowledged
	answered map[string]bool
	shared   map[string]bool // answers of released attempts
	excused  bool            // an operation was killed, abandoned, or ran for too long

	cancelled map[string]bool // attempts, at the gateway
	asking    int
}

// process is an engine that may die.
type process struct {
	eng  *umavez.Engine
	dead chan struct{}
	once sync.Once

	stopRun context.CancelFunc
}

func (p *process) kill() { p.once.Do(func() { close(p.dead) }) }

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), mem: memstore.New(memstore.Options{}),
		start: time.Now(), ledger: map[string]*page{}, counts: map[string]int{},
		started: map[umavez.AttemptID]bool{},
	}
	rare := func(most float64) float64 {
		if w.rng.IntN(2) == 0 {
			return 0
		}
		return w.rng.Float64() * most
	}
	w.rates = rates{
		lost: rare(.5), replyLost: rare(.5), refused: rare(.5), late: rare(.4), slow: rare(.4),
		kill: rare(.2), leave: rare(.8), wrong: rare(.4),
		release: rare(.8), abandon: rare(.3), hang: rare(.3),
		prompt: w.rng.IntN(4) == 0, lease: time.Duration(1+w.rng.IntN(30)) * 400 * time.Millisecond,
		engines: 1 + w.rng.IntN(3), keys: 1 + w.rng.IntN(3), clients: 2 + w.rng.IntN(8), steps: 1 + w.rng.IntN(5),
		waiters: 1 + w.rng.IntN(6),
	}
	if w.rng.IntN(3) == 0 {
		w.rates.policy = umavez.Rerunnable
	}
	w.rates.maxRun = w.rates.lease * time.Duration(1+w.rng.IntN(5))
	w.rates.pace = w.rates.lease
	w.drawRecovery(rare)
	for i := range w.rates.keys {
		w.ledger[fmt.Sprint(i)] = &page{answered: map[string]bool{}, shared: map[string]bool{}, cancelled: map[string]bool{}}
	}
	for range w.rates.engines {
		w.processes = append(w.processes, w.newProcess())
	}
	return w
}

func (w *world) newProcess() *process {
	p := &process{dead: make(chan struct{})}
	store := &simStore{Store: w.mem, world: w, process: p}
	o := umavez.Options{Lease: w.rates.lease, MaxRun: w.rates.maxRun, MaxWaitersPerKey: w.rates.waiters}
	o.Observe = func(o umavez.Observation) {
		switch o.Moment {
		case umavez.MomentTakenOver:
			w.note("taken over")
		case umavez.MomentContradicted:
			w.errorf("attempt %v contradicts a settlement: %v", o.Attempt, o.Err)
		}
	}
	if w.rates.prompt {
		p.eng = newEngine(w.t, simPrompt{store}, o)
	} else {
		p.eng = newEngine(w.t, store, o)
	}
	w.lookAfter(p)
	return p
}

// chance draws; it is never true of what has the rate 0.
func (w *world) chance(rate float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return rate > 0 && w.rng.Float64() < rate
}

func (w *world) draw(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(most) + 1))
}

func (w *world) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// errorf fails the test, with the seed.
func (w *world) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d, at %v: %s", w.seed, time.Since(w.start), fmt.Sprintf(format, args...))
}

// run lets the clients come, ends the faults, and looks at what is left.
func (w *world) run() map[string]int {
	var clients sync.WaitGroup
	for range w.rates.clients {
		clients.Go(w.client)
	}
	for range w.rates.people {
		clients.Go(w.person)
	}
	clients.Wait()
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	w.closeAll()
	// What is still on its way arrives, and every lease ends.
	time.Sleep(w.rates.lease + 2*lateAtMost)
	if w.rates.on {
		time.Sleep(time.Hour) // what the gateway holds, and owners that were stopped, too
	}
	synctest.Wait()
	w.audit()
	return w.counts
}

// client sends a few requests, now and then.
func (w *world) client() {
	for range w.rates.steps {
		time.Sleep(w.draw(w.rates.pace))
		p := w.alive()
		if w.chance(w.rates.kill) {
			p.kill()
			w.note("killed")
			continue
		}
		w.request(p, fmt.Sprint(w.pick(w.rates.keys)))
	}
}

// request sends one, and looks at its answer.
func (w *world) request(p *process, key string) {
	op := w.operation(key)
	op.Wait = w.draw(2 * w.rates.lease)
	if w.chance(w.rates.wrong) {
		op.Fingerprint.Sum[0] = 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.chance(w.rates.leave) {
		timer := time.AfterFunc(w.draw(w.rates.lease/2), cancel)
		defer timer.Stop()
	}
	saved := w.saved(key)
	began := time.Now()
	a, rec, err := p.eng.Claim(ctx, op)
	if took := time.Since(began); took > op.Wait+simPatience {
		w.errorf("a claim took %v, with %v to wait", took, op.Wait)
	}
	if a != nil {
		w.operate(p, key, a, &op, saved)
		return
	}
	w.answered(p, key, &op, rec, err, saved)
}

func (w *world) operation(key string) umavez.Operation {
	op := opaque(key)
	op.Policy, op.Request = w.rates.policy, []byte(key)
	op.Fingerprint = umavez.Fingerprint{Recipe: 1, Sum: [32]byte{1}}
	return op
}

// simPatience is the longest that a claim may take beside its wait: claims of
// other leaders that it follows, and its own.
const simPatience = 20 * time.Second

func (w *world) saved(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger[key].saved
}

// answered judges what a request got that did not run.
func (w *world) answered(p *process, key string, op *umavez.Operation, rec umavez.Record, err error, saved string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	page := w.ledger[key]
	switch {
	case errors.Is(err, umavez.ErrKeyReused):
		w.counts["reused"]++
		if rec.Fingerprint.Sum == op.Fingerprint.Sum {
			w.errorf("key %s: refused as reused by its own request", key)
		}
		return
	case err != nil:
		w.counts["unavailable"]++
		return
	case rec.Fingerprint.Sum != op.Fingerprint.Sum:
		w.errorf("key %s: a record of another request, %v, answers", key, rec.State)
	case rec.State == umavez.Running:
		// It says no more than "come again". Of what runs in another process,
		// this one knows what it was told last.
	case saved != "" && rec.State != umavez.Done:
		w.errorf("key %s: %q was saved before, and now it is %v", key, saved, rec.State)
	}
	switch rec.State {
	case umavez.Done:
		w.counts["replayed"]++
		page.answered[string(rec.Answer)] = true
		if fmt.Sprintf("%v/%d", rec.Attempt, op.Fingerprint.Sum[0]) != string(rec.Answer) {
			w.errorf("key %s: the answer %q is not that of attempt %v and request %d", key, rec.Answer, rec.Attempt, op.Fingerprint.Sum[0])
		}
	case umavez.Vacant:
		w.counts["shared"]++
		if !page.shared[string(rec.Answer)] {
			w.errorf("key %s: nobody released with the answer %q", key, rec.Answer)
		}
	case umavez.Lost:
		w.counts["lost"]++
	case umavez.Running:
		w.counts["in progress"]++
	case umavez.Expired:
		w.errorf("key %s has expired", key)
	}
}

// operate runs an operation. It acts at some moment of it, or not at all.
func (w *world) operate(p *process, key string, a *umavez.Attempt, op *umavez.Operation, saved string) {
	l := a.Lease()
	if saved != "" {
		w.errorf("key %s: %q was saved, and it runs again", key, saved)
	}
	if rec, err := w.mem.Get(context.Background(), l.ID); err != nil || rec.Attempt != l.Attempt || rec.State != umavez.Running {
		w.errorf("key %s: attempt %v starts while the record is %v of %v (%v)", key, l.Attempt, rec.State, rec.Attempt, err)
	}
	answer := answerOf(l.Attempt, op.Fingerprint)
	w.mu.Lock()
	w.started[l.Attempt] = true
	w.mu.Unlock()
	time.Sleep(w.draw(w.rates.lease / 2))
	if w.chance(w.rates.release) {
		if w.chance(.5) {
			answer = ""
		}
		w.release(key, a, answer)
		return
	}
	if p.isDead() {
		w.excuse(key)
		return
	}
	if w.stopped(key, a) {
		return
	}
	w.send(key, l.Attempt.String())
	if w.chance(w.rates.hang) {
		w.excuse(key)
		time.Sleep(w.draw(2 * w.rates.maxRun))
	} else {
		time.Sleep(w.draw(w.rates.maxRun / 2))
	}
	switch {
	case p.isDead():
		w.excuse(key)
	case w.chance(w.rates.abandon) || !w.found(key, l.Attempt.String()):
		w.excuse(key)
		_ = a.Abandon(umavez.ReasonError, nil)
	default:
		w.complete(p, key, a, answer)
	}
}

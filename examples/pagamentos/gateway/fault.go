package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Fault is what becomes of a charge on its way.
type Fault string

// The faults. What is held stays so until it is let go, however long ago its
// client has left.
const (
	// FaultNone: it is charged and answered.
	FaultNone Fault = ""
	// FaultSlow: it is answered late; see Options.Slow.
	FaultSlow Fault = "demora"
	// FaultDropAfter: it is charged, and the connection closes without an answer.
	FaultDropAfter Fault = "cai-depois"
	// FaultDropBefore: the connection closes, and nothing is charged.
	FaultDropBefore Fault = "cai-antes"
	// FaultErrorAfter: it is charged, and the answer is 500.
	FaultErrorAfter Fault = "erro-depois"
	// FaultDecline: nothing is charged, and the answer says so: 402.
	FaultDecline Fault = "recusa"
	// FaultHoldBefore: it is held, then charged and answered.
	FaultHoldBefore Fault = "segura-antes"
	// FaultHoldAfter: it is charged, held, and then answered.
	FaultHoldAfter Fault = "segura-depois"
	// FaultHoldAndLose: it is held, and then the connection closes and nothing is
	// charged.
	FaultHoldAndLose Fault = "segura-e-perde"
)

// Faults are all but FaultNone.
var Faults = []Fault{
	FaultSlow, FaultDropAfter, FaultDropBefore, FaultErrorAfter, FaultDecline,
	FaultHoldBefore, FaultHoldAfter, FaultHoldAndLose,
}

// MaxFaults bounds the faults that wait for charges: nobody plans further ahead.
const MaxFaults = 1000

// faults hands out what is to come, and holds charges.
type faults struct {
	slow time.Duration

	mu     sync.Mutex
	coming []Fault
	held   int
	under  map[string]int // by key, the charges that are under way
	letGo  chan struct{}  // closed, and replaced, when what is held may go
}

func newFaults(coming []Fault, slow time.Duration) *faults {
	return &faults{slow: slow, coming: slices.Clone(coming), under: make(map[string]int), letGo: make(chan struct{})}
}

// add has the next charges that come meet these faults, one each.
func (f *faults) add(fault Fault, times int) error {
	if !slices.Contains(Faults, fault) {
		return fmt.Errorf("gateway: falha %q: must be one of %q", fault, Faults)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if times < 1 || len(f.coming)+times > MaxFaults {
		return fmt.Errorf("gateway: vezes %d: must be from 1 on, and no more than %d may wait", times, MaxFaults)
	}
	f.coming = append(f.coming, slices.Repeat([]Fault{fault}, times)...)
	return nil
}

// enter notes that a charge has come, and says what becomes of it.
func (f *faults) enter(key string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.under[key]++
	if len(f.coming) == 0 {
		return FaultNone
	}
	next := f.coming[0]
	f.coming = f.coming[1:]
	return next
}

// leave notes that nothing more becomes of a charge.
func (f *faults) leave(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under[key]--; f.under[key] == 0 {
		delete(f.under, key)
	}
}

// underWay is how many charges of a key have come and not ended; empty: of all.
func (f *faults) underWay(key string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key != "" {
		return f.under[key]
	}
	for _, of := range f.under {
		n += of
	}
	return n
}

// hold waits until it is let go, or the gateway ends.
func (f *faults) hold(life context.Context) {
	f.mu.Lock()
	f.held++
	letGo := f.letGo
	f.mu.Unlock()
	select {
	case <-letGo:
	case <-life.Done():
	}
	f.mu.Lock()
	f.held--
	f.mu.Unlock()
}

// release lets go of what is held now.
func (f *faults) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.letGo)
	f.letGo = make(chan struct{})
}

// wait is the slow gateway's pause.
func (f *faults) wait(life context.Context) {
	timer := time.NewTimer(f.slow)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-life.Done():
	}
}

// state is what GET /falhas tells.
func (f *faults) state() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return State{Held: f.held, Coming: append([]Fault{}, f.coming...)}
}

// State is what a gateway is about to do to charges.
type State struct {
	// Held is how many charges are held.
	Held int `json:"seguradas"`
	// Coming are the faults of the next charges.
	Coming []Fault `json:"proximas"`
}

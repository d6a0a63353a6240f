//go:build unix

package sqlitestore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// Two processes look at one lost record: a hold in one is seen by the other, and
// of two settlements the second is refused.
func TestTwoSettlersOnOneFile(t *testing.T) {
	path := file(t)
	other := start(t, path)
	s := open(t, path, Options{})
	req := request()
	req.Lease = time.Microsecond
	l := claim(t, s, "k", req)
	if err := s.Started(l); err != nil {
		t.Fatal(err)
	}
	mine, theirs := umavez.NewAttemptID(), umavez.NewAttemptID()
	if r := other.ask(order{Do: "look", Key: "k", TakeOver: l.Fence, Attempt: theirs, Lease: time.Hour}); r.Err != "" {
		t.Fatalf("the other process's hold: %s", r.Err)
	}
	if err := s.Hold(t.Context(), l.ID, l.Fence, mine, time.Hour); !errors.Is(err, umavez.ErrHeld) {
		t.Errorf("a hold of what the other process holds: %v", err)
	}
	if rec := get(t, s, "k"); rec.HeldLeft <= 0 || rec.HeldLeft > time.Hour {
		t.Errorf("it is held for %v more", rec.HeldLeft)
	}
	if r := other.ask(order{Do: "settle", Key: "k", Settlement: settlement(l, umavez.ActionHappened)}); r.Err != "" {
		t.Fatalf("the other process's settlement: %s", r.Err)
	}
	if err := s.Settle(t.Context(), l.ID, settlement(l, umavez.ActionCannotHappen)); !errors.Is(err, umavez.ErrMoved) {
		t.Errorf("the second settlement: %v", err)
	}
	if err := s.Complete(t.Context(), l, []byte("late"), keep); !errors.Is(err, umavez.ErrContradicted) {
		t.Errorf("the late owner: %v", err)
	}
	r := other.ask(order{Do: "trail", Key: "k"})
	if len(r.Trail) != 2 || r.Trail[0].Action != umavez.ActionHappened || r.Trail[1].Action != umavez.ActionContradicted {
		t.Errorf("the other process reads the trail %+v", r.Trail)
	}
	other.end()
}

// A process that was killed with claims that had not started leaves nothing to
// settle: who lists, holds or settles finds out first. What it had started stays.
func TestNothingToSettleOfWhatNeverStarted(t *testing.T) {
	for _, way := range []string{"list", "hold", "settle"} {
		t.Run(way, func(t *testing.T) {
			path := file(t)
			s := open(t, path, Options{})
			p := start(t, path)
			fences := map[string]umavez.Fence{}
			for _, key := range []string{"claimed", "started"} {
				r := p.ask(order{Do: "claim", Key: key, Attempt: umavez.NewAttemptID(), Lease: time.Microsecond, Start: key == "started"})
				fences[key] = r.Fence
			}
			p.kill()
			l := umavez.Lease{ID: idOf("claimed"), Fence: fences["claimed"]}
			err := umavez.ErrMoved
			switch way {
			case "list":
				page, err := s.List(t.Context(), umavez.Query{States: []umavez.State{umavez.Lost}, Limit: 10})
				if err != nil || len(page) != 1 || page[0].ID != idOf("started") {
					t.Errorf("the list of lost records: %+v, %v", page, err)
				}
			case "hold":
				err = s.Hold(t.Context(), l.ID, l.Fence, umavez.NewAttemptID(), time.Minute)
			case "settle":
				err = s.Settle(t.Context(), l.ID, settlement(l, umavez.ActionHappened))
			}
			if !errors.Is(err, umavez.ErrMoved) {
				t.Errorf("%s: %v, want ErrMoved", way, err)
			}
			states(t, s, map[string]umavez.State{"claimed": umavez.Vacant, "started": umavez.Lost})
			l = umavez.Lease{ID: idOf("started"), Fence: fences["started"]}
			mustSettle(t, s, l, settlement(l, umavez.ActionHappened))
		})
	}
}

// Settling while the owner is stopped, and its death after that: the start log
// says nothing about the record any more.
func TestOwnerDiesAfterTheSettlement(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{})
	p := start(t, path)
	leases := map[umavez.Action]umavez.Lease{}
	actions := []umavez.Action{umavez.ActionHappened, umavez.ActionCannotHappen, umavez.ActionPark}
	for _, action := range actions {
		key := string(action)
		// Not started, as far as its log says: it is alive, and may yet start.
		r := p.ask(order{Do: "claim", Key: key, Attempt: umavez.NewAttemptID(), Lease: time.Microsecond})
		leases[action] = umavez.Lease{ID: idOf(key), Attempt: r.Attempt, Fence: r.Fence}
		mustSettle(t, s, leases[action], settlement(leases[action], action))
	}
	p.kill()
	s.sweep(t.Context())
	states(t, s, map[string]umavez.State{
		string(umavez.ActionHappened): umavez.Done, string(umavez.ActionCannotHappen): umavez.Vacant,
		string(umavez.ActionPark): umavez.Lost,
	})
	for _, action := range actions {
		if trail := trailOf(t, s, leases[action].ID); len(trail) != 1 {
			t.Errorf("%s: the trail is %+v", action, trail)
		}
	}
}

// A process that is killed while it settles leaves the change with its entry, or
// neither.
func TestKilledWhileItSettles(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{})
	p := start(t, path)
	const keys = 400
	leases := make([]umavez.Lease, keys)
	for i := range leases {
		req := request()
		req.Lease = time.Microsecond
		leases[i] = claim(t, s, fmt.Sprint(i), req)
	}
	for i, l := range leases {
		p.tell(order{Do: "settle", Key: fmt.Sprint(i), Settlement: settlement(l, umavez.ActionHappened)})
	}
	acknowledged := 0
	for ; acknowledged < keys/4; acknowledged++ {
		p.read()
	}
	_ = p.cmd.Process.Kill()
	for p.out.Scan() {
		acknowledged++
	}
	settled := 0
	for i, l := range leases {
		state, trail := get(t, s, fmt.Sprint(i)).State, trailOf(t, s, l.ID)
		if (state == umavez.Done) != (len(trail) == 1) {
			t.Fatalf("key %d is %v, with the trail %+v", i, state, trail)
		}
		if state == umavez.Done {
			settled++
		}
	}
	t.Logf("%d of %d settlements were acknowledged, %d are there", acknowledged, keys, settled)
	if settled < acknowledged || settled > acknowledged+1 {
		t.Errorf("%d settlements were acknowledged and %d are there", acknowledged, settled)
	}
}

// Two processes bound the same scope: each knows of the other's claims when it
// counts, a second later at the most.
func TestProcessesBoundOneScope(t *testing.T) {
	path := file(t)
	c := newClock()
	c.now = time.Now()
	s := open(t, path, Options{Now: c.Now})
	p := start(t, path)
	req := request()
	req.MaxUnsettled = 10
	wantClaim(t, s, "first", req, nil)
	for i := range 9 {
		r := p.ask(order{Do: "claim", Key: fmt.Sprint(i), Attempt: umavez.NewAttemptID(), Lease: time.Hour, Most: 10})
		if !r.Acquired {
			t.Fatalf("claim %d of the other process: %+v", i, r)
		}
	}
	r := p.ask(order{Do: "claim", Key: "its last", Attempt: umavez.NewAttemptID(), Lease: time.Hour, Most: 10})
	if r.Acquired || !strings.Contains(r.Err, "too many") {
		t.Errorf("the other process, at the bound: %+v", r)
	}
	// This one has counted before the other's nine: it may overshoot by as many.
	granted := 1
	for i := range 20 {
		req.Attempt = umavez.NewAttemptID()
		_, acquired, err := s.Claim(t.Context(), idOf(fmt.Sprint("mine ", i)), req)
		if acquired {
			granted++
		} else if !errors.Is(err, umavez.ErrTooManyUnsettled) {
			t.Fatal(err)
		}
	}
	if granted > 10 {
		t.Errorf("one process granted %d claims by itself, of a bound of 10", granted)
	}
	c.advance(recountAfter)
	req.Attempt = umavez.NewAttemptID()
	wantClaim(t, s, "a second later", req, umavez.ErrTooManyUnsettled)
	p.end()
}

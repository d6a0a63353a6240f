package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// TestFaulty goes through the faults: what the caller is told, and what the
// store behind has got.
func TestFaulty(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   Fault
		applied umavez.Applied
		reaches bool
	}{
		{"refused", Refused, umavez.No, false},
		{"not applied", NotApplied, umavez.Maybe, false},
		{"reply lost", ReplyLost, umavez.Maybe, true},
	} {
		store := newBent(bend{})
		faulty := NewFaulty(store)
		faulty.Inject("claim", c.fault)
		id, req := umavez.Key{Name: "k"}.ID(), umavez.ClaimRequest{Attempt: umavez.NewAttemptID(), Lease: time.Hour}

		_, acquired, err := faulty.Claim(t.Context(), id, req)
		if !errors.Is(err, ErrInjected) || acquired || umavez.AppliedOf(err) != c.applied {
			t.Errorf("%s: acquired %v, error %v; want an injected one that says %v", c.name, acquired, err, c.applied)
		}
		if rec, err := faulty.Get(t.Context(), id); err != nil || (rec.State == umavez.Running) != c.reaches {
			t.Errorf("%s: behind it the key is %v, error %v", c.name, rec.State, err)
		}
		if _, acquired, err := faulty.Claim(t.Context(), id, req); err != nil || !acquired {
			t.Errorf("%s: the next claim is acquired %v, error %v; want the fault to be over", c.name, acquired, err)
		}
	}
}

// TestFaultyInTurn: several faults of one call are met one after the other, and
// other calls do not meet them.
func TestFaultyInTurn(t *testing.T) {
	faulty := NewFaulty(newBent(bend{}))
	faulty.Inject("release", Refused)
	faulty.Inject("release", NotApplied)
	l := umavez.Lease{ID: umavez.Key{Name: "k"}.ID(), Attempt: umavez.NewAttemptID()}
	if err := faulty.Extend(t.Context(), l, time.Hour); !errors.Is(err, umavez.ErrLeaseLost) {
		t.Errorf("extend: %v, want it to pass", err)
	}
	for _, want := range []umavez.Applied{umavez.No, umavez.Maybe} {
		if err := faulty.Release(t.Context(), l); !errors.Is(err, ErrInjected) || umavez.AppliedOf(err) != want {
			t.Errorf("release: %v, want an injected error that says %v", err, want)
		}
	}
	if err := faulty.Release(t.Context(), l); err != nil {
		t.Errorf("release: %v, want it to pass", err)
	}
}

// TestFaultyCutOff: the store sees the caller's context end.
func TestFaultyCutOff(t *testing.T) {
	entered := make(chan struct{})
	faulty := NewFaulty(&slowGet{entered: entered})
	faulty.Inject("get", CutOff)
	_, err := faulty.Get(t.Context(), umavez.ID{})
	<-entered
	if !errors.Is(err, context.Canceled) || t.Context().Err() != nil {
		t.Errorf("get: %v, want the call's own context to be cancelled", err)
	}
}

// slowGet is a store whose Get lasts until its context ends.
type slowGet struct {
	umavez.Store
	entered chan struct{}
}

func (s *slowGet) Get(ctx context.Context, _ umavez.ID) (umavez.Record, error) {
	close(s.entered)
	<-ctx.Done()
	return umavez.Record{}, ctx.Err()
}

// TestFaultyHold: a call that is held up reaches the store when it is let go,
// also when its caller has given it up.
func TestFaultyHoldUp(t *testing.T) {
	store := newBent(bend{})
	faulty := NewFaulty(store)
	held := faulty.HoldUp("release")
	l := umavez.Lease{ID: umavez.Key{Name: "k"}.ID(), Attempt: umavez.NewAttemptID()}

	ctx, giveUp := context.WithCancel(t.Context())
	replied := make(chan error, 1)
	go func() { replied <- faulty.Release(ctx, l) }()
	<-held.Arrived()
	giveUp()
	if err := <-replied; umavez.AppliedOf(err) != umavez.Maybe || !errors.Is(err, context.Canceled) {
		t.Errorf("a release that was given up: %v, want a maybe", err)
	}
	if _, known := store.rows[l.ID]; known {
		t.Error("the release has reached the store before it was let go")
	}
	held.Go()
	if got := store.rows[l.ID].Attempt; got != l.Attempt {
		t.Errorf("after the release the row bars %v, want %v", got, l.Attempt)
	}
}

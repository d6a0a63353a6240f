package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// plain is a store that can do what every store can, and nothing else.
type plain struct{ umavez.Store }

// TestPlainStoreSkips: no rule fails on a store that does not have what the rule
// is about; it is skipped, and says why.
func TestPlainStoreSkips(t *testing.T) {
	open := func(*testing.T) Opened {
		s := newBent(bend{})
		return Opened{Store: plain{s}, Advance: func(d time.Duration) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.passed += d
		}}
	}
	optional := []string{"hold/", "settle/", "trail/", "list/", "rewrite/", "purge/", "settings/"}
	for _, r := range rules() {
		rec := try(t, r, Config{Open: open, Seed: 1})
		if rec.failed {
			t.Errorf("the rule %q fails on a plain store: %q", r.name, rec.log)
		}
		for _, about := range optional {
			if strings.HasPrefix(r.name, about) && (!rec.skipped || len(rec.log) != 1 || !strings.Contains(rec.log[0], "umavez.")) {
				t.Errorf("the rule %q on a plain store: skipped %v, told %q; want it skipped, and to name the interface", r.name, rec.skipped, rec.log)
			}
		}
	}
}

// TestFaultySettling: the calls for settling, listing and rewriting meet their
// faults by name, and else reach the store.
func TestFaultySettling(t *testing.T) {
	store := newBent(bend{})
	faulty := NewFaultySettling(store)
	id, ctx := umavez.Key{Name: "k"}.ID(), t.Context()
	rec, _, err := faulty.Claim(ctx, id, umavez.ClaimRequest{Attempt: umavez.NewAttemptID()})
	if err != nil {
		t.Fatal(err)
	}
	made := settlement(umavez.ActionHappened, rec.Fence)
	handed := 0
	for op, call := range map[string]func() error{
		"hold":   func() error { return faulty.Hold(ctx, id, rec.Fence, umavez.NewAttemptID(), 0) },
		"settle": func() error { return faulty.Settle(ctx, id, made) },
		"trail": func() error {
			_, err := faulty.Trail(ctx, id)
			return err
		},
		"list": func() error {
			_, err := faulty.List(ctx, umavez.Query{Limit: 5})
			return err
		},
		"rewrite": func() error {
			_, err := faulty.Rewrite(ctx, umavez.ID{}, 5, func(umavez.ID, *umavez.Record) error { handed++; return nil })
			return err
		},
		"rewrite-settings": func() error {
			return faulty.RewriteSettings(ctx, func(string, *umavez.Settings) error { return nil })
		},
	} {
		faulty.Inject(op, Refused)
		if err := call(); !errors.Is(err, ErrInjected) || umavez.AppliedOf(err) != umavez.No {
			t.Errorf("%s: %v, want the injected refusal", op, err)
		}
		if op == "hold" {
			continue // the record may be settled by now
		}
		if err := call(); err != nil {
			t.Errorf("%s after its fault: %v", op, err)
		}
	}
	trail, err := faulty.Trail(ctx, id)
	list, listErr := faulty.List(ctx, umavez.Query{Limit: 5})
	if err != nil || listErr != nil || len(trail) != 1 || len(list) != 1 || handed != 1 {
		t.Errorf("behind it there are %d entries (error %v), %d records (error %v), and %d were handed out; want one of each",
			len(trail), err, len(list), listErr, handed)
	}
	if rec := store.rows[id]; !rec.Settled {
		t.Errorf("the settlement has not reached the store: %+v", rec)
	}
}

// TestFaultyDoesNotPretend: what stands in front of a store has no more than it
// passes on.
func TestFaultyDoesNotPretend(t *testing.T) {
	var faulty umavez.Store = NewFaulty(newBent(bend{}))
	if _, ok := faulty.(umavez.Settler); ok {
		t.Error("a Faulty is a Settler, and does not pass its calls on")
	}
	if _, ok := faulty.(umavez.Lister); ok {
		t.Error("a Faulty is a Lister, and does not pass its calls on")
	}
	// The suite's own, in front of a store that settles nothing.
	bare := &FaultySettling{NewFaulty(plain{newBent(bend{})})}
	for what, err := range map[string]error{
		"hold":             bare.Hold(t.Context(), umavez.ID{}, 1, umavez.NewAttemptID(), time.Hour),
		"settle":           bare.Settle(t.Context(), umavez.ID{}, umavez.Settlement{}),
		"rewrite-settings": bare.RewriteSettings(t.Context(), nil),
	} {
		if !errors.Is(err, umavez.ErrNotOffered) {
			t.Errorf("%s of a store that does not offer it: %v, want ErrNotOffered", what, err)
		}
	}
}

package storetest

import (
	"time"

	"github.com/umavez/umavez"
)

// restartRules hold for stores that keep what they were told when they end.
var restartRules = []rule{
	{
		name:  "restart/every record survives",
		why:   "what was acknowledged is there after a restart: a claim that is forgotten runs twice, an answer that is forgotten is lost",
		alone: true,
		check: restartRecords,
	},
	{
		name:  "restart/records live on",
		why:   "after a restart each record goes on as it would have without: late completions count, bars hold, fences rise",
		alone: true,
		check: restartLivesOn,
	},
	{
		name:  "restart/settings survive",
		why:   "a new epoch and fingerprint key after a restart would make every retry look like another request",
		alone: true,
		check: restartSettings,
	},
	{
		name:  "restart/settlements survive",
		why:   "holds, settlements, audit trails, and whose outcome was settled are there after a restart: who settles repeats his call, and a late owner is still told that it contradicts",
		alone: true,
		check: restartSettlements,
	},
	{
		name:  "peer/sees what was written",
		why:   "clients of the same data see each other's acknowledged writes at once: a claim that one has won is refused by the other",
		check: peerSees,
	},
}

// restart ends the store and opens it again, or skips the rule.
func (f *fixture) restart() {
	f.Helper()
	if f.opened.Reopen == nil {
		f.Skipf("the store forgets when it ends (Opened.Reopen is nil)")
	}
	f.store = f.opened.Reopen(f.real)
}

// oneOfEach makes a key in every state, with all that a record can hold.
func (f *fixture) oneOfEach() map[string]held {
	f.Helper()
	keys := map[string]held{
		"running": f.running(umavez.Stepped), "lost": f.lost(umavez.Rerunnable),
		"abandoned": f.running(umavez.Opaque), "done": f.done("aprovado", kept()),
		"expired":  f.done("over", umavez.Retention{Retain: f.short(), Tombstone: long}),
		"released": f.running(umavez.Opaque),
	}
	f.pass(f.short())
	ctx := f.Context()
	f.answers("checkpoint", f.store.Checkpoint(ctx, keys["running"].Lease, "cobrar", []byte("c-1\x00")), nil)
	f.answers("last word", f.store.Checkpoint(ctx, keys["running"].Lease, umavez.LastWord, []byte("half")), nil)
	f.answers("abandon", f.store.Abandon(ctx, keys["abandoned"].Lease, umavez.ReasonStatus, []byte("503")), nil)
	f.answers("release", f.store.Release(ctx, keys["released"].Lease), nil)
	return keys
}

func restartRecords(f *fixture) {
	keys := f.oneOfEach()
	before := map[string]umavez.Record{}
	for state, h := range keys {
		before[state] = f.get(h.ID)
	}
	for range 2 {
		f.restart()
		for state, h := range keys {
			f.same("the "+state+" record after a restart", f.get(h.ID), before[state])
		}
	}
	f.leftAbout("the lease", f.get(keys["running"].ID).LeaseLeft, long)
	f.leftAbout("the retention", f.get(keys["done"].ID).RetainLeft, long)
}

func restartLivesOn(f *fixture) {
	keys := f.oneOfEach()
	f.restart()
	ctx := f.Context()

	f.refused(keys["released"].ID, keys["released"].req)
	if again := f.claim(keys["released"].ID, f.request(umavez.Opaque)); again.Fence <= keys["released"].Fence {
		f.Fatalf("the fence went from %d to %d", keys["released"].Fence, again.Fence)
	}
	if second := f.claim(keys["lost"].ID, keys["lost"].over(keys["lost"].Fence)); second.Fence <= keys["lost"].Fence {
		f.Fatalf("the fence went from %d to %d", keys["lost"].Fence, second.Fence)
	}
	f.claim(keys["running"].ID, keys["running"].req) // the repeat of a claim
	f.answers("release", f.store.Release(ctx, keys["running"].Lease), umavez.ErrHasSteps)
	for _, state := range []string{"running", "abandoned"} {
		f.answers("late complete", f.store.Complete(ctx, keys[state].Lease, []byte("late"), kept()), nil)
	}
	f.answers("repeated complete", f.store.Complete(ctx, keys["done"].Lease, []byte("aprovado"), kept()), nil)
	f.refused(keys["expired"].ID, keys["expired"].over(0))
}

func restartSettlements(f *fixture) {
	f.settler()
	held, holder := f.lost(umavez.Opaque), umavez.NewAttemptID()
	f.holds(held, holder, long, nil)
	var keys []umavez.Lease
	var made []umavez.Settlement
	settle := func(l umavez.Lease, action umavez.Action) {
		keys, made = append(keys, l), append(made, settlement(action, l.Fence))
		f.answers("settle", f.settler().Settle(f.Context(), l.ID, made[len(made)-1]), nil)
	}
	for _, action := range lostActions {
		settle(f.lost(umavez.Rerunnable).Lease, action)
	}
	settle(f.lost(umavez.Stepped).Lease, umavez.ActionCannotHappen) // stays, as proven
	settle(f.done("a", kept()).Lease, umavez.ActionForget)
	before, trails := make([]umavez.Record, len(keys)), make([][]umavez.AuditEntry, len(keys))
	for i, k := range keys {
		before[i], trails[i] = f.get(k.ID), f.trail(k.ID)
	}

	f.restart()
	f.leftAbout("the hold", f.get(held.ID).HeldLeft, long)
	f.holds(held, umavez.NewAttemptID(), time.Hour, umavez.ErrHeld)
	f.holds(held, holder, long, nil)
	for i, k := range keys {
		what := string(made[i].Action)
		f.same("the record after a restart, settled as "+what, f.get(k.ID), before[i])
		f.sameTrail(k.ID, trails[i])
		f.answers("repeated settlement as "+what, f.settler().Settle(f.Context(), k.ID, made[i]), nil)
		f.sameTrail(k.ID, trails[i])
		want := umavez.ErrContradicted
		if a := made[i].Action; a == umavez.ActionPark || a == umavez.ActionForget {
			want = nil // of what is parked nothing was said, and what is forgotten was complete
		}
		f.answers("late complete, settled as "+what, f.store.Complete(f.Context(), k, []byte("a"), kept()), want)
	}
}

func restartSettings(f *fixture) {
	k, name := f.keeper(f.store), namespace()
	want := f.settings(k, name, proposal())
	f.restart()
	if got := f.settings(f.keeper(f.store), name, proposal()); got != want {
		f.Fatalf("after a restart the settings are %+v, want %+v", got, want)
	}
}

func peerSees(f *fixture) {
	if f.opened.Peer == nil {
		f.Skipf("the store's data lives in one process (Opened.Peer is nil)")
	}
	mine, peer := f.store, f.opened.Peer(f.real)
	for _, order := range [][2]umavez.Store{{mine, peer}, {peer, mine}} {
		first, second := order[0], order[1]
		f.store = first
		h := f.running(umavez.Opaque)
		f.store = second
		f.refused(h.ID, h.over(0))
		f.claim(h.ID, h.req) // the repeat of a claim, through another client
		f.answers("complete", f.store.Complete(f.Context(), h.Lease, []byte("a"), kept()), nil)
		f.store = first
		if rec := f.refused(h.ID, h.over(0)); rec.State != umavez.Done || string(rec.Answer) != "a" {
			f.Fatalf("what a peer completed is %v here", brief(rec))
		}
	}
}

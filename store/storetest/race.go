package storetest

import (
	"errors"
	"sync"

	"github.com/umavez/umavez"
)

// raceRules let many meet on one key at the same time, from all clients of the
// store's data.
var raceRules = []rule{
	{
		name:  "race/vacant key",
		why:   "of all who claim a vacant key at once exactly one gets it; a store that looks first and writes then gives it to two",
		check: raceVacant,
	},
	{
		name:  "race/lost record",
		why:   "of all who saw the same attempt lost exactly one takes over",
		check: raceLost,
	},
	{
		name:  "race/released key",
		why:   "of all who claim a key that was just released exactly one gets it",
		check: raceReleased,
	},
	{
		name:  "race/many keys",
		why:   "no key goes to two, however many keys are claimed at once: what is batched or locked together must not be mixed up",
		check: raceManyKeys,
	},
	{
		name:  "race/complete against takeover",
		why:   "a late completion and a takeover exclude each other: either the answer is saved and nobody runs again, or the owner learns that it lost the key",
		check: raceCompleteTakeover,
	},
	{
		name:  "race/two answers",
		why:   "of two different completions of one attempt exactly one is told yes, and its answer is the one that stands",
		check: raceTwoAnswers,
	},
	{
		name:  "race/release against claim",
		why:   "a claim that races a release is granted or refused, and either way the release is answered yes",
		check: raceReleaseClaim,
	},
	{
		name:  "race/release against its own claim",
		why:   "once a release is answered its attempt runs no more, also when a repeat of its claim was under way at the same moment",
		check: raceReleaseOwnClaim,
	},
	{
		name:  "race/heartbeat against takeover",
		why:   "a heartbeat and a takeover exclude each other: either the lease is alive and the takeover refused, or the owner learns that it lost the key",
		check: raceExtendTakeover,
	},
}

// claimers is how many meet on one key.
const claimers = 100

// rounds is how often a race of two is run.
const rounds = 40

// clients returns the store and, where there can be one, another client of its data.
func (f *fixture) clients() []umavez.Store {
	f.Helper()
	all := []umavez.Store{f.store}
	if f.opened.Peer != nil {
		all = append(all, f.opened.Peer(f.real))
	}
	return all
}

// together runs calls at the same moment, as near as goroutines come to it.
func together(calls ...func()) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for _, call := range calls {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			call()
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// contest lets all requests claim one key together. Exactly one must get it, and
// every reply must name it.
func (f *fixture) contest(id umavez.ID, reqs []umavez.ClaimRequest) {
	f.Helper()
	clients, replies := f.clients(), make([]reply, len(reqs))
	calls := make([]func(), len(reqs))
	for i, req := range reqs {
		s := clients[i%len(clients)]
		calls[i] = func() { replies[i].rec, replies[i].acquired, replies[i].err = s.Claim(f.Context(), id, req) }
	}
	together(calls...)

	winner, winners := f.get(id).Attempt, 0
	for i, r := range replies {
		if r.err != nil {
			f.Fatalf("claim %d: %v", i, r.err)
		}
		if r.acquired {
			winners++
		}
		// A claim that came before the winner's saw the key as it was then, and
		// there was nobody yet to refuse it; so no reply may show another one.
		if r.rec.Attempt != winner || r.rec.State != umavez.Running || r.acquired != (reqs[i].Attempt == winner) {
			f.Fatalf("claim %d of %d: acquired %v, record %v; the key went to %.8s", i, len(reqs), r.acquired, brief(r.rec), winner)
		}
	}
	if winners != 1 {
		f.Fatalf("%d of %d claimers got the key, want exactly one", winners, len(reqs))
	}
}

func raceVacant(f *fixture) {
	reqs := make([]umavez.ClaimRequest, claimers)
	for i := range reqs {
		reqs[i] = f.request(umavez.Opaque)
	}
	f.contest(f.key(), reqs)
}

func raceLost(f *fixture) {
	h := f.lost(umavez.Rerunnable)
	reqs := make([]umavez.ClaimRequest, claimers)
	for i := range reqs {
		reqs[i] = h.over(h.Fence)
	}
	f.contest(h.ID, reqs)
}

func raceReleased(f *fixture) {
	h := f.running(umavez.Opaque)
	f.answers("release", f.store.Release(f.Context(), h.Lease), nil)
	reqs := make([]umavez.ClaimRequest, claimers)
	for i := range reqs {
		reqs[i] = f.request(umavez.Opaque)
	}
	f.contest(h.ID, reqs)
	f.refused(h.ID, h.req)
}

func raceManyKeys(f *fixture) {
	const keys, racers = 200, 4
	clients := f.clients()
	var mu sync.Mutex
	won := map[umavez.ID][]umavez.AttemptID{}
	ids := make([]umavez.ID, keys)
	for i := range ids {
		ids[i] = f.key()
	}
	calls := make([]func(), racers)
	for i := range calls {
		s := clients[i%len(clients)]
		calls[i] = func() {
			for n := range ids {
				if i >= racers/2 { // half of them come from the other end
					n = keys - 1 - n
				}
				id, req := ids[n], f.request(umavez.Opaque)
				rec, acquired, err := s.Claim(f.Context(), id, req)
				if err != nil || acquired != (rec.Attempt == req.Attempt) {
					f.Errorf("claim: acquired %v, error %v, record %v", acquired, err, brief(rec))
					return
				}
				if acquired {
					mu.Lock()
					won[id] = append(won[id], req.Attempt)
					mu.Unlock()
				}
			}
		}
	}
	together(calls...)
	for _, id := range ids {
		if len(won[id]) != 1 || f.get(id).Attempt != won[id][0] {
			f.Fatalf("a key was won by %d attempts, want one, and the record to name it", len(won[id]))
		}
	}
}

// duel runs two calls on a fresh key together, round after round, from two
// clients where there are two.
func (f *fixture) duel(fresh func() held, first, second func(s umavez.Store, h held), judge func(h held)) {
	f.Helper()
	clients := f.clients()
	for i := range rounds {
		h := fresh()
		one, two := clients[i%len(clients)], clients[(i+1)%len(clients)]
		calls := []func(){func() { first(one, h) }, func() { second(two, h) }}
		if i%2 == 1 {
			calls[0], calls[1] = calls[1], calls[0]
		}
		together(calls...)
		judge(h)
	}
}

func raceCompleteTakeover(f *fixture) {
	var completed error
	var took reply
	f.duel(
		func() held { return f.abandoned(umavez.Rerunnable) },
		func(s umavez.Store, h held) { completed = s.Complete(f.Context(), h.Lease, []byte("late"), kept()) },
		func(s umavez.Store, h held) {
			took.rec, took.acquired, took.err = s.Claim(f.Context(), h.ID, h.over(h.Fence))
		},
		func(h held) {
			rec := f.get(h.ID)
			saved := completed == nil && !took.acquired && rec.State == umavez.Done && rec.Attempt == h.Attempt
			lost := errors.Is(completed, umavez.ErrLeaseLost) && took.acquired && rec.State == umavez.Running && rec.Attempt != h.Attempt
			if took.err != nil || saved == lost {
				f.Fatalf("complete answered %v, the takeover was acquired %v with error %v, and the record is %v", completed, took.acquired, took.err, brief(rec))
			}
		})
}

func raceTwoAnswers(f *fixture) {
	var errs [2]error
	f.duel(
		func() held { return f.running(umavez.Opaque) },
		func(s umavez.Store, h held) { errs[0] = s.Complete(f.Context(), h.Lease, []byte("0"), kept()) },
		func(s umavez.Store, h held) { errs[1] = s.Complete(f.Context(), h.Lease, []byte("1"), kept()) },
		func(h held) {
			stands := string(f.is(h.ID, umavez.Done).Answer)
			for i, answer := range []string{"0", "1"} {
				want := error(nil)
				if stands != answer {
					want = umavez.ErrLeaseLost
				}
				f.answers("complete with "+answer+" where "+stands+" stands", errs[i], want)
			}
		})
}

func raceReleaseClaim(f *fixture) {
	var released error
	var claimed reply
	f.duel(
		func() held { return f.running(umavez.Opaque) },
		func(s umavez.Store, h held) { released = s.Release(f.Context(), h.Lease) },
		func(s umavez.Store, h held) {
			claimed.rec, claimed.acquired, claimed.err = s.Claim(f.Context(), h.ID, h.over(0))
		},
		func(h held) {
			f.answers("release", released, nil)
			f.answers("claim", claimed.err, nil)
			rec := f.get(h.ID)
			if claimed.acquired != (rec.State == umavez.Running) || claimed.acquired && rec.Attempt == h.Attempt {
				f.Fatalf("the claim was acquired %v, and the record is %v", claimed.acquired, brief(rec))
			}
		})
}

func raceReleaseOwnClaim(f *fixture) {
	var released error
	f.duel(
		func() held { return f.running(umavez.Opaque) },
		func(s umavez.Store, h held) { released = s.Release(f.Context(), h.Lease) },
		func(s umavez.Store, h held) {
			if _, _, err := s.Claim(f.Context(), h.ID, h.req); err != nil {
				f.Errorf("claim: %v", err)
			}
		},
		func(h held) {
			f.answers("release", released, nil)
			f.is(h.ID, umavez.Vacant)
		})
}

func raceExtendTakeover(f *fixture) {
	var extended error
	var took reply
	f.duel(
		func() held { return f.lost(umavez.Rerunnable) },
		func(s umavez.Store, h held) { extended = s.Extend(f.Context(), h.Lease, long) },
		func(s umavez.Store, h held) {
			took.rec, took.acquired, took.err = s.Claim(f.Context(), h.ID, h.over(h.Fence))
		},
		func(h held) {
			alive := extended == nil && !took.acquired
			lost := errors.Is(extended, umavez.ErrLeaseLost) && took.acquired
			if took.err != nil || alive == lost {
				f.Fatalf("extend answered %v, and the takeover was acquired %v with error %v", extended, took.acquired, took.err)
			}
		})
}

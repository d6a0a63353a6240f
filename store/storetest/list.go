package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/umavez/umavez"
)

// listRules hold for stores that can list their records.
var listRules = []rule{
	{
		name:  "list/has what fits, and nothing else",
		why:   "operators, reconcilers and completers work off lists: a record that a list leaves out stays unknown for ever, one too many is settled by mistake",
		check: listFits,
	},
	{
		name:  "list/pages in the order of IDs",
		why:   "pages of any size come to the same list, in the order of the IDs' bytes, each record once; a page that is not full is the last one",
		alone: true,
		check: listPages,
	},
	{
		name:  "list/is brief",
		why:   "a page of a thousand records must not carry a thousand answers; it has everything else that Get has",
		check: listBrief,
	},
	{
		name:  "list/goes on over changes",
		why:   "records come, go and end while somebody pages through them: what stays as it is must be on the list all the same, and none twice",
		check: listChanges,
	},
	{
		name:  "list/says how it failed",
		why:   "a list whose context is over is a StoreError or the list, never a shorter one that looks like the end",
		check: listCancelled,
	},
}

// lister returns the store as a Lister, or skips the rule.
func (f *fixture) lister() umavez.Lister {
	f.Helper()
	l, ok := f.store.(umavez.Lister)
	if !ok {
		f.Skipf("the store cannot list its records (it is no umavez.Lister)")
	}
	return l
}

// list reads a list to its end, in pages of q.Limit.
func (f *fixture) list(q umavez.Query) (all []umavez.Listed) {
	f.Helper()
	for {
		page, err := f.lister().List(f.Context(), q)
		if err != nil || len(page) > q.Limit {
			f.Fatalf("list: %d records of at most %d, error %v", len(page), q.Limit, err)
		}
		for _, l := range page {
			if bytes.Compare(l.ID[:], q.After[:]) <= 0 {
				f.Fatalf("list: %v comes after %v", l.ID, q.After)
			}
			q.After = l.ID
		}
		all = append(all, page...)
		if len(page) < q.Limit {
			return all
		}
		if len(all) > 10_000 {
			f.Fatalf("list has told of %d records and does not end", len(all))
		}
	}
}

func ids(list []umavez.Listed) (ids []umavez.ID) {
	for _, l := range list {
		ids = append(ids, l.ID)
	}
	return ids
}

func sortedIDs(ids []umavez.ID) []umavez.ID {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b umavez.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// crowd makes records in every state, of two namespaces, scopes and routes.
func (f *fixture) crowd(spaces [2]string, scopes [2]umavez.ScopeID) (all []umavez.ID) {
	f.Helper()
	ctx := f.Context()
	for i := range 4 {
		claim := func(p umavez.Policy) held {
			req := f.request(p)
			req.Namespace, req.Scope, req.Route = spaces[i%2], scopes[i/2], fmt.Sprintf("route %d", i%2)
			h := f.claim(f.key(), req)
			all = append(all, h.ID)
			return h
		}
		claim(umavez.Stepped)
		for _, p := range []umavez.Policy{umavez.Opaque, umavez.Rerunnable} {
			f.answers("abandon", f.store.Abandon(ctx, claim(p).Lease, umavez.ReasonReset, nil), nil)
		}
		f.answers("abandon", f.store.Abandon(ctx, claim(umavez.Stepped).Lease, umavez.ReasonCodeChanged, nil), nil)
		f.answers("complete", f.store.Complete(ctx, claim(umavez.Opaque).Lease, []byte("a"), kept()), nil)
		over := claim(umavez.Opaque)
		f.answers("complete", f.store.Complete(ctx, over.Lease, []byte("a"), umavez.Retention{Retain: f.short(), Tombstone: long}), nil)
		f.answers("complete", f.store.Complete(ctx, claim(umavez.Opaque).Lease, []byte("a"), umavez.Retention{}), nil)
		f.answers("release", f.store.Release(ctx, claim(umavez.Opaque).Lease), nil)
	}
	f.pass(f.short())
	return all
}

func listFits(f *fixture) {
	f.lister()
	spaces := [2]string{namespace(), namespace()}
	scopes := [2]umavez.ScopeID{umavez.ScopeID(umavez.NewAttemptID()), umavez.ScopeID(umavez.NewAttemptID())}
	old := f.crowd(spaces, scopes)
	age := 10 * f.short()
	f.pass(age)
	all := append(old, f.crowd(spaces, scopes)...)

	for _, q := range []umavez.Query{
		{},
		{States: []umavez.State{umavez.Running}},
		{States: []umavez.State{umavez.Lost}},
		{States: []umavez.State{umavez.Done}},
		{States: []umavez.State{umavez.Expired}},
		{States: []umavez.State{umavez.Vacant}},
		{States: []umavez.State{umavez.Expired, umavez.Running}},
		{States: []umavez.State{umavez.Lost, umavez.Running}},
		{Unknown: true},
		{Unknown: true, States: []umavez.State{umavez.Done}},
		{Reason: umavez.ReasonReset},
		{Reason: umavez.ReasonKilled},
		{Reason: umavez.ReasonCodeChanged, Unknown: true},
		{Namespace: spaces[0]},
		{Scope: scopes[1]},
		{Scope: scopes[1], States: []umavez.State{umavez.Lost}, Route: "route 1"},
		{Route: "route 0"},
		{Route: "route"},
		{MinAge: age},
		{MinAge: age, Namespace: spaces[1], Unknown: true},
		{MinAge: long * 100},
	} {
		q.Limit = 7
		f.listed(q, all)
	}
}

// listed checks that a list has, of these keys, just those that fit. Others may
// be on it: of keys that other rules use at the same time.
func (f *fixture) listed(q umavez.Query, of []umavez.ID) {
	f.Helper()
	var want, got []umavez.ID
	for _, id := range of {
		rec := f.get(id)
		if q.Fits(&rec) {
			want = append(want, id)
		}
	}
	for _, l := range f.list(q) {
		if !q.Fits(&l.Record) {
			f.Fatalf("the list of %+v has %v", q, brief(l.Record))
		}
		if slices.Contains(of, l.ID) {
			got = append(got, l.ID)
		}
	}
	if want = sortedIDs(want); !slices.Equal(got, want) {
		f.Fatalf("the list of %+v has %d of %d keys, in order %v; want these %d in the order of their bytes",
			q, len(got), len(of), slices.Equal(got, sortedIDs(got)), len(want))
	}
}

func listPages(f *fixture) {
	f.lister()
	var all []umavez.ID
	own := umavez.NewAttemptID()
	for _, first := range []byte{0, 1, 0x41, 0x61, 0x7f, 0x80, 0xc3, 0xff} {
		for _, last := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			id := umavez.ID{0: first, 1: last, 30: last, 31: first}
			copy(id[8:], own[:])
			all = append(all, id)
			h := f.claim(id, f.request(umavez.Opaque))
			if len(all)%2 == 0 {
				f.answers("complete", f.store.Complete(f.Context(), h.Lease, []byte("a"), kept()), nil)
			}
		}
	}
	all = sortedIDs(all)
	for _, limit := range []int{1, 2, 7, len(all) - 1, len(all), len(all) + 1, umavez.MaxPage} {
		if got := ids(f.list(umavez.Query{Limit: limit})); !slices.Equal(got, all) {
			f.Fatalf("in pages of %d the list has %d records, want the %d that there are, in the order of their bytes", limit, len(got), len(all))
		}
	}
	after := len(all) / 2
	if got := ids(f.list(umavez.Query{Limit: 5, After: all[after]})); !slices.Equal(got, all[after+1:]) {
		f.Fatalf("from after record %d on the list has %d records, want %d", after, len(got), len(all)-after-1)
	}
	between := all[after]
	between[31]++ // no record's
	if got := ids(f.list(umavez.Query{Limit: 5, After: between})); !slices.Equal(got, all[after+1:]) {
		f.Fatalf("from after an ID between two records on the list has %d records, want %d", len(got), len(all)-after-1)
	}
}

func listBrief(f *fixture) {
	f.lister()
	space := namespace()
	req := f.request(umavez.Stepped)
	req.Namespace, req.Scope, req.Label = space, umavez.ScopeID{1, 2}, "loja/ana/k-1"
	lost, req2 := f.claim(f.key(), req), req
	f.answers("checkpoint", f.store.Checkpoint(f.Context(), lost.Lease, "cobrar", []byte("c-1")), nil)
	f.answers("abandon", f.store.Abandon(f.Context(), lost.Lease, umavez.ReasonReset, []byte("half")), nil)
	if s, ok := f.store.(umavez.Settler); ok {
		f.answers("hold", s.Hold(f.Context(), lost.ID, lost.Fence, umavez.NewAttemptID(), long), nil)
	}
	req2.Attempt = umavez.NewAttemptID()
	done := f.claim(f.key(), req2)
	f.answers("complete", f.store.Complete(f.Context(), done.Lease, []byte("aprovado"), kept()), nil)

	for _, q := range []umavez.Query{{Namespace: space, Limit: 10}, {Namespace: space, Limit: 10, States: []umavez.State{umavez.Lost}}} {
		for _, l := range f.list(q) {
			rec := f.get(l.ID)
			f.same("a record on a list", l.Record, rec.Brief())
			if l.Answer != nil || l.Last != nil || l.Request != nil {
				f.Fatalf("a list has the answer %s, the last word %s and the request %s", cut(l.Answer), cut(l.Last), cut(l.Request))
			}
			for what, d := range map[string][2]int64{
				"Age": {int64(l.Age), int64(rec.Age)}, "Since": {int64(l.Since), int64(rec.Since)},
				"RetainLeft": {int64(rec.RetainLeft), int64(l.RetainLeft)}, "HeldLeft": {int64(rec.HeldLeft), int64(l.HeldLeft)},
			} {
				if d[0] > d[1] || d[0] < d[1]-int64(slack) {
					f.Fatalf("%s on a list is %v and then %v", what, d[0], d[1])
				}
			}
		}
	}
}

func listChanges(f *fixture) {
	f.lister()
	space := namespace()
	claim := func() held {
		req := f.request(umavez.Opaque)
		req.Namespace = space
		return f.claim(f.key(), req)
	}
	var stay, change []held
	for range 20 {
		stay, change = append(stay, claim()), append(change, claim())
	}
	q := umavez.Query{Namespace: space, Limit: 3, States: []umavez.State{umavez.Running}}
	seen := map[umavez.ID]int{}
	for n := 0; ; n++ {
		page, err := f.lister().List(f.Context(), q)
		if err != nil {
			f.Fatalf("list: %v", err)
		}
		for _, l := range page {
			seen[l.ID]++
			q.After = l.ID
		}
		if len(page) < q.Limit {
			break
		}
		if n < len(change) { // one ends, and one comes
			f.answers("complete", f.store.Complete(f.Context(), change[n].Lease, nil, kept()), nil)
			claim()
		}
	}
	for _, h := range stay {
		if seen[h.ID] != 1 {
			f.Fatalf("a record that has not changed is on the list %d times", seen[h.ID])
		}
	}
	for _, n := range seen {
		if n != 1 {
			f.Fatalf("a record is on the list %d times", n)
		}
	}
}

func listCancelled(f *fixture) {
	l := f.lister()
	space := namespace()
	req := f.request(umavez.Opaque)
	req.Namespace = space
	h := f.claim(f.key(), req)
	over, cancel := context.WithCancel(f.Context())
	cancel()
	page, err := l.List(over, umavez.Query{Namespace: space, Limit: 5})
	if failure, ok := errors.AsType[*umavez.StoreError](err); ok && failure.Op == "list" {
		return
	}
	if err != nil || len(page) != 1 || page[0].ID != h.ID {
		f.Fatalf("a list with a context that is over: %d records, error %v; want the list, or a StoreError of the call %q", len(page), err, "list")
	}
}

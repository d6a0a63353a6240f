package storetest

import (
	"context"
	"errors"

	"github.com/umavez/umavez"
)

// cancelRules say how a call ends whose context is over.
var cancelRules = []rule{
	{
		name: "cancel/failures are StoreErrors",
		why: "a call whose context is over either answers or fails with a StoreError; whoever repeats calls must be able to tell " +
			"a store that failed from a store that said no",
		check: cancelIsStoreError,
	},
	{
		name:  "cancel/no means no",
		why:   "a failure that says that nothing was written is believed: nothing may have been written, and nothing may be written later",
		check: cancelNoMeansNo,
	},
}

// onEach makes each call of the contract, on a record that it suits, with a
// context that is over, and hands on what came back.
func (f *fixture) onEach(then func(c call, w *twin, r reply)) {
	over, cancel := context.WithCancel(f.Context())
	cancel()
	for _, c := range everyCall() {
		if _, ok := f.store.(umavez.Settler); c.settles && !ok {
			continue
		}
		w := f.newTwin()
		w.lead(f, c.before)
		then(c, w, w.ask(over, f.store, c.event(w.row)))
	}
}

func cancelIsStoreError(f *fixture) {
	f.onEach(func(c call, _ *twin, r reply) {
		if r.err == nil {
			return // it was fast enough to answer all the same
		}
		failure, ok := errors.AsType[*umavez.StoreError](r.err)
		if !ok {
			f.Fatalf("%s with a context that is over: %v, want an answer or a StoreError", c.name, r.err)
		}
		if failure.Op != c.op {
			f.Fatalf("%s failed as the call %q, want %q", c.name, failure.Op, c.op)
		}
	})
}

func cancelNoMeansNo(f *fixture) {
	f.onEach(func(c call, w *twin, r reply) {
		if r.err != nil && umavez.AppliedOf(r.err) == umavez.No {
			if diff := w.look(f.Context(), f.store); diff != "" {
				f.Fatalf("%s failed and said that it was not applied, but the record has changed: %s", c.name, diff)
			}
		}
	})
}

package storetest

import (
	"context"
	"fmt"

	"github.com/umavez/umavez"
)

// call is a call of the contract together with the record that it meets, for
// the rules that go through all of them.
type call struct {
	name string
	// op is the call's name in a StoreError.
	op string
	// before leads to the record that the call meets, each event after the
	// other.
	before []play
	event  play
	// settles: the call, or what leads to its record, needs a Settler.
	settles bool
}

// needs skips the rule when the store does not have the call.
func (c call) needs(f *fixture) {
	f.Helper()
	if c.settles {
		f.settler()
	}
}

// play makes an event for the record as it is, under one of two attempts.
type play func(row umavez.Row) umavez.Event

// everyCall returns all calls of the contract that may write, with the records
// on which they do.
func everyCall() []call {
	a, b := umavez.NewAttemptID(), umavez.NewAttemptID()
	claim, abandon, step := playClaim(a), playAbandon(a), playStep(a)
	return append([]call{
		{name: "claim", op: "claim", event: claim},
		{name: "repeated claim", op: "claim", before: []play{claim}, event: claim},
		{name: "claim under a bound", op: "claim", event: playBounded(a)},
		{name: "takeover", op: "claim", before: []play{claim, abandon}, event: playClaim(b)},
		{name: "resume", op: "claim", before: []play{claim, abandon}, event: playResume(b)},
		{name: "checkpoint", op: "checkpoint", before: []play{claim}, event: step},
		{name: "last word", op: "checkpoint", before: []play{claim}, event: func(umavez.Row) umavez.Event {
			return umavez.Event{Kind: umavez.EventCheckpoint, Attempt: a, Step: umavez.LastWord, Payload: []byte("half")}
		}},
		{name: "complete", op: "complete", before: []play{claim, step}, event: playComplete(a)},
		{name: "late complete", op: "complete", before: []play{claim, abandon}, event: playComplete(a)},
		{name: "release", op: "release", before: []play{claim}, event: playRelease(a)},
		{name: "release without a record", op: "release", event: playRelease(a)},
		{name: "abandon", op: "abandon", before: []play{claim}, event: abandon},
		{name: "extend", op: "extend", before: []play{claim}, event: func(umavez.Row) umavez.Event {
			return umavez.Event{Kind: umavez.EventExtend, Attempt: a, For: 2 * long}
		}},
	}, everySettling()...)
}

// everySettling returns those that are for settling, and those of an attempt
// that was settled.
func everySettling() []call {
	a := umavez.NewAttemptID()
	claim, abandon, step := playClaim(a), playAbandon(a), playStep(a)
	lost, opaque := []play{claim, abandon}, []play{playClaimAs(a, umavez.Opaque), abandon}
	hold, park := playHold(), playSettle(umavez.ActionPark)
	happened, cannot := playSettle(umavez.ActionHappened), playSettle(umavez.ActionCannotHappen)
	calls := []call{
		{name: "hold", op: "hold", before: lost, event: hold},
		{name: "hold anew", op: "hold", before: []play{claim, abandon, hold}, event: hold},
		{name: "settle as happened", op: "settle", before: lost, event: happened},
		{name: "settle as what cannot happen", op: "settle", before: opaque, event: cannot},
		{name: "settle by proof", op: "settle", before: lost, event: cannot},
		{name: "settle what holds a step", op: "settle", before: []play{claim, step, abandon}, event: cannot},
		{name: "park", op: "settle", before: lost, event: park},
		{name: "settle what is held", op: "settle", before: []play{claim, abandon, hold}, event: happened},
		{name: "forget", op: "settle", before: []play{claim, playComplete(a)}, event: playSettle(umavez.ActionForget)},
		{name: "contradicting complete", op: "complete", before: append(opaque, cannot), event: playComplete(a)},
		{name: "contradicting checkpoint", op: "checkpoint", before: []play{claim, abandon, cannot}, event: step},
		{name: "contradicting release", op: "release", before: []play{claim, abandon, happened}, event: playRelease(a)},
	}
	for i := range calls {
		calls[i].settles = true
	}
	return calls
}

// playClaim claims a stepped operation's key, or takes over what is lost.
func playClaim(by umavez.AttemptID) play { return playClaimAs(by, umavez.Stepped) }

func playClaimAs(by umavez.AttemptID, p umavez.Policy) play {
	return func(row umavez.Row) umavez.Event {
		return umavez.Event{Kind: umavez.EventClaim, Attempt: by, Claim: &umavez.ClaimRequest{
			Attempt: by, Policy: p, Route: "POST /pagamentos", Lease: long,
			Namespace: "loja", Scope: umavez.ScopeID(by), Label: "loja/ana/k-1",
			Request: []byte("the request"), TakeOver: row.Fence,
		}}
	}
}

// playBounded claims as the one record that its scope, a new one, may have.
func playBounded(by umavez.AttemptID) play {
	return func(row umavez.Row) umavez.Event {
		ev := playClaim(by)(row)
		ev.Claim.Scope, ev.Claim.MaxUnsettled = newScope(), 1
		return ev
	}
}

func playResume(by umavez.AttemptID) play {
	return func(row umavez.Row) umavez.Event {
		ev := playClaim(by)(row)
		ev.Claim.Resume = true
		return ev
	}
}

func playStep(by umavez.AttemptID) play {
	return func(umavez.Row) umavez.Event {
		return umavez.Event{Kind: umavez.EventCheckpoint, Attempt: by, Step: "cobrar", Payload: []byte("c-1")}
	}
}

func playComplete(by umavez.AttemptID) play {
	return func(umavez.Row) umavez.Event {
		return umavez.Event{Kind: umavez.EventComplete, Attempt: by, Payload: []byte("aprovado"), Keep: kept()}
	}
}

func playRelease(by umavez.AttemptID) play {
	return func(umavez.Row) umavez.Event { return umavez.Event{Kind: umavez.EventRelease, Attempt: by} }
}

func playAbandon(by umavez.AttemptID) play {
	return func(umavez.Row) umavez.Event {
		return umavez.Event{Kind: umavez.EventAbandon, Attempt: by, Reason: umavez.ReasonReset, Payload: []byte("502")}
	}
}

// playHold always has the same holder.
func playHold() play {
	holder := umavez.NewAttemptID()
	return func(row umavez.Row) umavez.Event {
		return umavez.Event{Kind: umavez.EventHold, Attempt: holder, Fence: row.Fence, For: long}
	}
}

// playSettle makes a settlement of the record as it is.
func playSettle(action umavez.Action) play {
	return func(row umavez.Row) umavez.Event { return settlement(action, row.Fence).Event() }
}

// settlement is a new one of a record that was seen with this fence.
func settlement(action umavez.Action, fence umavez.Fence) umavez.Settlement {
	s := umavez.Settlement{
		ID: umavez.NewAttemptID(), Action: action, Fence: fence,
		Who: "ana@caixa", Why: "the gateway's console says so: ticket 17",
	}
	switch action {
	case umavez.ActionHappened:
		s.Answer, s.Keep = []byte("settled"), kept()
	case umavez.ActionForget:
		s.Keep.Tombstone = long
	case umavez.ActionCannotHappen, umavez.ActionPark, umavez.ActionContradicted:
	}
	return s
}

// reply is what a call came back with.
type reply struct {
	rec      umavez.Record
	acquired bool
	trail    []umavez.AuditEntry
	list     []umavez.Listed
	last     umavez.ID
	err      error
}

// send makes an event's call on a store.
func send(ctx context.Context, s umavez.Store, id umavez.ID, ev umavez.Event) (r reply) {
	l := umavez.Lease{ID: id, Attempt: ev.Attempt}
	switch ev.Kind {
	case umavez.EventClaim:
		r.rec, r.acquired, r.err = s.Claim(ctx, id, *ev.Claim)
	case umavez.EventCheckpoint:
		r.err = s.Checkpoint(ctx, l, ev.Step, ev.Payload)
	case umavez.EventComplete:
		r.err = s.Complete(ctx, l, ev.Payload, ev.Keep)
	case umavez.EventRelease:
		r.err = s.Release(ctx, l)
	case umavez.EventAbandon:
		r.err = s.Abandon(ctx, l, ev.Reason, ev.Payload)
	case umavez.EventExtend:
		r.err = s.Extend(ctx, l, ev.For)
	case umavez.EventHold:
		r.err = s.(umavez.Settler).Hold(ctx, id, ev.Fence, ev.Attempt, ev.For)
	case umavez.EventSettle:
		r.err = s.(umavez.Settler).Settle(ctx, id, umavez.Settlement{
			ID: ev.Attempt, Action: ev.Action, Fence: ev.Fence, Answer: ev.Payload,
			Keep: ev.Keep, Quiet: ev.For, Who: ev.Who, Why: ev.Why,
		})
	default:
		panic(fmt.Sprintf("umavez: storetest: event of kind %d is no call of a store", ev.Kind))
	}
	return r
}

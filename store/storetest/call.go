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
}

// play makes an event for the record as it is, under one of two attempts.
type play func(row umavez.Row) umavez.Event

// everyCall returns all calls of the contract that may write, with the records
// on which they do.
func everyCall() []call {
	a, b := umavez.NewAttemptID(), umavez.NewAttemptID()
	steps := play(func(umavez.Row) umavez.Event {
		return umavez.Event{Kind: umavez.EventCheckpoint, Attempt: a, Step: "cobrar", Payload: []byte("c-1")}
	})
	claim, abandon := playClaim(a), playAbandon(a)
	return []call{
		{"claim", "claim", nil, claim},
		{"repeated claim", "claim", []play{claim}, claim},
		{"takeover", "claim", []play{claim, abandon}, playClaim(b)},
		{"checkpoint", "checkpoint", []play{claim}, steps},
		{"last word", "checkpoint", []play{claim}, func(umavez.Row) umavez.Event {
			return umavez.Event{Kind: umavez.EventCheckpoint, Attempt: a, Step: umavez.LastWord, Payload: []byte("half")}
		}},
		{"complete", "complete", []play{claim, steps}, playComplete(a)},
		{"late complete", "complete", []play{claim, abandon}, playComplete(a)},
		{"release", "release", []play{claim}, playRelease(a)},
		{"release without a record", "release", nil, playRelease(a)},
		{"abandon", "abandon", []play{claim}, abandon},
		{"extend", "extend", []play{claim}, func(umavez.Row) umavez.Event {
			return umavez.Event{Kind: umavez.EventExtend, Attempt: a, For: 2 * long}
		}},
	}
}

// playClaim claims, or takes over what is lost.
func playClaim(by umavez.AttemptID) play {
	return func(row umavez.Row) umavez.Event {
		return umavez.Event{Kind: umavez.EventClaim, Attempt: by, Claim: &umavez.ClaimRequest{
			Attempt: by, Policy: umavez.Stepped, Route: "POST /pagamentos", Lease: long,
			Request: []byte("the request"), TakeOver: row.Fence,
		}}
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

// reply is what a call came back with.
type reply struct {
	rec      umavez.Record
	acquired bool
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
	default:
		panic(fmt.Sprintf("umavez: storetest: event of kind %d is no call of a store", ev.Kind))
	}
	return r
}

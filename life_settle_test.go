package umavez

import "time"

// This file is the part of what can happen next that is nobody's attempt: those
// who settle, the purge, and the target's memory.

// settles: somebody holds the lost record, asks the target whether the effect
// has happened, and settles by what is known then. The verdict takes its time
// on the wire.
func (f *future) settles() {
	w := f.now
	switch {
	case w.settler.sent:
		f.settlementArrives()
	case w.settler.holds:
		f.judges()
	case w.settler.looks < f.looks && w.state() == Lost:
		if eff := f.apply(&w, Event{Kind: EventHold, Attempt: attemptID(maxAttempts), For: time.Second, Fence: w.row.in(f.policy).Fence}); eff.Err == nil {
			w.settler.holds, w.settler.fence = true, w.row.fence
			w.settler.looks++
			f.add("the settler holds the record", -1, w)
		}
	}
}

// judges: what was found did happen. What was not found cannot happen any more
// only with proof: its attempt is over and nothing of it is on the wire, the
// target has cancelled it, or runs it once by its derived key whoever asks.
func (f *future) judges() {
	w := f.now
	w.settler.holds = false
	f.add("the settler knows nothing", -1, w)
	if w.row.fence != w.settler.fence || w.row.attempt == 0 {
		return // another attempt has come: the verdict would be about nobody
	}
	a := int(w.row.attempt) - 1
	w.settler.sent = true
	if w.happened != 0 {
		w.settler.happened = true
		f.add("the settler finds that it happened", -1, w)
		return
	}
	over := w.stage[a] == atEnded || w.stage[a] == atGone
	if f.naive || f.dedupes || over && w.wire[a]&(wireEffect|wireComplete) == 0 {
		f.add("the settler finds nothing, and says that it cannot happen", -1, w)
		return
	}
	if f.policy != Atomic {
		w.refused |= 1 << a
		f.add("the settler has the target cancel it", -1, w)
	}
}

func (f *future) settlementArrives() {
	w := f.now
	ev := Event{
		Kind: EventSettle, Action: ActionCannotHappen, Fence: tinyRow{fence: w.settler.fence}.in(f.policy).Fence,
		Payload: []byte{settledAnswer}, Keep: Retention{Retain: time.Hour},
	}
	if w.settler.happened {
		ev.Action = ActionHappened
	}
	eff := f.apply(&w, ev)
	if eff.Write && ev.Action == ActionCannotHappen && !f.everBarred {
		w.barred = 0 // the row bars the settled attempt instead
	}
	f.add("the settlement arrives, the reply is lost", -1, w)
	if eff.Err == nil && w.settler.happened {
		w.tell(settledAnswer)
	}
	w.settler.sent, w.settler.happened = false, false
	f.add("the settlement arrives", -1, w)
}

// purges: a released row goes when nothing of its time is on the wire any more.
// The next fence is above its own all the same, since it is at least the clock.
func (f *future) purges() {
	w := f.now
	if w.row.phase != PhaseVacant || w.row.attempt == 0 {
		return
	}
	for a := range f.attempts {
		if w.claims[a] > 0 && w.stage[a] == atReleased {
			return
		}
	}
	w.row = tinyRow{fence: w.row.fence}
	f.add("the released row is purged", -1, w)
}

// targetForgets: the target no longer knows the derived keys that it honoured.
func (f *future) targetForgets() {
	if w := f.now; f.forgets && w.happened != 0 {
		w.happened = 0
		f.add("the target forgets its keys", -1, w)
	}
}

package umavez

import "time"

// This file is the part of what can happen next that is nobody's attempt: those
// who settle, the purge, and the target's memory.

// settles: somebody looks into the lost record, asks the target whether the
// effect has happened, and settles by what is known then; or sets the record
// aside. The verdict takes its time on the wire. Settlers are alike, so they come
// in order.
func (f *future) settles(i int) {
	w := f.now
	s := &w.settlers[i]
	switch {
	case s.verdict != noVerdict:
		f.settlementArrives(i)
	case s.looking:
		f.judges(i)
	case s.looks < f.looks && w.state() == Lost && (i == 0 || w.settlers[i-1].looks > 0):
		hold := Event{Kind: EventHold, Attempt: AttemptID{s.settlement(i)}, For: time.Second, Fence: w.row.in(f.policy).Fence}
		eff := f.apply(&w, hold)
		if eff.Err == nil || endings[w.row.ended] == ReasonParked { // a person looks into that one, and holds nothing
			s.looking, s.fence = true, w.row.fence
			s.looks++
			f.add("a settler looks at the record", -1, w)
		}
	}
}

// judges: what was found did happen. What was not found cannot happen any more
// only with proof: its attempt is over and nothing of it is on the wire, the
// target has cancelled it, or runs it once by its derived key whoever asks.
func (f *future) judges(i int) {
	say := func(what string, v verdict) {
		w := f.now
		w.settlers[i].looking, w.settlers[i].verdict = false, v
		f.add(what, -1, w)
	}
	say("a settler knows nothing", noVerdict)
	if f.parks && endings[f.now.row.ended] != ReasonParked {
		say("a settler sets it aside", saysPark)
	}
	w := f.now
	if w.row.fence != w.settlers[i].fence || w.row.attempt == 0 {
		return // another attempt has come: the verdict would be about nobody
	}
	a := int(w.row.attempt) - 1
	if w.happened != 0 {
		say("a settler finds that it happened", saysHappened)
		if !w.row.stepped {
			return // else what comes after the kept step is still to be settled
		}
	}
	over := w.stage[a] == atEnded || w.stage[a] == atGone
	switch {
	case over && w.wire[a]&(wireEffect|wireComplete) == 0:
		say("a settler finds nothing where nothing can come any more", saysQuiet)
	case f.policy != Atomic && !f.naive && !f.dedupes:
		w.refused |= 1 << a
		w.settlers[i].looking, w.settlers[i].verdict = false, saysCannot
		f.add("a settler has the target cancel it", -1, w)
	}
	if f.naive || f.dedupes && w.forgot == 0 {
		say("a settler finds nothing, and says that it cannot happen", saysCannot)
	}
}

// settlementArrives: also when its reply is lost, and then again.
func (f *future) settlementArrives(i int) {
	w := f.now
	s := &w.settlers[i]
	ev := Event{
		Kind: EventSettle, Attempt: AttemptID{s.settlement(i)}, Fence: tinyRow{fence: s.fence}.in(f.policy).Fence,
		Keep: Retention{Retain: time.Hour},
	}
	answer := uint8(settledAnswer + i)
	switch s.verdict {
	case saysHappened:
		ev.Action, ev.Payload = ActionHappened, []byte{answer}
	case saysCannot:
		ev.Action = ActionCannotHappen
	case saysQuiet:
		ev.Action, ev.For = ActionCannotHappen, time.Microsecond
	case saysPark:
		ev.Action = ActionPark
	}
	eff := f.apply(&w, ev)
	if eff.Write && ev.Action == ActionCannotHappen && !f.everBarred {
		w.barred = 0 // the row bars the settled attempt instead
	}
	what := "the settlement"
	if w.row.phase == PhaseRunning && w.row.attempt == 0 {
		what += ", over kept steps,"
	}
	f.add(what+" arrives, the reply is lost", -1, w)
	if eff.Err == nil && s.verdict == saysHappened {
		w.tell(answer)
	}
	s.verdict = noVerdict
	f.add(what+" arrives", -1, w)
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

// targetForgets: the target honours no more the derived keys that it has seen. In
// settings that are to hold, it does so late: when all that was sent has arrived,
// and the lease of everybody who might send is long over.
func (f *future) targetForgets() {
	w := f.now
	if !f.forgets && !f.forgetsLate || w.happened == w.forgot {
		return
	}
	for a := range f.attempts {
		if f.forgetsLate && (w.stage[a] == atWon || w.wire[a]&wireEffect != 0) {
			return
		}
	}
	w.forgot = w.happened
	w.row.old = f.forgetsLate && w.row.phase == PhaseRunning
	f.add("the target forgets its keys", -1, w)
}

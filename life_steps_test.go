package umavez

import "time"

// This file is what can happen next in a world. Each function adds the worlds
// that may follow by one kind of step.

// future collects the worlds that may follow one.
type future struct {
	setting
	now  world
	next []node
}

// successors returns every world that one step can lead to.
func (s setting) successors(w world) []node {
	f := &future{setting: s, now: w}
	for a := range s.attempts {
		f.starts(a)
		f.claimArrives(a)
		f.leaves(a)
		f.operates(a)
		f.effectArrives(a)
		f.callsArrive(a)
		f.dies(a)
	}
	f.leaseEnds()
	for i := range maxSettlers {
		if i == 0 || f.twoSettlers {
			f.settles(i)
		}
	}
	f.purges()
	f.targetForgets()
	return f.next
}

// add adds the world that w has become, unless nothing has changed.
func (f *future) add(what string, who int, w world) {
	if w.saved != 0 && w.flaw == noFlaw && (w.row.phase != PhaseDone || w.row.answer != w.saved) {
		w.flaw = lostAnswer
	}
	for a := range f.attempts {
		bit := uint8(1) << a
		if w.row.phase == PhaseRunning && int(w.row.attempt) == a+1 && w.stage[a] == atReleased && w.barred&bit != 0 {
			w.flaw = orphan
		}
	}
	f.next = append(f.next, node{world: w.plain(f.fenced), step: step{what, who}})
}

// apply makes a store call on the world's row.
func (f *future) apply(w *world, ev Event) Effect {
	m := move{row: w.row, kind: ev.Kind, attempt: ev.Attempt[0], fence: ev.Fence, action: ev.Action, lasts: ev.For}
	if ev.Claim != nil {
		m.fence = ev.Claim.TakeOver
	}
	if len(ev.Payload) > 0 {
		m.payload = ev.Payload[0]
	}
	got, known := f.moves[m]
	if !known {
		next := Next
		if f.setting.next != nil {
			next = f.setting.next
		}
		row, eff := next(w.row.in(f.policy), searchNow, ev)
		got = moved{row: w.row, eff: eff}
		if eff.Write {
			got.row = tinyOf(row)
		}
		f.moves[m] = got
	}
	w.row = got.row
	return got.eff
}

// move is a store call on a row: all in which those of one setting differ. Most
// calls of a search have been made before, in another world.
type move struct {
	row              tinyRow
	kind             EventKind
	attempt, payload uint8
	fence            Fence // that was looked at, or is to be taken over
	action           Action
	lasts            time.Duration
}

type moved struct {
	row tinyRow
	eff Effect
}

// starts: a client comes with a new attempt. If it finds the record lost, it
// asks to take over. Attempts are alike, so they start in order.
func (f *future) starts(a int) {
	if f.now.stage[a] != atIdle || a > 0 && f.now.stage[a-1] == atIdle {
		return
	}
	w := f.now
	w.stage[a], w.claims[a] = atClaiming, f.copies
	if w.state() == Lost {
		w.over[a] = w.row.fence
	}
	f.add("sends its claim", a, w)
}

// claimArrives: a copy of a claim reaches the store, perhaps when its attempt
// has long gone on, and its reply reaches the attempt, or is lost.
func (f *future) claimArrives(a int) {
	if f.now.claims[a] == 0 {
		return
	}
	w := f.now
	w.claims[a]--
	req := &ClaimRequest{Policy: f.policy, Lease: time.Second}
	if w.over[a] > 0 {
		req.TakeOver = tinyRow{fence: w.over[a]}.in(f.policy).Fence
	}
	aside := endings[w.row.ended] == ReasonParked
	eff := f.apply(&w, Event{Kind: EventClaim, Attempt: attemptID(a), Claim: req})
	if eff.Acquired {
		if aside {
			w.flaw = parkedRun
		}
		if w.row.again && w.row.old {
			w.doubts |= 1 << a
		}
		w.granted[a] = w.row.fence
		f.displace(&w, a)
	}
	if w.stage[a] != atClaiming {
		f.add("its claim arrives late", a, w)
		return
	}
	f.add("its claim arrives, the reply is lost", a, w)
	switch {
	case !eff.Acquired:
		w.stage[a] = atGone
		if w.state() == Done {
			w.tell(w.row.answer)
		}
		f.add("its claim is refused", a, w)
	case w.row.stepped: // what is left to do is done from the kept step
		w.stage[a] = atAnswered
		f.add("its claim is granted, with a step kept", a, w)
	default:
		w.stage[a] = atWon
		f.add("its claim is granted", a, w)
	}
}

// displace: a record has room for one barred attempt. When another one claims
// or is released, the bar of those before is no longer promised.
func (f *future) displace(w *world, by int) {
	if !f.everBarred {
		w.barred &= 1 << by
	}
}

// leaves: an attempt whose caller has gone, or whose claim got no answer,
// releases what it may have won. The operation was not started.
func (f *future) leaves(a int) {
	if s := f.now.stage[a]; s != atClaiming && s != atWon {
		return
	}
	w := f.now
	w.stage[a] = atLeaving
	w.wire[a] |= wireRelease
	f.add("leaves and sends its release", a, w)
}

// operates: the owner goes on: it starts the operation, ends it, or gives up.
func (f *future) operates(a int) {
	send := func(what string, stage stage, message uint8) {
		w := f.now
		w.stage[a] = stage
		w.wire[a] |= message
		f.add(what, a, w)
	}
	switch f.now.stage[a] {
	case atWon:
		if f.policy == Atomic {
			send("commits", atFinishing, wireComplete)
			break
		}
		if f.now.doubts&(1<<a) != 0 {
			send("finds its step in doubt and abandons", atGiving, wireAbandon)
			break
		}
		send("starts the operation", atWaiting, wireEffect)
	case atWaiting:
		send("gives up waiting and abandons", atGiving, wireAbandon)
	case atAnswered:
		if f.policy == Stepped {
			send("keeps the step", atAnswered, wireStep)
		} else {
			send("completes", atFinishing, wireComplete)
		}
		send("ends badly and abandons", atGiving, wireAbandon)
	case atEnded:
		if f.now.happened&(1<<a) != 0 {
			send("learns the answer after all and completes late", atFinishing, wireComplete)
		}
	}
	if s := f.now.stage[a]; s == atWon || s == atWaiting || s == atAnswered {
		f.beats(a)
	}
}

// beats: the owner's heartbeat goes to the store, at once or, in settings that
// look at late ones, after any delay.
func (f *future) beats(a int) {
	w := f.now
	if f.lateBeats {
		w.wire[a] |= wireExtend
		f.add("sends a heartbeat", a, w)
		return
	}
	f.apply(&w, Event{Kind: EventExtend, Attempt: attemptID(a), For: time.Second})
	f.add("its heartbeat arrives", a, w)
}

// effectArrives: the request reaches the target, perhaps long after its sender
// is gone; or it is lost on its way.
func (f *future) effectArrives(a int) {
	if f.now.wire[a]&wireEffect == 0 {
		return
	}
	w := f.now
	w.wire[a] &^= wireEffect
	f.add("its effect's request is lost", a, w)
	if !f.hit(&w, a) {
		f.add("its effect is refused by the target", a, w)
		return
	}
	f.add("its effect happens, the reply is lost", a, w)
	if w.stage[a] == atWaiting {
		w.stage[a] = atAnswered
		f.add("its effect happens", a, w)
	}
}

// hit is the target: it lets the effect happen, or answers from what it has, or
// refuses.
func (f *future) hit(w *world, a int) bool {
	bit := uint8(1) << a
	if w.refused&bit != 0 || f.fenced && w.granted[a] < w.top {
		return false
	}
	if f.fenced {
		w.top = w.granted[a]
	}
	known := w.happened &^ w.forgot
	if f.keyedByAttempt {
		known &= bit
	}
	w.happened |= bit
	if f.dedupes && known != 0 {
		return true
	}
	f.affect(w)
	return true
}

func (f *future) affect(w *world) {
	w.effects = min(2, w.effects+1)
	if w.effects > 1 && !f.many {
		w.flaw = twoEffects
	}
}

// callsArrive: what an owner has sent to the store arrives, whatever has become
// of the owner. A reply that is lost leaves the call on the wire: it is repeated.
func (f *future) callsArrive(a int) {
	for _, c := range []struct {
		message uint8
		what    string
		ev      Event
		then    func(w *world, a int, eff Effect)
	}{
		{wireStep, "step", Event{Kind: EventCheckpoint, Step: "s"}, (*world).stepKept},
		{wireComplete, "completion", Event{Kind: EventComplete, Payload: []byte{uint8(a) + 1}, Keep: Retention{Retain: time.Hour}}, (*world).completed},
		{wireRelease, "release", Event{Kind: EventRelease}, (*world).left},
		{wireAbandon, "abandon", Event{Kind: EventAbandon}, (*world).gaveUp},
		{wireExtend, "heartbeat", Event{Kind: EventExtend, For: time.Second}, func(*world, int, Effect) {}},
	} {
		if f.now.wire[a]&c.message == 0 {
			continue
		}
		w := f.now
		c.ev.Attempt = attemptID(a)
		eff := f.apply(&w, c.ev)
		switch {
		case c.message == wireComplete && f.policy == Atomic && eff.Write:
			f.affect(&w) // in the same transaction
		case c.message == wireRelease && eff.Err == nil:
			if eff.Write {
				f.displace(&w, a)
			}
			w.barred |= 1 << a
		}
		f.add("its "+c.what+" arrives, the reply is lost", a, w)
		w.wire[a] &^= c.message
		c.then(&w, a, eff)
		f.add("its "+c.what+" arrives", a, w)
	}
}

func (w *world) stepKept(a int, eff Effect) {
	switch {
	case w.stage[a] != atAnswered:
	case eff.Err == nil:
		w.stage[a] = atFinishing
		w.wire[a] |= wireComplete
	default:
		w.stage[a] = atGone
	}
}

// completed: the caller of an attempt gets its answer, or the record's.
func (w *world) completed(a int, eff Effect) {
	if w.stage[a] != atFinishing {
		return
	}
	w.stage[a] = atGone
	switch {
	case eff.Err == nil:
		w.tell(uint8(a) + 1)
	case w.state() == Done:
		w.tell(w.row.answer)
	}
}

func (w *world) left(a int, eff Effect) {
	if w.stage[a] != atLeaving {
		return
	}
	w.stage[a] = atGone
	if eff.Err == nil {
		w.stage[a] = atReleased
	}
}

func (w *world) gaveUp(a int, eff Effect) {
	if w.stage[a] != atGiving {
		return
	}
	w.stage[a] = atGone
	if eff.Err == nil {
		w.stage[a] = atEnded
	}
}

// dies: the process of an attempt ends. What it has sent stays on the wire.
func (f *future) dies(a int) {
	switch f.now.stage[a] {
	case atIdle, atReleased, atEnded, atGone:
		return
	}
	w := f.now
	w.stage[a] = atGone
	f.add("dies", a, w)
}

// leaseEnds: time passes, for any reason.
func (f *future) leaseEnds() {
	if w := f.now; w.row.phase == PhaseRunning && !w.row.expired {
		w.row.expired = true
		f.add("the lease runs out", -1, w)
	}
}

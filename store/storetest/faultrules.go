package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/umavez/umavez"
)

// faultRules sends every call of the contract into every fault, and then again.
// Whatever the fault has left, the repeat gets the contract's answer, and the
// record is what the model says: so the engine may repeat a call until the
// store has answered.
func faultRules() []rule {
	faults := []struct {
		name, why string
		meet      func(m *mishap)
	}{
		{"refused", "a call that never reached the store has changed nothing, and its repeat is the first", (*mishap).refused},
		{"not applied", "a call that never reached the store, though nobody knows, has changed nothing, and its repeat is the first", (*mishap).notApplied},
		{"reply lost", "a call that was applied though its reply was lost is answered when it is repeated as if it had been the first", (*mishap).replyLost},
		{"cut off", "a call whose context ends while the store is at it leaves the record before it or after it, never between, and can be repeated", (*mishap).cutOff},
		{"slow", "a call that arrives after its own repeat gets the same answer and changes nothing more", (*mishap).slow},
		{"given up and late", "a call that was given up, and arrives after its repeat was answered, changes nothing more", (*mishap).late},
	}
	var table []rule
	for _, c := range everyCall() {
		for _, fault := range faults {
			table = append(table, rule{
				name: "fault/" + c.name + "/" + fault.name,
				why:  fault.why,
				check: func(f *fixture) {
					c.needs(f)
					m := &mishap{fixture: f, call: c, twin: f.newTwin(), faulty: &FaultySettling{NewFaulty(f.store)}}
					m.lead(f, c.before)
					m.ev = c.event(m.row)
					fault.meet(m)
				},
			})
		}
	}
	return table
}

// mishap is one call that meets one fault.
type mishap struct {
	*fixture
	*twin
	call   call
	ev     umavez.Event
	faulty *FaultySettling
}

// repeat makes the call again, on its straight way, and looks at the record.
func (m *mishap) repeat() {
	m.Helper()
	m.right("the repeat", m.play(m.Context(), m.store, m.ev))
	m.right("the record after the repeat", m.look(m.Context(), m.store))
}

// right fails when something differs from the model.
func (m *mishap) right(what, diff string) {
	m.Helper()
	if diff != "" {
		m.Fatalf("%s: %s: %s", m.call.name, what, diff)
	}
}

func (m *mishap) refused()    { m.unsent(Refused) }
func (m *mishap) notApplied() { m.unsent(NotApplied) }

func (m *mishap) unsent(fault Fault) {
	m.faulty.Inject(m.call.op, fault)
	if r := m.ask(m.Context(), m.faulty, m.ev); !errors.Is(r.err, ErrInjected) {
		m.Fatalf("the fault was not met: %v", r.err)
	}
	m.right("the record before the repeat", m.look(m.Context(), m.store))
	m.repeat()
}

func (m *mishap) replyLost() {
	m.faulty.Inject(m.call.op, ReplyLost)
	if r := m.ask(m.Context(), m.faulty, m.ev); !errors.Is(r.err, ErrInjected) {
		m.Fatalf("the fault was not met: %v", r.err)
	}
	m.model(m.ev)
	m.right("the record after the lost reply", m.look(m.Context(), m.store))
	m.repeat()
}

// cutOff ends the context at several moments, since nobody knows which one
// falls into the middle of this store's call.
func (m *mishap) cutOff() {
	for _, after := range []time.Duration{0, 20 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		m.twin = m.newTwin()
		m.lead(m.fixture, m.call.before)
		m.ev = m.call.event(m.row)
		m.faulty.CutAfter = after
		m.faulty.Inject(m.call.op, CutOff)
		r := m.ask(m.Context(), m.faulty, m.ev)
		_, isFailure := errors.AsType[*umavez.StoreError](r.err)
		switch {
		case isFailure && umavez.AppliedOf(r.err) == umavez.No:
			m.right("the record after a failure that said no", m.look(m.Context(), m.store))
		case !isFailure:
			m.right("the reply", m.judge(m.ev, m.model(m.ev), r))
		}
		m.repeat()
	}
}

func (m *mishap) slow() {
	replied, held := m.holdUp(m.Context())
	m.repeat()
	held.Go()
	m.right("the call that was held up", m.judge(m.ev, m.model(m.ev), <-replied))
	m.right("the record in the end", m.look(m.Context(), m.store))
}

func (m *mishap) late() {
	ctx, giveUp := context.WithCancel(m.Context())
	replied, held := m.holdUp(ctx)
	giveUp()
	if r := <-replied; umavez.AppliedOf(r.err) != umavez.Maybe {
		m.Fatalf("a call that was given up: %v, want a maybe", r.err)
	}
	m.repeat()
	held.Go()
	m.model(m.ev)
	m.right("the record in the end", m.look(m.Context(), m.store))
}

// holdUp starts the call and waits until it is on its way.
func (m *mishap) holdUp(ctx context.Context) (<-chan reply, *HeldUp) {
	held := m.faulty.HoldUp(m.call.op)
	replied := make(chan reply, 1)
	// The twin must not change under the call's eyes: it is asked for its
	// fences before the call is on its way.
	w := *m.twin
	go func() { replied <- w.ask(ctx, m.faulty, m.ev) }()
	<-held.Arrived()
	return replied, held
}

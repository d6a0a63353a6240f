package umavez

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// stepBook is what a stepped attempt knows of its steps: those that the record
// holds, in the order in which they were kept, and those that this attempt has
// asked for.
type stepBook struct {
	retried bool          // an earlier attempt may have sent what is not kept
	age     time.Duration // of the record's first claim, when this one was sent
	sent    reading
	found   int // how many of the kept steps the claim found

	mu     sync.Mutex
	kept   []KeptStep
	asked  map[string]bool
	doubt  bool       // a step was sent, by this attempt or perhaps by an earlier one
	news   signal     // a step was asked for, or broken was set
	broken *StepError // why the key becomes unknown; nil: nothing is wrong
}

// sentMark begins the name under which a step without a foreign key is noted
// before it is sent. No step has such a name: see checkStepName.
const sentMark = "\x00sent "

func newStepBook(w won) *stepBook {
	return &stepBook{
		retried: w.rec.Tries > 1, age: w.rec.Age, sent: w.sent,
		found: len(w.rec.Steps), kept: w.rec.Steps, asked: make(map[string]bool),
		doubt: w.rec.Tries > 1,
	}
}

func checkStepName(name string) error {
	if name == "" || len(name) > MaxStepName || name[0] == sentMark[0] {
		return errorf("a step's name has 1 to %d bytes and does not begin with NUL: %.20q", MaxStepName, name)
	}
	return nil
}

// enterStep begins a step. It returns what is kept of it, or nil when it is to
// run now, and then how many steps were kept before it.
func (a *Attempt) enterStep(ctx context.Context, name string, o *stepOptions) (kept *stepResult, after int, err error) {
	b := a.steps
	switch {
	case b == nil:
		return nil, 0, ErrNotStepped
	case a.hasEnded():
		return nil, 0, ErrEnded
	}
	if err := checkStepName(name); err != nil {
		return nil, 0, err
	}
	kept, after, err = b.ask(name)
	if err != nil {
		return nil, 0, err
	}
	if kept != nil {
		return kept, 0, b.othersFirst(ctx, name, kept.After)
	}
	if err := b.othersFirst(ctx, name, b.found); err != nil {
		return nil, 0, err
	}
	// A process that was stopped for long may find that another attempt has run
	// all this meanwhile, and that the foreign system has forgotten the key.
	if a.leaseLeft() <= 0 {
		return nil, 0, ErrLeaseRanOut
	}
	if err := b.send(name, o, a.eng.clock()); err != nil {
		return nil, 0, err
	}
	if o.noKey {
		//nolint:contextcheck // detached, as every write of an attempt
		err = a.keepStep(sentMark+name, stepResult{Sent: true})
	}
	return nil, after, err
}

// ask looks a step up, once in an attempt, and counts what is kept by now.
func (b *stepBook) ask(name string) (kept *stepResult, after int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.broken != nil:
		return nil, 0, b.broken
	case b.asked[name]:
		return nil, 0, fmt.Errorf("%w: %q", ErrStepTwice, name)
	case len(b.asked) >= MaxSteps:
		return nil, 0, errorf("more than %d steps in one operation", MaxSteps)
	}
	b.asked[name] = true
	b.news.wake()
	i := b.find(name)
	if i < 0 {
		return nil, len(b.kept), nil
	}
	kept = new(stepResult)
	if err := json.Unmarshal(b.kept[i].Result, kept); err != nil || kept.After > i {
		return nil, 0, b.breakUp(name, ReasonCodeChanged, "what is kept of it cannot be read")
	}
	return kept, 0, nil
}

// stepPatience is how long a step waits for those that come before it: steps
// that run beside each other ask at nearly the same moment, in any order.
const stepPatience = time.Second

// othersFirst holds a step back until the first n kept steps were asked for:
// those that were kept before it began, or, for a new step, all that the claim
// found. If they are not, the code has changed, and a new step may be one of
// them under another name.
func (b *stepBook) othersFirst(ctx context.Context, name string, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil && b.missing(n) == "" {
		return nil
	}
	timer := time.NewTimer(stepPatience)
	defer timer.Stop()
	for b.broken == nil {
		missing := b.missing(n)
		if missing == "" {
			return nil
		}
		news := b.news.wait()
		b.mu.Unlock()
		var late bool
		select {
		case <-news:
		case <-timer.C:
			late = true
		case <-ctx.Done():
		}
		b.mu.Lock()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case late && b.missing(n) != "":
			return b.breakUp(name, ReasonCodeChanged,
				fmt.Sprintf("an earlier attempt ran %q before it, and this one has not; the code has changed", missing))
		}
	}
	return b.broken
}

// missing names one of the first n kept steps that was not asked for, or is
// empty. Called with the mutex held.
func (b *stepBook) missing(n int) string {
	for _, s := range b.kept[:n] {
		if !strings.HasPrefix(s.Name, sentMark) && !b.asked[s.Name] {
			return s.Name
		}
	}
	return ""
}

// send says whether a step that is not kept may be sent, and notes that it is.
func (b *stepBook) send(name string, o *stepOptions, now reading) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case o.noKey && b.find(sentMark+name) >= 0:
		return b.breakUp(name, ReasonStepInDoubt, "it was sent before, and the foreign system honours no key")
	case b.retried && !o.noKey && b.age+now.since(b.sent) > o.honoured:
		return b.breakUp(name, ReasonStepInDoubt, fmt.Sprintf("it may have been sent before, more than %v ago", o.honoured))
	}
	b.doubt = true
	return nil
}

// find returns the place of a kept step, or -1. Called with the mutex held.
func (b *stepBook) find(name string) int {
	for i, s := range b.kept {
		if s.Name == name {
			return i
		}
	}
	return -1
}

// breakUp makes the key unknown: no step runs any more. Called with the mutex held.
func (b *stepBook) breakUp(name string, why Reason, detail string) error {
	if b.broken == nil {
		b.broken = &StepError{Step: name, Reason: why, detail: detail}
		b.news.wake()
	}
	return b.broken
}

// keepStep has the store keep a result, for as long as a save may take. A step
// that could not be kept stays in doubt.
func (a *Attempt) keepStep(name string, result stepResult) error {
	text, err := json.Marshal(result)
	if err != nil {
		return errorf("step %q: %w", name, err)
	}
	if len(text) > MaxStepResult {
		return errorf("the result of step %q has %d bytes as it is kept, at most %d may be", name, len(text), MaxStepResult)
	}
	e, b := a.eng, a.steps
	err = e.repeat(func(ctx context.Context) error { return e.store.Checkpoint(ctx, a.lease, name, text) })
	if err != nil {
		return errorf("step %q was not kept: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept[:len(b.kept):len(b.kept)], KeptStep{Name: name, Result: text})
	return nil
}

// verdict is what the steps make of an end: completed only when every kept step
// was asked for and none was refused, released only when none was sent, kept or
// not. A step in doubt must not be forgotten: the record knows since when its key
// is in use. broken is why the key becomes unknown instead.
func (b *stepBook) verdict(end job) (_ job, broken error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if missing := b.missing(b.found); b.broken == nil && end.kind == jobComplete && missing != "" {
		_ = b.breakUp(missing, ReasonCodeChanged, "it is kept, and was not asked for; the code has changed")
	}
	switch {
	case b.broken != nil:
		return job{kind: jobAbandon, reason: b.broken.Reason}, b.broken
	case end.kind == jobRelease && (b.doubt || len(b.kept) > 0):
		return job{kind: jobAbandon, reason: ReasonStatus, payload: end.payload}, nil
	}
	return end, nil
}

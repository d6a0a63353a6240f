package umavez

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// This file is one turn of a reconciler: hold the record, ask, and settle it or
// hold it on until the next turn. Nothing of it is remembered in the process: how
// long the pauses are follows from the age of the loss, and that a pause is on
// from the hold. So it makes no difference which process comes next, and one that
// dies in the middle leaves a hold that runs out.

// The longest pause between two turns; a hold counts for all processes, so nobody
// should have to wait longer for the foreign system's second thoughts.
const maxAskPause = time.Hour

// askGrace is how long after its context has ended a call of Ask may still
// return. After that it is left to itself.
const askGrace = time.Second

// mayAsk returns the reconciler that is to be asked about the record now, or nil.
// Of a parked record nobody is asked: that is for people.
func (e *Engine) mayAsk(rec *Record) *reconciler {
	if !rec.Unknown() || rec.Reason == ReasonParked || rec.HeldLeft > 0 {
		return nil
	}
	r := e.recoveries.reconciler(rec)
	if r == nil || rec.Since < r.After || e.keeper.owns(rec.Attempt) {
		return nil
	}
	return r
}

// holdFor is how long one turn holds a record: longer than the turn can take.
func (e *Engine) holdFor(r *reconciler) time.Duration {
	return r.Timeout + askGrace + e.opt.ClaimTimeout + 2*e.opt.SaveTimeout
}

// reconcile is one turn for the lost record with this fence. ctx is Ask's, and that
// of what is read; what is written is repeated until the store has answered.
//
//nolint:contextcheck // as it says
func (e *Engine) reconcile(ctx context.Context, id ID, fence Fence, r *reconciler) {
	holder := NewAttemptID()
	if e.hold(id, fence, holder, e.holdFor(r)) != nil {
		return // another holds it, it has moved, or the store is away
	}
	read := e.clock()
	e.leaps.look(read, e.opt.Lease)
	rec, err := e.look(ctx, id)
	if err != nil || rec.State != Lost || rec.Fence != fence {
		return // the hold runs out; or a late owner has completed
	}
	since := func() time.Duration { return rec.Since + e.clock().since(read) }
	if rec.Since >= r.Park {
		e.park(id, &rec, r.Who, fmt.Sprintf("asked for %v, and still unknown", r.Park))
		return
	}
	v, err := e.ask(ctx, r, LostRecord{ID: id, Record: rec})
	e.tell(MomentAsked, id, rec.Route, rec.Policy, Observation{
		Attempt: rec.Attempt, Fence: fence, Reason: rec.Reason, Err: err,
	})
	if v.tooEarly(min(rec.Since, e.leaps.calm(read)), r) {
		v = StillUnknown()
	}
	if err == nil && v.action != "" {
		err = e.settleLost(id, &rec, v.settlement(r, &rec, e))
		if !errors.Is(err, ErrNotQuiet) {
			return // settled; or moved; or the hold runs out, and somebody asks again
		}
	}
	_ = e.hold(id, fence, holder, r.pause(since())) // else somebody asks a little too soon
}

// tooEarly: what was looked for before the quiet time was over may have come since.
// The store looks at the quiet time, too, but only when the verdict has arrived, and
// by a clock that may have leapt.
func (v Verdict) tooEarly(quiet time.Duration, r *reconciler) bool {
	return v.action == ActionCannotHappen && v.proof == "" && quiet < r.Quiet
}

// pause is how long after a turn the next one comes, of a record that has been
// lost for a time: as long as since the first turn, and Every in front. So turns
// come at After, and then Every, 3 Every, 7 Every after that.
func (r *reconciler) pause(since time.Duration) time.Duration {
	pause := min(max(since-r.After, 0)+r.Every, max(maxAskPause, r.Every))
	// Parking is a turn, too, and comes when it is due.
	return max(min(pause, r.Park-since), time.Millisecond)
}

// hold holds a record, or holds it on.
func (e *Engine) hold(id ID, fence Fence, holder AttemptID, d time.Duration) error {
	return e.repeat(func(ctx context.Context) error {
		return e.store.(Settler).Hold(ctx, id, fence, holder, d)
	})
}

// look reads a record, for as long as a claim may take.
func (e *Engine) look(ctx context.Context, id ID) (Record, error) {
	ctx, cancel := e.callContext(ctx, e.opt.ClaimTimeout)
	defer cancel()
	return e.store.Get(ctx, id)
}

// errAskGone: Ask ended its goroutine.
var errAskGone = errors.New("umavez: Ask ended its goroutine instead of returning")

// ask calls Ask, on a goroutine that may be left behind. Whatever goes wrong is an
// error.
func (e *Engine) ask(ctx context.Context, r *reconciler, l LostRecord) (Verdict, error) {
	type answer struct {
		v   Verdict
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	answered := make(chan answer, 1)
	go func() {
		got := answer{err: errAskGone}
		defer func() {
			if p := recover(); p != nil {
				got = answer{err: errorf("Ask panicked: %v", p)}
			}
			answered <- got
		}()
		got.v, got.err = r.Ask(ctx, l)
	}()
	var got answer
	select {
	case got = <-answered:
	case <-ctx.Done():
		late := time.NewTimer(askGrace)
		defer late.Stop()
		select {
		case got = <-answered:
		case <-late.C:
			got.err = errorf("Ask did not return though its context had ended: %w", context.Cause(ctx))
		}
	}
	if got.err == nil && got.v.action == ActionHappened && got.v.answer == nil {
		got.err = errorf("Ask says that it happened, and gives no answer for it")
	}
	return got.v, got.err
}

// settlement is the verdict as the store takes it.
func (v Verdict) settlement(r *reconciler, rec *Record, e *Engine) Settlement {
	s := Settlement{Action: v.action, Who: r.Who}
	switch {
	case v.action == ActionHappened:
		s.Answer, s.Why = v.answer, "asked, and it happened"
		s.Keep = e.opt.retention(&Operation{Policy: rec.Policy, Retain: r.retain, Tombstone: r.tombstone})
	case v.proof != "":
		s.Why = "asked, and it cannot happen any more: " + v.proof
	default:
		s.Quiet, s.Why = r.Quiet, fmt.Sprintf("asked more than %v after the loss, and it did not happen", r.Quiet)
	}
	s.Why = plain(s.Why, MaxWhy)
	return s
}

// park sets a lost record aside. Two processes that do it at once do it once.
func (e *Engine) park(id ID, rec *Record, who, why string) {
	b := binary.BigEndian.AppendUint64(append([]byte("umavez park 1\x00"), id[:]...), uint64(rec.Fence))
	sum := sha256.Sum256(b)
	_ = e.settleLost(id, rec, Settlement{ID: AttemptID(sum[:16]), Action: ActionPark, Who: who, Why: why}) // observed; the next turn tries again
}

// settleLost applies a settlement to the lost record that was looked at.
func (e *Engine) settleLost(id ID, rec *Record, s Settlement) error {
	if s.ID == (AttemptID{}) {
		s.ID = NewAttemptID()
	}
	s.Fence = rec.Fence
	err := e.repeat(func(ctx context.Context) error { return e.store.(Settler).Settle(ctx, id, s) })
	if !errors.Is(err, ErrNotQuiet) {
		e.tell(MomentSettled, id, rec.Route, rec.Policy, Observation{
			Attempt: rec.Attempt, Fence: rec.Fence, Reason: rec.Reason, Err: err,
		})
	}
	return err
}

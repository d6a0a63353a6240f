package umavez

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// sealedStore seals what goes into a store and opens what comes out of it. It is
// what the engine calls when Options.Sealer is set. What is sealed is what a
// caller's data can be in: answers, last words, requests and results of steps.
// All else a store needs for its work, and has in plain.
//
// It hands on what a store answers, with one addition: a store compares bytes,
// and the bytes of one text differ when the key in use has changed since, or the
// attempt has. Where the store says that another text is kept, sealedStore looks
// whether it is, and if not repeats the call with the very bytes that are kept:
// the store's own rules then decide.
type sealedStore struct {
	base   Store
	sealer Sealer
}

// ErrUnreadable: what the record holds cannot be opened: it was sealed with a
// key that is not at hand, lies in plain, was moved to where it is, or is
// damaged. The error around it says which, and shows nothing of the text.
var ErrUnreadable = errors.New("umavez: what the record holds cannot be opened")

// Claim hands on a claim. A record that is not granted comes back with what of
// it can be opened: see [Record].Unreadable. A granted one is given up again
// when its steps cannot be opened: an attempt that does not know what has
// happened would do it again.
func (s *sealedStore) Claim(ctx context.Context, id ID, req ClaimRequest) (Record, bool, error) {
	if req.Request != nil {
		var err error
		if req.Request, err = s.seal(place{id: id, field: fieldRequest}, req.Request); err != nil {
			return Record{}, false, notSealed("claim", err)
		}
	}
	rec, acquired, err := s.base.Claim(ctx, id, req)
	if err != nil {
		return rec, acquired, err
	}
	s.open(id, &rec)
	if !acquired || rec.resumable() {
		return rec, acquired, nil
	}
	// Whoever looks before a takeover, as the engine does, gets here only when a
	// late owner has kept another step in between. If this call fails, the lease
	// runs out.
	l := Lease{ID: id, Attempt: req.Attempt, Fence: rec.Fence}
	if err := s.base.Abandon(ctx, l, ReasonUnreadable, nil); err != nil {
		return Record{}, false, errors.Join(&StoreError{Op: "claim", Err: rec.Unreadable}, err)
	}
	return Record{}, false, &StoreError{Op: "claim", Applied: No, Err: rec.Unreadable}
}

// resumable reports whether an attempt can go on from what the record holds.
func (r *Record) resumable() bool { return r.Unreadable == nil || len(r.Steps) == 0 }

// Checkpoint seals a step's result, or the last word.
func (s *sealedStore) Checkpoint(ctx context.Context, l Lease, step string, result []byte) error {
	p := place{id: l.ID, field: fieldStep, step: step, fence: l.Fence}
	if step == LastWord {
		p = place{id: l.ID, field: fieldLast, fence: l.Fence}
	}
	sealed, err := s.seal(p, result)
	if err != nil {
		return notSealed("checkpoint", err)
	}
	return s.inKeptForm(ctx, "checkpoint", p, result, sealed, ErrStepKept, func(sealed []byte) error {
		return s.base.Checkpoint(ctx, l, step, sealed)
	})
}

// Complete seals the answer. It reads the record first.
func (s *sealedStore) Complete(ctx context.Context, l Lease, answer []byte, keep Retention) error {
	p := place{id: l.ID, field: fieldAnswer, fence: l.Fence}
	sealed, err := s.seal(p, answer)
	if err != nil {
		return notSealed("complete", err)
	}
	// The record may have been settled with this very answer, and have it in other
	// bytes: sealed with another key, or under the fence of a settlement. Completed
	// in bytes of its own, that would go into the audit trail as a contradiction,
	// for good.
	kept, same, err := s.kept(ctx, p, answer)
	switch {
	case err != nil:
		return notRead("complete", err)
	case same:
		sealed = kept
	}
	return s.inKeptForm(ctx, "complete", p, answer, sealed, ErrLeaseLost, func(sealed []byte) error {
		return s.base.Complete(ctx, l, sealed, keep)
	})
}

// keptTries bounds how often a call is repeated in the bytes that are kept: they
// change once in a change of keys, while they are sealed anew.
const keptTries = 3

// inKeptForm makes a call, and repeats it in the bytes that are kept when those
// are why it is refused.
func (s *sealedStore) inKeptForm(
	ctx context.Context, op string, p place, text, sealed []byte, refused error, call func(sealed []byte) error,
) error {
	for try := 1; ; try++ {
		err := call(sealed)
		if !errors.Is(err, refused) || try == keptTries {
			return err
		}
		kept, same, failed := s.kept(ctx, p, text)
		if failed != nil {
			return notRead(op, failed) // whether it is refused is not known yet
		}
		if !same || bytes.Equal(kept, sealed) {
			return err
		}
		sealed = kept
	}
}

// kept returns the bytes that stand in the text's place, and whether they are
// that text.
func (s *sealedStore) kept(ctx context.Context, p place, text []byte) (sealed []byte, same bool, err error) {
	rec, err := s.base.Get(ctx, p.id)
	if err != nil {
		return nil, false, err
	}
	switch p.field {
	case fieldAnswer:
		if rec.State == Done {
			sealed = rec.Answer
		}
	case fieldStep:
		for _, kept := range rec.Steps {
			if kept.Name == p.step {
				sealed = kept.Result
			}
		}
	}
	if sealed == nil {
		return nil, false, nil
	}
	p.fence = rec.Fence
	opened, err := s.openOne(p, sealed)
	return sealed, err == nil && bytes.Equal(opened, text), nil
}

// Release hands on.
func (s *sealedStore) Release(ctx context.Context, l Lease) error { return s.base.Release(ctx, l) }

// Abandon seals the last word.
func (s *sealedStore) Abandon(ctx context.Context, l Lease, reason Reason, last []byte) error {
	if last != nil {
		var err error
		if last, err = s.seal(place{id: l.ID, field: fieldLast, fence: l.Fence}, last); err != nil {
			return notSealed("abandon", err)
		}
	}
	return s.base.Abandon(ctx, l, reason, last)
}

// Extend hands on.
func (s *sealedStore) Extend(ctx context.Context, l Lease, d time.Duration) error {
	return s.base.Extend(ctx, l, d)
}

// Get returns the record with what of it can be opened. If that is not all, it
// is a failure, too: the record comes with a [*StoreError] of ErrUnreadable.
func (s *sealedStore) Get(ctx context.Context, id ID) (Record, error) {
	rec, err := s.base.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	s.open(id, &rec)
	if rec.Unreadable != nil {
		return rec, &StoreError{Op: "get", Applied: No, Err: rec.Unreadable}
	}
	return rec, nil
}

// Hold hands on to the base, which is a Settler wherever the engine calls this.
func (s *sealedStore) Hold(ctx context.Context, id ID, fence Fence, holder AttemptID, d time.Duration) error {
	settler, ok := s.base.(Settler)
	if !ok {
		return fmt.Errorf("%w: holding records", ErrNotOffered)
	}
	return settler.Hold(ctx, id, fence, holder, d)
}

// Settle seals the answer that a record is settled with.
func (s *sealedStore) Settle(ctx context.Context, id ID, set Settlement) error {
	settler, ok := s.base.(Settler)
	if !ok {
		return fmt.Errorf("%w: settling records", ErrNotOffered)
	}
	if set.Action == ActionHappened {
		var err error
		if set.Answer, err = s.seal(place{id: id, field: fieldAnswer, fence: set.Fence}, set.Answer); err != nil {
			return notSealed("settle", err)
		}
	}
	return settler.Settle(ctx, id, set)
}

// Trail hands on. The audit trail is in plain: it says who changed what, and why.
func (s *sealedStore) Trail(ctx context.Context, id ID) ([]AuditEntry, error) {
	settler, ok := s.base.(Settler)
	if !ok {
		return nil, fmt.Errorf("%w: an audit trail", ErrNotOffered)
	}
	return settler.Trail(ctx, id)
}

// notRead is the failure of a look that a call needs. The call itself has
// written nothing.
func notRead(op string, err error) error {
	return &StoreError{Op: op, Applied: No, Err: err}
}

func notSealed(op string, err error) error {
	return &StoreError{Op: op, Applied: No, Err: fmt.Errorf("sealing: %w", err)}
}

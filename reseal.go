package umavez

import (
	"context"
	"errors"
	"fmt"
)

// Resealed counts what [Engine.Reseal] has done.
type Resealed struct {
	// Seen are the records that were looked at, and Sealed those of them of
	// which something was sealed anew.
	Seen, Sealed int
	// Namespaces are those whose hash key was sealed anew.
	Namespaces int
	// Unreadable are records and namespaces of which something could not be
	// opened: it was left as it is, and the key that sealed it must not go.
	Unreadable int
	// FirstUnreadable says of the first of them what could not be opened.
	FirstUnreadable error
}

// resealBatch is how many records are sealed anew at once: few enough not to
// keep claims waiting where the store has one writer.
const resealBatch = 64

// Reseal seals anew what the store holds in plain, or under another key than the
// one in use, while the service goes on. progress, if there is one, is told after
// every batch.
//
// When it returns nil and Unreadable is 0, everything that was there when it
// began is sealed with the key in use, and older keys can go, provided that no
// process seals with them any more. Running it again does no harm; after an error
// it has to be run again. What has expired is purged first.
func (e *Engine) Reseal(ctx context.Context, progress func(Resealed)) (done Resealed, err error) {
	rewriter, ok := e.base.(Rewriter)
	switch {
	case e.opt.Sealer == nil:
		return done, errorf("Reseal needs Options.Sealer")
	case !ok:
		return done, fmt.Errorf("%w: sealing records anew", ErrNotOffered)
	}
	// Stores show what has expired to nobody, and so not to Rewrite either.
	if purger, ok := e.base.(Purger); ok {
		if err := purgeDue(ctx, purger); err != nil {
			return done, err
		}
	}
	if err := e.resealSettings(ctx, rewriter, &done); err != nil {
		return done, err
	}
	var failed []error
	s := &sealedStore{base: e.base, sealer: e.opt.Sealer}
	for after := (ID{}); ; {
		b := resealing{store: s, records: map[ID]resealResult{}}
		last, err := rewriter.Rewrite(ctx, after, resealBatch, b.rewrite)
		b.count(&done)
		if progress != nil {
			progress(done)
		}
		if err != nil {
			failed = append(failed, err)
		}
		if last == (ID{}) || last == after || ctx.Err() != nil {
			return done, errors.Join(append(failed, ctx.Err())...)
		}
		after = last
	}
}

// resealing is one batch. A store may hand a record to it several times, if the
// record changes meanwhile; the last time counts.
type resealing struct {
	store   *sealedStore
	records map[ID]resealResult
}

// resealResult is what has become of one record or namespace.
type resealResult struct {
	anew bool
	err  error // of what could not be opened; it was left as it is
}

func (b *resealing) rewrite(id ID, rec *Record) error {
	var r resealResult
	again := func(p place, kept []byte) []byte {
		p.id, p.fence = id, rec.Fence
		anew, changed, err := b.store.again(p, kept)
		if err != nil && r.err == nil {
			r.err = fmt.Errorf("%w: record %v: %v: %w", ErrUnreadable, id, p, err)
		}
		r.anew = r.anew || changed
		return anew
	}
	rec.Answer = again(place{field: fieldAnswer}, rec.Answer)
	rec.Last = again(place{field: fieldLast}, rec.Last)
	rec.Request = again(place{field: fieldRequest}, rec.Request)
	steps := make([]KeptStep, len(rec.Steps)) // the store's own slice stays as it is
	for i, kept := range rec.Steps {
		steps[i] = KeptStep{Name: kept.Name, Result: again(place{field: fieldStep, step: kept.Name}, kept.Result)}
	}
	rec.Steps = steps
	b.records[id] = r
	return nil
}

func (b *resealing) count(done *Resealed) {
	for _, r := range b.records {
		done.Seen++
		if r.anew {
			done.Sealed++
		}
		done.unreadable(r.err)
	}
}

func (done *Resealed) unreadable(err error) {
	if err == nil {
		return
	}
	done.Unreadable++
	if done.FirstUnreadable == nil {
		done.FirstUnreadable = err
	}
}

// again seals anew what stands in a place, if it is stale. What is not there, not
// stale, or cannot be opened comes back as it is.
func (s *sealedStore) again(p place, kept []byte) (anew []byte, changed bool, err error) {
	if kept == nil {
		return nil, false, nil
	}
	sealed, fence, framed := unframe(kept)
	if framed && !s.sealer.Stale(sealed) {
		return kept, false, nil
	}
	text, err := s.openOne(p, kept)
	if err != nil {
		return kept, false, err
	}
	switch {
	case framed:
		p.fence = fence // a step's is that of the claim under which it was kept
	case p.field == fieldRequest:
		p.fence = 0
	}
	anew, err = s.seal(p, text)
	if err != nil {
		return kept, false, err
	}
	return anew, true, nil
}

func (e *Engine) resealSettings(ctx context.Context, rewriter Rewriter, done *Resealed) error {
	found := map[string]resealResult{}
	err := rewriter.RewriteSettings(ctx, func(namespace string, set *Settings) error {
		var r resealResult
		if e.opt.Sealer.Stale([]byte(set.HashKey)) {
			anew := *set
			r.err = e.openSettings(namespace, &anew)
			if r.err == nil {
				r.err = e.sealSettings(namespace, &anew)
			}
			if r.err == nil {
				set.HashKey, r.anew = anew.HashKey, true
			}
		}
		found[namespace] = r
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range found {
		if r.anew {
			done.Namespaces++
		}
		done.unreadable(r.err)
	}
	return nil
}

// sealSettings seals the hash key, and openSettings opens it. Without a sealer
// both leave it as it is.
func (e *Engine) sealSettings(namespace string, s *Settings) error {
	if e.opt.Sealer == nil {
		return nil
	}
	sealed, err := e.opt.Sealer.Seal([]byte(s.HashKey), settingsData(namespace))
	if err != nil {
		return errorf("the hash key of namespace %q cannot be sealed: %w", namespace, err)
	}
	s.HashKey = string(sealed)
	return nil
}

func (e *Engine) openSettings(namespace string, s *Settings) error {
	if e.opt.Sealer == nil {
		return nil
	}
	text, err := e.opt.Sealer.Open([]byte(s.HashKey), settingsData(namespace))
	if err != nil {
		return fmt.Errorf("%w: the hash key of namespace %q: %w", ErrUnreadable, namespace, err)
	}
	s.HashKey = string(text)
	return nil
}

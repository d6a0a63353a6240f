package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/umavez/umavez"
)

// Settling is a store whose records can be settled, listed and sealed anew.
type Settling interface {
	umavez.Store
	umavez.Settler
	umavez.Lister
	umavez.Rewriter
}

// FaultySettling is a [Faulty] that also passes on what such a store can do. The
// calls are named "hold", "settle", "trail", "list", "rewrite" and
// "rewrite-settings".
//
// It is a type of its own because users of a store ask by type assertion for
// what it can do: a Faulty that had these methods would claim them for a store
// that has not.
type FaultySettling struct{ *Faulty }

var _ Settling = (*FaultySettling)(nil)

// NewFaultySettling puts a FaultySettling in front of a store.
func NewFaultySettling(s Settling) *FaultySettling { return &FaultySettling{NewFaulty(s)} }

// notOffered is for the suite's own use, which puts one in front of any store.
func notOffered(what string) reply {
	return reply{err: fmt.Errorf("%w: %s", umavez.ErrNotOffered, what)}
}

func (f *FaultySettling) settler(ctx context.Context, op string, do func(context.Context, umavez.Settler) error) error {
	return f.through(ctx, op, func(ctx context.Context) reply {
		s, ok := f.store.(umavez.Settler)
		if !ok {
			return notOffered(op)
		}
		return reply{err: do(ctx, s)}
	}).err
}

// Hold implements [umavez.Settler].
func (f *FaultySettling) Hold(ctx context.Context, id umavez.ID, fence umavez.Fence, holder umavez.AttemptID, d time.Duration) error {
	return f.settler(ctx, "hold", func(ctx context.Context, s umavez.Settler) error {
		return s.Hold(ctx, id, fence, holder, d)
	})
}

// Settle implements [umavez.Settler].
func (f *FaultySettling) Settle(ctx context.Context, id umavez.ID, settlement umavez.Settlement) error {
	return f.settler(ctx, "settle", func(ctx context.Context, s umavez.Settler) error {
		return s.Settle(ctx, id, settlement)
	})
}

// Trail implements [umavez.Settler].
func (f *FaultySettling) Trail(ctx context.Context, id umavez.ID) ([]umavez.AuditEntry, error) {
	r := f.through(ctx, "trail", func(ctx context.Context) (r reply) {
		s, ok := f.store.(umavez.Settler)
		if !ok {
			return notOffered("trail")
		}
		r.trail, r.err = s.Trail(ctx, id)
		return r
	})
	return r.trail, r.err
}

// List implements [umavez.Lister].
func (f *FaultySettling) List(ctx context.Context, q umavez.Query) ([]umavez.Listed, error) {
	r := f.through(ctx, "list", func(ctx context.Context) (r reply) {
		s, ok := f.store.(umavez.Lister)
		if !ok {
			return notOffered("list")
		}
		r.list, r.err = s.List(ctx, q)
		return r
	})
	return r.list, r.err
}

// Rewrite implements [umavez.Rewriter].
func (f *FaultySettling) Rewrite(ctx context.Context, after umavez.ID, limit int, rewrite func(umavez.ID, *umavez.Record) error) (umavez.ID, error) {
	r := f.through(ctx, "rewrite", func(ctx context.Context) (r reply) {
		s, ok := f.store.(umavez.Rewriter)
		if !ok {
			return notOffered("rewrite")
		}
		r.last, r.err = s.Rewrite(ctx, after, limit, rewrite)
		return r
	})
	return r.last, r.err
}

// RewriteSettings implements [umavez.Rewriter].
func (f *FaultySettling) RewriteSettings(ctx context.Context, rewrite func(namespace string, s *umavez.Settings) error) error {
	return f.through(ctx, "rewrite-settings", func(ctx context.Context) reply {
		s, ok := f.store.(umavez.Rewriter)
		if !ok {
			return notOffered("rewrite-settings")
		}
		return reply{err: s.RewriteSettings(ctx, rewrite)}
	}).err
}

package umavezhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/umavez/umavez"
)

// This file is the completer of a route that keeps its requests: it finishes a
// lost operation whose client does not come back, by running the enrolled
// handler with the kept request. Handlers outside do not run: whose request it
// is was found out when it was kept, and stands there with it.

// completer is what is registered with the engine for a handler.
func (p *protected) completer() *umavez.Completer {
	rt := &p.once.route
	return &umavez.Completer{
		After: rt.CompleteAfter, Until: rt.CompleteUntil, Tries: rt.CompleteTries,
		Complete: p.complete,
	}
}

// complete finishes a lost operation. nil: it is finished, here or elsewhere.
func (p *protected) complete(ctx context.Context, l umavez.LostRecord) error {
	c, ctx, err := p.completion(ctx, l)
	if err != nil {
		return p.incomplete(err)
	}
	op := c.operation()
	op.Request = nil // the record has it
	attempt, rec, err := p.once.eng.Resume(ctx, op, l.Fence)
	switch {
	case err != nil:
		return p.incomplete(err)
	case attempt == nil && rec.State == umavez.Lost:
		return p.incomplete(errors.New("it is not taken over: " + string(rec.Reason)))
	case attempt == nil:
		return nil // somebody else was there first
	}
	if err := c.runAlone(attempt); err != nil {
		return p.incomplete(err)
	}
	return nil
}

// CompleteLost finishes the lost operation of a request now, as the completer
// would when its time comes. The request says which one it is, by caller and key.
// It is what umavezhttptest finds by a type assertion.
func (p *protected) CompleteLost(r *http.Request) error {
	if !p.keeps || p.policy == umavez.Opaque {
		return errorf("the handler has no completer: it is Opaque, or its Route has no KeepRequest")
	}
	c := newCall(p, &nowhere{header: http.Header{}}, r)
	name, _, err := readKey(r.Header, p.once.names)
	if err != nil {
		return err
	}
	c.key.Name = name
	if refusal, ok := c.prepare(); !ok { //nolint:contextcheck // the call has the request, and with it the context
		return errorf("the request is refused: %s", refusal.Code)
	}
	rec, err := p.once.eng.Get(r.Context(), c.key)
	switch {
	case err != nil:
		return err
	case rec.State != umavez.Lost:
		return errorf("there is nothing to complete: the key is %v", rec.State)
	}
	return p.complete(r.Context(), umavez.LostRecord{ID: c.key.ID(), Record: rec})
}

func (p *protected) incomplete(err error) error {
	return errorf("completing an operation of route %q: %w", p.once.route.Name, err)
}

// completion makes a call of a kept request, as [newCall] does of one that has
// just come, and the context for its operation.
func (p *protected) completion(ctx context.Context, l umavez.LostRecord) (*call, context.Context, error) {
	var kept Request
	if err := kept.UnmarshalBinary(l.Request); err != nil {
		return nil, nil, err
	}
	settings, err := p.once.space.settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	scope := umavez.Scope{Namespace: p.once.opt.Namespace, Principal: kept.Principal}
	key := umavez.Key{Scope: scope, Name: kept.Key, Secret: settings.secret}
	if key.ID() != l.ID {
		return nil, nil, errors.New("its kept request belongs to another key")
	}
	r := kept.rebuild(ctx)
	if restore := p.once.route.Restore; restore != nil {
		if ctx, err = restore(r, kept.Principal); err != nil {
			return nil, nil, fmt.Errorf("restoring what handlers outside knew: %w", err)
		}
	}
	// Towards the middleware this is a client that has left. Towards the handler
	// its context is the attempt's, as ever.
	left, leave := context.WithCancelCause(ctx)
	leave(errNobodyListens)
	c := newCall(p, &nowhere{header: http.Header{}}, r.WithContext(left))
	c.key, c.body, c.settings = key, kept.Body, settings
	c.fingerprint = l.Fingerprint
	return c, ctx, nil
}

// runAlone runs the operation without a server around it, which would recover
// its panic and log it.
func (c *call) runAlone(attempt *umavez.Attempt) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return // or runtime.Goexit, which the engine sees
		}
		err = fmt.Errorf("the handler has panicked: %v", v)
		if v != http.ErrAbortHandler { //nolint:errorlint // as net/http does: the value itself
			slog.Error("umavez: panic while completing an operation",
				"route", c.once.route.Name, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	return c.run(attempt).err()
}

// err is nil when the key needs no more attempts.
func (e ending) err() error {
	switch {
	case e.saved != nil:
		return e.saved
	case e.out == leaveUnknown:
		return fmt.Errorf("an answer with status %d does not say whether it happened", e.status)
	}
	return nil
}

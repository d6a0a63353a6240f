package keys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/umavez/umavez"
)

// MaxReason and MaxWho are the most that the audit trail holds, in bytes. Who
// leaves room for how the change came.
const (
	MaxReason = umavez.MaxWhy
	MaxWho    = umavez.MaxWho - len(viaAdmin)
)

// viaAdmin stands behind the names of those who came by the admin address: the
// name is what their client said, and only the token was checked.
const viaAdmin = " via admin"

// actions are those that a person can take.
var actions = map[string]umavez.Action{
	"happened":      umavez.ActionHappened,
	"cannot-happen": umavez.ActionCannotHappen,
	"park":          umavez.ActionPark,
	"forget":        umavez.ActionForget,
}

// settlement checks a change and puts it in the words of the store.
func (c *Change) settlement(quiet time.Duration) (ref umavez.Ref, s umavez.Settlement, err error) {
	if ref, err = refOf(c.ID); err != nil {
		return ref, s, err
	}
	action, ok := actions[c.Action]
	if !ok {
		return ref, s, faultf(CodeUsage, "action %q: must be happened, cannot-happen, park or forget", c.Action)
	}
	s = umavez.Settlement{Action: action, Fence: ref.Fence, Who: c.Who, Why: strings.TrimSpace(c.Reason)}
	switch {
	case s.Why == "" || len(s.Why) > MaxReason:
		return ref, s, faultf(CodeUsage, "--reason: must say why, in 1 to %d bytes; it stays in the audit trail", MaxReason)
	case s.Who == "" || len(s.Who) > umavez.MaxWho:
		return ref, s, faultf(CodeUsage, "--who: must say who, in 1 to %d bytes; it stays in the audit trail", MaxWho)
	case !text(s.Why) || !text(s.Who):
		return ref, s, faultf(CodeUsage, "--reason and --who: must be text in UTF-8")
	case c.Force && action != umavez.ActionCannotHappen:
		return ref, s, faultf(CodeUsage, "--force: goes with --cannot-happen only")
	case action != umavez.ActionHappened && (c.Status != 0 || len(c.Header) > 0 || len(c.Body) > 0):
		return ref, s, faultf(CodeUsage, "--status, --header and --body: go with --happened only")
	}
	if c.Settlement != "" && !unhex(s.ID[:], c.Settlement) {
		return ref, s, faultf(CodeUsage, "settlement %q: must be %d hexadecimal digits", c.Settlement, 2*len(s.ID))
	}
	switch action {
	case umavez.ActionHappened:
		s.Answer, err = c.answer()
	case umavez.ActionCannotHappen:
		if !c.Force {
			s.Quiet = quiet
		}
	}
	return ref, s, err
}

// Check finds out what is wrong with a change before anybody is asked.
func (c *Change) Check() error {
	_, _, err := c.settlement(0)
	return err
}

// text reports whether every store keeps it as it is.
func text(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Settle makes a change. What was looked at is in its ID: the store compares the
// fence, so that of two operators who saw the same the second changes nothing.
func (l *Local) Settle(ctx context.Context, c Change) (Changed, error) {
	ref, s, err := c.settlement(l.Engine.Quiet())
	if err != nil {
		return Changed{}, err
	}
	before, trail, err := l.inspect(ctx, ref.ID)
	if err != nil {
		return Changed{}, err
	}
	if s.Action == umavez.ActionHappened {
		if err := l.fits(ctx, &before); err != nil {
			return Changed{}, err
		}
		if l.Keep != nil {
			s.Keep = l.Keep(before.Route)
		}
	}
	done := Changed{ID: c.ID, Before: stateOf(&before), BeforeReason: string(before.Reason), Quiet: seconds(s.Quiet)}
	err = l.Engine.Settle(ctx, ref.ID, s)
	after, trailAfter, inspectErr := l.inspect(ctx, ref.ID)
	if inspectErr == nil {
		before, trail = after, trailAfter
	}
	done.After, done.AfterReason = stateOf(&before), string(before.Reason)
	switch {
	case err == nil:
		return done, nil
	case errors.Is(err, umavez.ErrMoved):
		return Changed{}, moved(ref, s.Action, &before, trail)
	case errors.Is(err, umavez.ErrNotQuiet):
		return Changed{}, faultf(CodeNotQuiet, "%s: too early to say that it cannot happen: it was lost %s ago, and a request may be on its way for %s; "+
			"with proof that it cannot arrive any more: --force", c.ID, short(before.Since), short(s.Quiet))
	}
	doing := "it is not known whether the change was made; show tells"
	if umavez.AppliedOf(err) == umavez.No {
		doing = "the change was not made"
	}
	return Changed{}, l.fault(doing, err)
}

// fits finds out that an answer that is kept now will be readable: services of a
// namespace that is sealed do not open what lies in plain, and the other way round.
func (l *Local) fits(ctx context.Context, rec *umavez.Record) error {
	_, err := l.settings(ctx, rec.Namespace)
	if f, ok := errors.AsType[*Fault](err); ok && (f.Code == CodeNotFound || f.Code == CodeNotOffered) {
		return nil // a program without settings seals nothing by namespace
	}
	if err != nil {
		return &Fault{
			Code: CodeSealed, cause: err,
			Text: fmt.Sprintf("namespace %s: its services seal what they keep, and not with this key ring; set --keyring as theirs is", rec.Namespace),
		}
	}
	return nil
}

// moved says how the record stands now, and what is known of how it came there.
func moved(ref umavez.Ref, action umavez.Action, now *umavez.Record, trail []umavez.AuditEntry) error {
	state, same := stateOf(now), now.Fence == ref.Fence
	unsettled := now.State == umavez.Running || now.State == umavez.Lost
	switch {
	case same && action == umavez.ActionForget && unsettled:
		return faultf(CodeMoved, "%v: it is %s now: only what is done can be forgotten; settle it first", ref, state)
	case same && now.State == umavez.Running:
		return faultf(CodeLive, "%v: it is running: its attempt holds it for another %s, and a live lease is never settled", ref, short(now.LeaseLeft))
	}
	was := "running or lost"
	if action == umavez.ActionForget {
		was = "done"
	}
	how := ""
	switch last := lastOf(trail, ref.Fence); {
	case last != nil && last.After == now.State:
		was = withReason(last.Before.String(), string(last.BeforeReason))
		how = fmt.Sprintf("%s by %s, %s ago: %s", last.Action, last.Who, short(last.Ago), last.Why)
	case !same && now.State != umavez.Vacant:
		how = "another attempt has claimed it since"
	case now.State == umavez.Done:
		how = fmt.Sprintf("its own attempt completed it, %s ago", short(now.Since))
	case now.State == umavez.Vacant:
		how = "it was released, or its time was over"
	}
	if how != "" {
		how = " (" + how + ")"
	}
	return faultf(CodeMoved, "%v: the record has moved: it was %s when it was listed, it is %s now%s", ref, was, state, how)
}

// lastOf is the last entry of the trail that has settled the attempt.
func lastOf(trail []umavez.AuditEntry, fence umavez.Fence) *umavez.AuditEntry {
	for i := len(trail) - 1; i >= 0; i-- {
		if trail[i].Fence == fence && trail[i].Action != umavez.ActionContradicted {
			return &trail[i]
		}
	}
	return nil
}

// fault tells what the engine or the store said.
func (l *Local) fault(doing string, err error) error {
	if errors.Is(err, umavez.ErrNotOffered) {
		return faultf(CodeNotOffered, "%s", said(err))
	}
	return failed(doing, err)
}

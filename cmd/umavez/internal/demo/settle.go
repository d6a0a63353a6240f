package demo

import (
	"context"
	"errors"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/examples/pagamentos/api"
)

// who stands in the audit trail.
const who = "umavez demo"

// shown is all that an operator sees of a key.
func (w *world) shown(ctx context.Context, key string) (keys.Shown, error) {
	desk, err := w.desk()
	if err != nil {
		return keys.Shown{}, err
	}
	found, err := desk.Find(ctx, keys.Names{Namespace: api.Namespace, Key: key})
	if err != nil {
		return keys.Shown{}, err
	}
	return desk.Show(ctx, found.ID)
}

// settle does what an operator does with a payment of which nobody knows: ask the
// gateway, and say what it says. It reports whether the key was settled by it; a
// key that is not unknown any more needs nothing.
func (w *world) settle(ctx context.Context, key string) (bool, error) {
	shown, err := w.shown(ctx, key)
	if err != nil || shown.State != keys.StateUnknown {
		return false, err
	}
	ref, err := umavez.ParseRef(shown.ID)
	if err != nil {
		return false, err
	}
	derived := ref.ID.DerivedKey(api.Step)
	// While it is on its way, nothing is said of it.
	err = until(ctx, func() (bool, error) {
		k, err := w.known(ctx, Protected, derived)
		return k.UnderWay == 0, err
	})
	if err != nil {
		return false, err
	}
	known, err := w.known(ctx, Protected, derived)
	if err != nil {
		return false, err
	}
	change := keys.Change{ID: shown.ID, Who: who}
	if len(known.Charges) > 0 {
		answer := api.Stored(api.Charge{ID: known.Charges[0].ID, Approved: true})
		change.Action, change.Reason = "happened", "the gateway has charge "+known.Charges[0].ID
		change.Status, change.Body = answer.Status, answer.Body
		for name, values := range answer.Header {
			change.Header = append(change.Header, name+": "+values[0])
		}
	} else {
		// Force is for those who know that nothing is on its way: its process is
		// dead, and this gateway has told that nothing of it is left.
		change.Action, change.Force = "cannot-happen", true
		change.Reason = "the gateway has no charge, and none is on its way"
	}
	desk, err := w.desk()
	if err != nil {
		return false, err
	}
	_, err = desk.Settle(ctx, change)
	if fault, ok := errors.AsType[*keys.Fault](err); ok && fault.Code == keys.CodeMoved {
		return false, nil // somebody was there first
	}
	return err == nil, err
}

package api

import (
	"context"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// ask finds out what became of a lost payment. That the gateway has no charge
// proves nothing while a request may still be on its way there, so it is no
// proof: the engine takes it for one after its quiet time.
func (o *Options) ask(ctx context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
	known, err := o.Gateway.Known(ctx, l.DerivedKey(Step))
	switch {
	case err != nil:
		return umavez.StillUnknown(), err
	case len(known.Charges) > 0:
		return umavezhttp.Happened(Stored(Charge{ID: known.Charges[0].ID, Approved: true}))
	case known.UnderWay > 0:
		return umavez.StillUnknown(), nil
	}
	return umavez.CannotHappen(), nil
}

package umavezhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/umavez/umavez"
)

// Happened is the [umavez.Verdict] of a reconciler that knows the answer of a
// lost operation: every attempt gets it from now on. An answer that could not be
// given is an error.
func Happened(a Answer) (umavez.Verdict, error) {
	if a.Kept == NotKeptYet {
		return umavez.Verdict{}, errorf("an answer that is kept %v says nothing of how it ended", a.Kept)
	}
	b, err := a.MarshalBinary()
	if err != nil {
		return umavez.Verdict{}, err
	}
	return umavez.Happened(b), nil
}

// Reconcile has a reconciler look after the lost operations of a handler, and
// returns the handler to enrol in its place:
//
//	pagar, err := once.Reconcile(once.Opaque(pagar), umavez.Reconciler{Ask: ask})
//	mux.Handle("POST /pagamentos", auth(pagar))
//
// h is what Opaque, Stepped or Rerunnable of this Once, or of one made by its
// With, have returned, and nothing around it. Its route needs a Name. Ask's
// answer is that of [Happened]; anything else is an error, and the record stays
// as it is. With KeepRequest, Ask finds the request in the record: see [Request].
func (o *Once) Reconcile(h http.Handler, r umavez.Reconciler) (http.Handler, error) {
	p, ok := h.(*protected)
	switch {
	case !ok || p.once.space != o.space:
		return nil, errorf("Reconcile takes what Opaque, Stepped or Rerunnable of the same Once have returned, " +
			"before anything is put around it")
	case p.once.route.Name == "":
		return nil, errorf("Reconcile needs a Route.Name: the records of the route must be found again, " +
			"also by a release whose patterns are others")
	case r.Ask == nil:
		return nil, errorf("Reconciler.Ask is missing")
	}
	ask := r.Ask
	r.Ask = func(ctx context.Context, l umavez.LostRecord) (umavez.Verdict, error) {
		v, err := ask(ctx, l)
		if err != nil {
			return umavez.Verdict{}, err
		}
		return p.once.route.checkedVerdict(v)
	}
	rt := &p.once.route
	err := o.eng.Recover(umavez.Recovery{
		Namespace: o.opt.Namespace, Route: rt.Name, Reconciler: &r,
		Retain: rt.Retain, Tombstone: rt.Tombstone,
	})
	if err != nil {
		return nil, err
	}
	asked := *p
	asked.keeps = rt.KeepRequest
	o.space.unread(rt.Name, false)
	return &asked, nil
}

// checkedVerdict keeps what is no answer from becoming one, and the body of an
// answer out of a record that must not hold it.
func (rt *Route) checkedVerdict(v umavez.Verdict) (umavez.Verdict, error) {
	answer, happened := v.Answer()
	if !happened {
		return v, nil
	}
	var a Answer
	if err := a.UnmarshalBinary(answer); err != nil {
		return umavez.Verdict{}, errorf("a reconciler's answer must be made by umavezhttp.Happened: %w", err)
	}
	if rt.NoBody && a.Kept == KeptWhole {
		a.Body, a.Trailer, a.Kept = nil, nil, KeptWithoutBody
	}
	return Happened(a)
}

// nextTurn is when a client may come again for a record that a reconciler looks
// into, or 0: nobody will know more then (rule R4).
func (c *call) nextTurn(rec *umavez.Record) time.Duration {
	in, ok := c.once.eng.NextTurn(rec)
	if !ok {
		return 0
	}
	return max(in, time.Second)
}

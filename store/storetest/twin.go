package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/umavez/umavez"
)

// twin is a key in the store under test and, beside it, in [umavez.Next]. What
// the store answers is held against what Next says.
//
// The two run by different clocks. Rules see to it that no lease ends between
// two looks: leases are long, or end by [fixture.pass], which moves both.
type twin struct {
	id  umavez.ID
	row umavez.Row
	// now is the model's clock. It stands still but for pass.
	now *umavez.Instant
	// fences maps the model's fences to the store's, which count from another
	// clock. What matters is that they name the same claims and rise.
	fences map[umavez.Fence]umavez.Fence
	// trail is the model's audit trail.
	trail []umavez.AuditEntry
}

func (f *fixture) twin(now *umavez.Instant) *twin {
	return &twin{id: f.key(), now: now, fences: map[umavez.Fence]umavez.Fence{}}
}

// modelStart is where a model's clock begins: anywhere but at zero.
const modelStart umavez.Instant = 1_000_000

// newTwin is a twin with a clock of its own.
func (f *fixture) newTwin() *twin {
	now := modelStart
	return f.twin(&now)
}

// model applies an event to the model alone.
func (w *twin) model(ev umavez.Event) umavez.Effect {
	row, eff := umavez.Next(w.row, *w.now, ev)
	w.row = row
	if eff.Audit != nil {
		w.trail = append(w.trail, *eff.Audit)
	}
	return eff
}

// ask makes an event's call on a store, with its fence as that store knows it.
func (w *twin) ask(ctx context.Context, s umavez.Store, ev umavez.Event) reply {
	if ev.Kind == umavez.EventClaim {
		req := *ev.Claim
		req.TakeOver = w.storeFence(req.TakeOver)
		ev.Claim = &req
	}
	ev.Fence = w.storeFence(ev.Fence)
	return send(ctx, s, w.id, ev)
}

// storeFence is the store's name for a fence of the model. One that was never
// seen is sent as it is: it fits neither side.
func (w *twin) storeFence(model umavez.Fence) umavez.Fence {
	if fence, ok := w.fences[model]; ok {
		return fence
	}
	return model
}

// play does both, and says how the store's reply differs from the model's, or "".
func (w *twin) play(ctx context.Context, s umavez.Store, ev umavez.Event) string {
	gone := w.row.Phase == umavez.PhaseDone && w.row.State(*w.now) == umavez.Vacant
	eff := w.model(ev)
	r := w.ask(ctx, s, ev)
	if gone && ev.Kind == umavez.EventComplete && errors.Is(r.err, umavez.ErrLeaseLost) {
		return "" // the row may have been purged, and with it the memory of who completed it
	}
	return w.judge(ev, eff, r)
}

// judge holds a reply against the model's effect. The model is past the event.
func (w *twin) judge(ev umavez.Event, eff umavez.Effect, r reply) string {
	if !answered(r.err, eff.Err) {
		return fmt.Sprintf("answered %v, want %v", r.err, eff.Err)
	}
	if ev.Kind != umavez.EventClaim {
		return ""
	}
	if r.acquired != eff.Acquired {
		return fmt.Sprintf("acquired is %v, want %v; record %v", r.acquired, eff.Acquired, brief(r.rec))
	}
	if diff := w.compare(r.rec); diff != "" {
		return "returned a record that differs: " + diff
	}
	return ""
}

// answered reports whether got is the answer want. ErrContradicted is an
// ErrLeaseLost, too, and is told apart from one here.
func answered(got, want error) bool {
	return errors.Is(got, want) && errors.Is(got, umavez.ErrContradicted) == errors.Is(want, umavez.ErrContradicted)
}

// compare says how a record of the store differs from the model's, or "".
func (w *twin) compare(rec umavez.Record) string {
	want := w.row.Record(*w.now)
	if want.State != umavez.Vacant && rec.State != umavez.Vacant {
		fence, known := w.fences[want.Fence]
		if !known {
			for model, store := range w.fences {
				if (model < want.Fence) != (store < rec.Fence) {
					return fmt.Sprintf("Fence is %d after %d: it must rise with every claim", rec.Fence, store)
				}
			}
			w.fences[want.Fence], fence = rec.Fence, rec.Fence
		}
		want.Fence = fence
	}
	return differ(rec, want)
}

// look reads the record and its audit trail, and compares both.
func (w *twin) look(ctx context.Context, s umavez.Store) string {
	rec, err := s.Get(ctx, w.id)
	if err != nil {
		return fmt.Sprintf("get: %v", err)
	}
	if diff := w.compare(rec); diff != "" {
		return diff
	}
	settler, ok := s.(umavez.Settler)
	if !ok {
		return ""
	}
	trail, err := settler.Trail(ctx, w.id)
	if err != nil {
		return fmt.Sprintf("trail: %v", err)
	}
	want := slices.Clone(w.trail)
	for i := range want {
		want[i].Fence = w.storeFence(want[i].Fence)
	}
	return differTrails(trail, want)
}

// lead plays events one after the other, and fails when one goes wrong.
func (w *twin) lead(f *fixture, plays []play) {
	f.Helper()
	for _, p := range plays {
		ev := p(w.row)
		if diff := w.play(f.Context(), f.store, ev); diff != "" {
			f.Fatalf("on the way: %s %s", kindName(ev.Kind), diff)
		}
	}
}

var kindNames = map[umavez.EventKind]string{
	umavez.EventClaim: "claim", umavez.EventCheckpoint: "checkpoint", umavez.EventComplete: "complete",
	umavez.EventRelease: "release", umavez.EventAbandon: "abandon", umavez.EventExtend: "extend",
	umavez.EventHold: "hold", umavez.EventSettle: "settle",
}

func kindName(k umavez.EventKind) string { return kindNames[k] }

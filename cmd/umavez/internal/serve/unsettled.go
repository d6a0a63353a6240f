package serve

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
)

// How the running and lost records are counted: often enough for an alert that
// waits some minutes, and seldom and few enough to cost the store nothing. More
// than that many is an outage, however many more they are.
const (
	unsettledEvery   = time.Minute
	unsettledMost    = 10_000
	unsettledTimeout = 5 * time.Second
)

// unsettledStates are the values of the gauge's label.
var unsettledStates = []string{keys.StateUnknown, umavez.Lost.String(), umavez.Running.String()}

// newUnsettled makes the gauge. It has no series until something was counted.
func newUnsettled() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "umavez_unsettled",
		Help: "Records of this namespace whose operation has not ended in an answer, counted once a minute, in the whole store: the same in every process that shares it.",
	}, []string{"state"})
}

// watchUnsettled counts now, so that whoever starts after a crash sees what it
// left, and then again and again. A store that cannot list has no gauge.
func (p *process) watchUnsettled(ctx context.Context) {
	if _, ok := p.store.(umavez.Lister); !ok {
		return
	}
	p.countUnsettled(ctx)
	p.inBackground(func() {
		tick := time.NewTicker(unsettledEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.life.Done():
				return
			case <-tick.C:
				p.countUnsettled(p.life)
			}
		}
	})
}

// countUnsettled sets the gauge. When the store does not answer there is no
// number, rather than an old one.
func (p *process) countUnsettled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unsettledTimeout)
	defer cancel()
	counts, err := countUnsettled(ctx, p.engine, p.cfg.Namespace)
	if err != nil {
		p.metrics.unsettled.Reset()
		if p.life.Err() == nil {
			p.log.Warn("the unsettled records could not be counted", "error", err)
		}
		return
	}
	for _, state := range unsettledStates {
		p.metrics.unsettled.WithLabelValues(state).Set(float64(counts[state]))
	}
}

func countUnsettled(ctx context.Context, engine *umavez.Engine, namespace string) (map[string]int, error) {
	counts := map[string]int{}
	q := umavez.Query{States: []umavez.State{umavez.Running, umavez.Lost}, Namespace: namespace, Limit: umavez.MaxPage}
	for seen := 0; seen < unsettledMost; seen += q.Limit {
		page, err := engine.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page {
			state := page[i].State.String()
			if page[i].Unknown() {
				state = keys.StateUnknown
			}
			counts[state]++
		}
		if len(page) < q.Limit {
			break
		}
		q.After = page[len(page)-1].ID
	}
	return counts, nil
}

package serve

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/umavez/umavez"
)

// momentCounter is how the counter of a moment is called. Metrics use the
// design's words; operators read the help in their dashboards.
type momentCounter struct{ name, help string }

// momentCounters has a row for every umavez.Moment.
var momentCounters = map[umavez.Moment]momentCounter{
	umavez.MomentClaimed:          {"umavez_claims_total", "Claims that the store confirmed."},
	umavez.MomentTakenOver:        {"umavez_takeovers_total", "Claims that took over a lost record."},
	umavez.MomentUnstarted:        {"umavez_unstarted_total", "Claims won for a caller who had left; released without running."},
	umavez.MomentStarted:          {"umavez_executions_total", "Operations started."},
	umavez.MomentCompleting:       {"umavez_completing_total", "Operations that ended with an answer to keep."},
	umavez.MomentCompleted:        {"umavez_completed_total", "Answers that the store acknowledged."},
	umavez.MomentUnsaved:          {"umavez_unsaved_total", "Answers that the store did not take in time; saving them goes on."},
	umavez.MomentReleasing:        {"umavez_releasing_total", "Operations that did nothing, about to be released."},
	umavez.MomentReleased:         {"umavez_released_total", "Releases that the store acknowledged."},
	umavez.MomentAbandoned:        {"umavez_abandoned_total", "Attempts that ended with their outcome not known."},
	umavez.MomentLeaseLost:        {"umavez_lease_lost_total", "Times that an attempt learnt that its record no longer carries it: at a heartbeat, when it ends, or at both, which counts twice."},
	umavez.MomentExtended:         {"umavez_extended_total", "Heartbeats that extended a lease."},
	umavez.MomentExtendFailed:     {"umavez_extend_failed_total", "Heartbeats that got no answer from the store."},
	umavez.MomentRunTooLong:       {"umavez_run_too_long_total", "Attempts that ran past --max-run."},
	umavez.MomentReplayed:         {"umavez_replays_total", "Duplicates answered from a done record."},
	umavez.MomentWaiting:          {"umavez_waits_total", "Duplicates that waited for a running attempt."},
	umavez.MomentInProgress:       {"umavez_in_progress_total", "Duplicates turned away because the attempt was still running."},
	umavez.MomentUnknown:          {"umavez_unknown_total", "Duplicates that met a record whose outcome is not known."},
	umavez.MomentExpired:          {"umavez_expired_total", "Late retries refused by a tombstone."},
	umavez.MomentKeyReused:        {"umavez_key_reused_total", "Requests refused because their key belongs to another request."},
	umavez.MomentTooManyUnsettled: {"umavez_too_many_unsettled_total", "Requests refused, nothing run, because too many of their caller's operations are running or unsettled."},
	umavez.MomentContradicted:     {"umavez_contradicted_total", "Attempts that say otherwise than what their record was settled as. Must stay at zero."},
	umavez.MomentSettled:          {"umavez_settled_total", "Records that were settled, parked or forgotten by this process."},
	umavez.MomentAsked:            {"umavez_asked_total", "Questions to reconcilers about lost records."},
	umavez.MomentCompleter:        {"umavez_completer_total", "Lost records that the completer took up."},
	umavez.MomentRecoveryFailed:   {"umavez_recovery_failed_total", "Times that a completer failed with a record, or that lost records could not be listed; it is tried again."},
	umavez.MomentUnavailable:      {"umavez_unavailable_total", "Requests refused, nothing run, because a claim was not confirmed (fail closed)."},
}

// runSeconds are the buckets of an operation's time: from a local insert to a
// gateway that takes minutes.
var runSeconds = []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// metrics counts what happens. Routes come from the configuration, so the
// number of series is bounded by it. No label holds a key or a principal.
type metrics struct {
	registry *prometheus.Registry
	moments  map[umavez.Moment]*prometheus.CounterVec
	run      *prometheus.HistogramVec
	// unauthenticated counts refused callers.
	unauthenticated prometheus.Counter
	// unsettled is what countUnsettled has counted last.
	unsettled *prometheus.GaugeVec
}

// newMetrics makes a registry of its own: the library's default one is shared
// by the whole process, and would fail the second sidecar in a test.
func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		moments:  make(map[umavez.Moment]*prometheus.CounterVec, len(momentCounters)),
		run: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "umavez_operation_seconds", Buckets: runSeconds,
			Help: "Time from an operation's start to the end of its attempt, saving included.",
		}, []string{"route", "policy", "end"}),
		unauthenticated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "umavez_unauthenticated_total",
			Help: "Requests refused because their caller was not verified.",
		}),
		unsettled: newUnsettled(),
	}
	for moment, c := range momentCounters {
		m.moments[moment] = prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: c.name, Help: c.help}, []string{"route", "policy"})
		m.registry.MustRegister(m.moments[moment])
	}
	m.registry.MustRegister(m.run, m.unauthenticated, m.unsettled,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// begin sets the counters of the configured routes to zero. A series that is not
// there until it is 1 has no increase that an alert could see.
func (m *metrics) begin(routes []RouteConfig) {
	for _, r := range routes {
		for _, c := range m.moments {
			c.WithLabelValues(r.HTTP.Name, r.Policy.String())
		}
	}
}

// countUnmatched shows the proxy's own count.
func (m *metrics) countUnmatched(total func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "umavez_unmatched_keyed_requests_total",
		Help: "Requests with a key that matched no protected route; they passed unprotected.",
	}, func() float64 { return float64(total()) }))
}

// gauges shows what the engine is doing, read when the metrics are.
func (m *metrics) gauges(stats func() umavez.Stats) {
	for _, g := range []struct {
		name, help string
		value      func(umavez.Stats) int64
	}{
		{
			"umavez_running", "Attempts that have started and whose end is not acknowledged.",
			func(s umavez.Stats) int64 { return int64(s.Running) },
		},
		{
			"umavez_waiting", "Duplicates that wait for a running attempt.",
			func(s umavez.Stats) int64 { return int64(s.Waiting) },
		},
		{
			"umavez_backlog", "Ends of attempts that wait to be acknowledged by the store.",
			func(s umavez.Stats) int64 { return int64(s.Backlog) },
		},
		{
			"umavez_unsaved_bytes", "Bytes of the answers among them; new claims are refused at the limit.",
			func(s umavez.Stats) int64 { return s.UnsavedBytes },
		},
		{
			"umavez_releases_waiting", "Releases among them; new claims are refused at the limit.",
			func(s umavez.Stats) int64 { return int64(s.Releases) },
		},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: g.name, Help: g.help},
			func() float64 { return float64(g.value(stats())) }))
	}
}

// observe counts a moment.
func (m *metrics) observe(o umavez.Observation) {
	if c := m.moments[o.Moment]; c != nil {
		c.WithLabelValues(o.Route, o.Policy.String()).Inc()
	}
	switch o.Moment {
	case umavez.MomentCompleted, umavez.MomentReleased, umavez.MomentAbandoned:
		m.run.WithLabelValues(o.Route, o.Policy.String(), o.Moment.String()).Observe(o.Took.Seconds())
	}
}

// handler writes the Prometheus text.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

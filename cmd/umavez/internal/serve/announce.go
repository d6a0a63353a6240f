package serve

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// announce says at start what this process will do, so that whoever reads the
// log of an incident knows what was promised: who the caller is, and each
// route's policy and what its author says of statuses.
func (p *process) announce() {
	c := p.cfg
	p.log.Info("protecting", "upstream", c.Upstream.Redacted(), "namespace", c.Namespace,
		"scope", c.Principal.Recipe(), "lease", c.Lease.String(), "max-run", c.MaxRun.String())
	p.announceKept()
	for _, r := range c.Routes {
		p.log.Info("route", routeAttrs(r)...)
	}
	switch c.Principal.Kind {
	case PrincipalNone:
		p.log.Warn("all callers are one (--principal none): whoever sends a used key gets its answer")
	case PrincipalJWT:
		if c.Audience == "" {
			p.log.Warn("tokens for any audience are accepted; --audience names the right one")
		}
		if strings.HasPrefix(c.JWKS, "http://") {
			p.log.Warn("the keys that verify tokens come over plain HTTP: whoever can change them on their way can be anybody", "jwks", c.JWKS)
		}
	}
}

func routeAttrs(r RouteConfig) []any {
	attrs := []any{
		slog.String("route", r.Pattern),
		slog.String("policy", r.Policy.String()),
		slog.String("release", releaseText(r.HTTP)),
	}
	if r.HTTP.Name != r.Pattern {
		attrs = append(attrs, slog.String("name", r.HTTP.Name))
	}
	if r.HTTP.Preset != umavezhttp.Standard {
		attrs = append(attrs, slog.String("preset", r.HTTP.Preset.String()))
	}
	if r.HTTP.Required {
		attrs = append(attrs, slog.Bool("required", true))
	}
	if r.Reconcile != nil {
		attrs = append(attrs, slog.Bool("reconcile", true))
	}
	if r.HTTP.KeepRequest {
		attrs = append(attrs, slog.Bool("keep-request", true))
	}
	return append(attrs,
		slog.String("wait", max(r.HTTP.Wait, 0).String()),
		slog.String("retain", r.HTTP.Retain.String()),
		slog.String("tombstone", max(r.HTTP.Tombstone, 0).String()))
}

// releaseText spells which statuses free the key. "standard" are those that by
// their definition come before any operation, such as 401 and 429.
func releaseText(r umavezhttp.Route) string {
	if r.ReleaseNone {
		return "none"
	}
	texts := []string{"standard"}
	for _, status := range r.Release {
		texts = append(texts, strconv.Itoa(status))
	}
	return strings.Join(texts, ",")
}

// momentLevels are the moments that an operator wants to see without asking.
// The others are there at the debug level.
var momentLevels = map[umavez.Moment]slog.Level{
	umavez.MomentAbandoned:    slog.LevelWarn,
	umavez.MomentUnsaved:      slog.LevelWarn,
	umavez.MomentLeaseLost:    slog.LevelWarn,
	umavez.MomentExtendFailed: slog.LevelWarn,
	umavez.MomentRunTooLong:   slog.LevelWarn,
	umavez.MomentUnavailable:  slog.LevelWarn,
	umavez.MomentTakenOver:    slog.LevelInfo,
	// Two truths about one payment: somebody must find out which holds.
	umavez.MomentContradicted:     slog.LevelError,
	umavez.MomentSettled:          slog.LevelInfo,
	umavez.MomentTooManyUnsettled: slog.LevelWarn,
	umavez.MomentCompleter:        slog.LevelInfo,
	umavez.MomentRecoveryFailed:   slog.LevelWarn,
}

// logMoment tells of a moment by the record's ID, which names a request to
// those who know its key, and to nobody else.
func (p *process) logMoment(o umavez.Observation) {
	level, ok := momentLevels[o.Moment]
	switch {
	case ok:
	case o.Moment == umavez.MomentAsked && o.Err != nil:
		// A wrong question, a gateway that is down: until that is mended, all
		// that is lost on the route stays unknown. It grows rarer by itself.
		level = slog.LevelWarn
	default:
		level = slog.LevelDebug
	}
	if !p.log.Enabled(p.life, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("id", o.ID.String()),
		slog.String("route", o.Route),
		slog.String("policy", o.Policy.String()),
	}
	if o.Attempt != (umavez.AttemptID{}) {
		attrs = append(attrs, slog.String("attempt", o.Attempt.String()))
	}
	if o.Fence != 0 {
		attrs = append(attrs, slog.Int64("fence", int64(o.Fence)))
	}
	if o.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(o.Reason)))
	}
	if o.Took != 0 {
		attrs = append(attrs, slog.String("took", o.Took.Round(time.Microsecond).String()))
	}
	if o.Err != nil {
		attrs = append(attrs, slog.Any("error", o.Err))
	}
	p.log.LogAttrs(p.life, level, o.Moment.String(), attrs...)
}

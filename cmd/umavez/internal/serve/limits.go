package serve

import (
	"time"

	"github.com/umavez/umavez/proxy"
)

// LimitSettings bound what a client or the upstream may make this process wait
// for or hold. Only the file can spell them; what it does not say has the
// default of the package that it is for.
type LimitSettings struct {
	// For the connections on both sides: see proxy.Limits.
	ReadHeader      *Duration `yaml:"read-header"`
	ReadBody        *Duration `yaml:"read-body"`
	ClientIdle      *Duration `yaml:"client-idle"`
	MaxHeader       *int64    `yaml:"max-header"`
	Dial            *Duration `yaml:"dial"`
	TLSHandshake    *Duration `yaml:"tls-handshake"`
	AnswerHeader    *Duration `yaml:"answer-header"`
	AnswerBody      *Duration `yaml:"answer-body"`
	StreamIdle      *Duration `yaml:"stream-idle"`
	MaxAnswerHeader *int64    `yaml:"max-answer-header"`
	MaxIdle         *int64    `yaml:"max-idle"`
	// For compressed request bodies (rule F7): see umavezhttp.Options.
	MaxDecoded *int64 `yaml:"max-decoded"`
	MaxRatio   *int64 `yaml:"max-ratio"`
	// For what waits, in this process (rules R2, R6): see umavez.Options.
	MaxWaiters       *int64 `yaml:"max-waiters"`
	MaxWaitersPerKey *int64 `yaml:"max-waiters-per-key"`
	MaxUnsaved       *int64 `yaml:"max-unsaved"`
}

// Limits is a checked LimitSettings. Zero means the default there too.
type Limits struct {
	Proxy                        proxy.Limits
	MaxDecoded                   int64
	MaxRatio                     int
	MaxWaiters, MaxWaitersPerKey int
	MaxUnsaved                   int64
}

// answerHeader is the proxy's default for an upstream's answer.
const answerHeader = 2 * time.Minute

func (s Settings) limits(c *Config, p *problems) {
	var l LimitSettings
	if s.Limits != nil {
		l = *s.Limits
	}
	to := &c.Limits.Proxy
	for _, d := range []struct {
		name    string
		written *Duration
		to      *time.Duration
	}{
		{"read-header", l.ReadHeader, &to.ReadHeader},
		{"read-body", l.ReadBody, &to.ReadBody},
		{"client-idle", l.ClientIdle, &to.ClientIdle},
		{"dial", l.Dial, &to.Dial},
		{"tls-handshake", l.TLSHandshake, &to.TLSHandshake},
		{"answer-header", l.AnswerHeader, &to.AnswerHeader},
		{"answer-body", l.AnswerBody, &to.AnswerBody},
		{"stream-idle", l.StreamIdle, &to.StreamIdle},
	} {
		if d.written != nil {
			*d.to = p.between("limits: "+d.name, d.written, 0, time.Millisecond, 24*time.Hour)
		}
	}
	l.counts(c, p)
	// Past max-run the heartbeat has ended: the key would be unknown while the
	// upstream still may answer.
	switch {
	case to.AnswerHeader > c.MaxRun:
		p.addf("limits: answer-header %v: is longer than --max-run %v", to.AnswerHeader, c.MaxRun)
	case to.AnswerHeader == 0 && c.MaxRun < answerHeader:
		to.AnswerHeader = c.MaxRun
	}
}

func (l LimitSettings) counts(c *Config, p *problems) {
	to := &c.Limits
	count := func(name string, written *int64) int64 {
		if written == nil {
			return 0
		}
		return p.size("limits: "+name, written, 0)
	}
	to.Proxy.MaxHeader = int(count("max-header", l.MaxHeader))
	to.Proxy.MaxAnswerHeader = count("max-answer-header", l.MaxAnswerHeader)
	to.Proxy.MaxIdle = int(count("max-idle", l.MaxIdle))
	to.MaxDecoded = count("max-decoded", l.MaxDecoded)
	to.MaxRatio = int(count("max-ratio", l.MaxRatio))
	to.MaxWaiters = int(count("max-waiters", l.MaxWaiters))
	to.MaxWaitersPerKey = int(count("max-waiters-per-key", l.MaxWaitersPerKey))
	to.MaxUnsaved = count("max-unsaved", l.MaxUnsaved)
}

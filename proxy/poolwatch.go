package proxy

import "time"

// This file is what becomes of connections that nobody uses. They are left open
// for longer than they count as warm, to see what the upstream does with them
// (warmth.go), and closed then, so that none is held for ever.

// failed notes that a request on the connection got no byte of an answer. If the
// connection was idle before, it may have been closed just then.
func (p *pool) failed(c *conn) {
	p.mu.Lock()
	idle := c.wasIdle
	p.mu.Unlock()
	if idle >= 0 {
		p.warmth.closed(idle)
	}
}

// died is called when a connection has failed or was closed, by either side.
// Nobody was using it: then the upstream has shown for how long it keeps one.
func (p *pool) died(c *conn) {
	p.mu.Lock()
	byUpstream := !c.gone && c.uses == 0
	idle := c.leftAfter(p.now())
	p.forget(c)
	p.mu.Unlock()
	if byUpstream {
		p.warmth.closed(idle)
	}
}

// leftAfter returns for how long a connection that the upstream gave up had been
// idle. Over HTTP/2 the upstream takes its leave first, and hangs up a while
// later: then its leave was the last thing heard. What comes right behind an
// answer is no leave. The caller holds the pool's mu.
func (c *conn) leftAfter(now time.Time) time.Duration {
	idle := c.idleFor(now)
	if leave := c.wire.lastByte().Sub(c.idleSince); c.many && leave >= warmLeast {
		idle = min(idle, leave)
	}
	return idle
}

// sweepSoon arms the timer that closes idle connections. They are kept open
// past the time for which they count as warm, to see what the upstream does
// with them. The caller holds mu.
func (p *pool) sweepSoon(after time.Duration) {
	if p.sweep == nil && !p.closed {
		p.sweep = time.AfterFunc(after, p.sweepIdle)
	}
}

// sweepIdle closes what has been idle for as long as it was to be watched.
func (p *pool) sweepIdle() {
	now := p.now()
	var over []*conn
	var left []time.Duration // by the upstream, which has not hung up yet
	next := time.Duration(-1)
	p.mu.Lock()
	p.sweep = nil
	for c := range p.all {
		if c.uses > 0 {
			continue
		}
		if more := watched - now.Sub(c.idleSince); more > 0 {
			if next < 0 || more < next {
				next = more
			}
			continue
		}
		if c.many && c.http.Available() == 0 {
			left = append(left, c.leftAfter(now))
		}
		over = append(over, c)
		p.forget(c)
	}
	if next >= 0 {
		p.sweepSoon(next)
	}
	p.mu.Unlock()
	for _, idle := range left {
		p.warmth.closed(idle)
	}
	for _, c := range over {
		if c.http.Available() > 0 {
			p.warmth.stayedOpen()
		}
		c.http.Close()
	}
}

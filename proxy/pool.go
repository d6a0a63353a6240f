package proxy

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// pool holds the connections to the upstream. It is used in place of the one in
// http.Transport for two reasons: that one decides by itself to send a request
// again (rule P1), and it does not say how long a connection was idle before
// the request is on it (rule P11).
type pool struct {
	now    func() time.Time
	open   func(context.Context) (*http.ClientConn, *wireConn, error)
	max    int // idle connections
	warmth warmth

	mu      sync.Mutex
	all     map[*conn]struct{}
	idle    []*conn     // HTTP/1.1, nobody's; the one used last at the end
	shared  []*conn     // HTTP/2, with or without requests on them
	sharing bool        // the upstream speaks HTTP/2, as far as is known
	dialing *sharedDial // when sharing
	sweep   *time.Timer
	closed  bool
}

// conn is one connection to the upstream.
type conn struct {
	http *http.ClientConn
	wire *wireConn
	// many: it carries several requests at once (HTTP/2).
	many bool

	// Guarded by pool.mu.
	uses      int
	idleSince time.Time
	keepAlive time.Duration // how long the upstream says to wait; 0: it does not say
	used      bool          // some request was put on it
	wasIdle   time.Duration // before its present use, if it was used before; else -1
	gone      bool
}

func newPool(now func() time.Time, maxIdle int,
	open func(context.Context) (*http.ClientConn, *wireConn, error),
) *pool {
	return &pool{
		now: now, open: open, max: maxIdle, warmth: warmth{now: now},
		all: make(map[*conn]struct{}),
	}
}

// take returns a connection on which one request may be sent: a warm one, or a
// new one. Each take ends in one giveBack.
func (p *pool) take(ctx context.Context) (*conn, error) {
	for dead := 0; ; {
		if c := p.warm(); c != nil {
			// The reservation fails when the upstream has closed it just now.
			if c.http.Reserve() == nil {
				return c, nil
			}
			p.drop(c)
			p.giveBack(c)
			continue
		}
		d := p.joinDial(ctx)
		if d == nil {
			return p.dialOwn(ctx)
		}
		alive, err := d.wait(ctx)
		if err != nil {
			return nil, err
		}
		// A new connection that is full already is the next round's business.
		// Upstreams that hang up at once, as some balancers do while nobody is
		// behind them, are not to be dialled for ever.
		if !alive {
			dead++
		}
		if dead > mostStale {
			return nil, errHungUp
		}
	}
}

// dialOwn makes a connection for the caller alone (HTTP/1.1, or the first one).
func (p *pool) dialOwn(ctx context.Context) (*conn, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.http.Reserve(); err != nil {
		p.giveBack(c)
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.used = true
	return c, nil
}

// sharedDial is a connection under way that all who need one wait for.
type sharedDial struct {
	done chan struct{}
	// Set before done is closed:
	conn *conn
	err  error
}

// wait waits for the connection, and reports whether it is still there.
func (d *sharedDial) wait(ctx context.Context) (alive bool, err error) {
	select {
	case <-d.done:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if d.err != nil {
		return false, d.err
	}
	return d.conn.http.Err() == nil, nil
}

// joinDial returns the dial to wait for when the upstream speaks HTTP/2, where
// one new connection serves everybody, and nil where each caller dials its own.
func (p *pool) joinDial(ctx context.Context) *sharedDial {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sharing {
		return nil
	}
	if p.dialing != nil {
		return p.dialing
	}
	d := &sharedDial{done: make(chan struct{})}
	p.dialing = d
	// The one who came first may leave; the others still wait. The limits on
	// dialing and on the handshake end it.
	ctx = context.WithoutCancel(ctx)
	go func() {
		c, err := p.dial(ctx)
		if err == nil {
			p.giveBack(c) // now it is there for all
		}
		p.mu.Lock()
		p.dialing = nil
		d.conn, d.err = c, err
		p.mu.Unlock()
		close(d.done)
	}()
	return d
}

// warm picks a connection that is in use by others and has room, or has been
// idle for a short time only.
func (p *pool) warm() *conn {
	limit, now := p.warmth.limit(), p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.shared {
		// A connection with requests on it is not idle.
		if (c.uses > 0 || c.warm(now, limit)) && c.http.Available() > 0 {
			c.use(now)
			return c
		}
	}
	last := len(p.idle) - 1
	if last < 0 || !p.idle[last].warm(now, limit) {
		return nil // what lies below has been idle for longer
	}
	c := p.idle[last]
	p.idle = p.idle[:last]
	c.use(now)
	return c
}

// use begins a use. The caller holds the pool's mu.
func (c *conn) use(now time.Time) {
	if c.uses == 0 && c.used {
		c.wasIdle = c.idleFor(now)
		c.wire.doubted.Store(true)
	}
	c.used = true
	c.uses++
}

// warm reports whether the connection has been idle for less than the limit and
// for less than the upstream has announced. One that was never used is not idle
// but new: those who waited for it to be made must find it so, also when nothing
// is to be used twice.
func (c *conn) warm(now time.Time, limit time.Duration) bool {
	if !c.used {
		limit = warmMost
	}
	if c.keepAlive > 0 {
		limit = min(limit, c.keepAlive-warmMargin)
	}
	return c.idleFor(now) < limit
}

// idleFor returns for how long the upstream may take the connection for idle:
// since its last byte, however late that was read here.
func (c *conn) idleFor(now time.Time) time.Duration {
	since := c.idleSince
	if heard := c.wire.lastByte(); heard.Before(since) {
		since = heard
	}
	// The monotonic clock stands still while the machine is suspended, the
	// upstream's may not have: the longer of the two counts.
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// dial makes a connection that has one use, the caller's.
func (p *pool) dial(ctx context.Context) (*conn, error) {
	cc, wire, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	// HTTP/2 says at once that it takes many, until the peer's settings say how many.
	c := &conn{http: cc, wire: wire, many: cc.Available() > 1, uses: 1, idleSince: p.now(), wasIdle: -1}
	wire.frames.Store(c.many)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		cc.Close()
		return nil, http.ErrServerClosed
	}
	p.all[c] = struct{}{}
	p.sharing = c.many
	if c.many {
		p.shared = append(p.shared, c)
	}
	p.mu.Unlock()
	cc.SetStateHook(func(*http.ClientConn) {
		if cc.Err() != nil {
			p.died(c)
		}
	})
	return c, nil
}

// giveBack ends one use of a connection.
func (p *pool) giveBack(c *conn) {
	p.mu.Lock()
	c.uses--
	if c.uses > 0 {
		p.mu.Unlock()
		return
	}
	c.idleSince = p.now()
	var over *conn
	switch {
	case c.gone, p.closed, c.http.Available() == 0:
		// Dead, dying, or left in the middle of an answer.
		over = c
	case c.many:
	case len(p.idle) >= p.max:
		// Not the oldest: that one is being watched.
		over = c
	default:
		p.idle = append(p.idle, c)
	}
	if over != nil {
		p.forget(over)
	} else {
		p.sweepSoon(watched)
	}
	p.mu.Unlock()
	if over != nil {
		over.http.Close()
	}
}

// announce notes what the upstream said of how long it keeps the connection.
func (p *pool) announce(c *conn, keepAlive time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.keepAlive = keepAlive
}

// drop takes a connection out of use; what is under way on it goes on.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(c)
}

// forget removes the connection from every list. The caller holds mu.
func (p *pool) forget(c *conn) {
	c.gone = true
	delete(p.all, c)
	same := func(other *conn) bool { return other == c }
	p.idle = slices.DeleteFunc(p.idle, same)
	p.shared = slices.DeleteFunc(p.shared, same)
}

// close closes idle connections now, and others at the end of what is on them.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	var over []*conn
	for c := range p.all {
		if c.uses == 0 {
			over = append(over, c)
			p.forget(c)
		}
	}
	p.mu.Unlock()
	for _, c := range over {
		c.http.Close()
	}
}

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// transport sends each request to the upstream at most once, whatever happens.
//
// http.Transport's own RoundTrip does not: it takes a request with an
// Idempotency-Key for one that may be repeated, and sends it again by itself
// when a reused connection dies (rule P1), also for HTTP/2, where a graceful
// GOAWAY is enough. The ways round that within it, a body that cannot be read
// again or a header under another spelling, rest on details. Here the request
// goes through [http.ClientConn], which is one connection and has no notion of
// repeating; which connection is for pool.go to say.
//
// Upstream requests are never repeated, not even a GET: an upstream that needs
// that needs it from its client.
type transport struct {
	target target
	limits Limits
	base   *http.Transport // dials and speaks; its own pool is never used
	pool   *pool
	now    func() time.Time
	// dial makes a connection below TLS.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// newTransport connects to nothing yet. tlsConfig may be nil.
func newTransport(t target, limits Limits, tlsConfig *tls.Config, now func() time.Time) *transport {
	tr := &transport{target: t, limits: limits, now: now}
	tr.dial = (&net.Dialer{Timeout: max(limits.Dial, 0)}).DialContext
	tr.base = &http.Transport{
		// Environment variables do not decide where protected requests go.
		Proxy:                  nil,
		DialContext:            tr.dialWire,
		TLSClientConfig:        tlsConfig.Clone(),
		TLSHandshakeTimeout:    max(limits.TLSHandshake, 0),
		DisableCompression:     true, // what the client did not ask for is not decoded for it
		ResponseHeaderTimeout:  max(limits.AnswerHeader, 0),
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: limits.MaxAnswerHeader,
		Protocols:              t.protocols(),
		// HTTP/2 connections are shared by many: a dead one is found out by ping.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	tr.pool = newPool(now, limits.MaxIdle, tr.open)
	tr.pool.sharing = t.h2c
	return tr
}

// dialWire makes a connection that counts.
func (t *transport) dialWire(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := t.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	wire := &wireConn{Conn: c, now: t.now, stall: t.limits.AnswerBody, last: t.now()}
	if slot, ok := ctx.Value(wireSlot{}).(*wireSlot); ok {
		slot.wire = wire
	}
	return wire, nil
}

// wireSlot is how the dialer hands the connection below TLS to who asked for it.
type wireSlot struct{ wire *wireConn }

// open makes a connection to the upstream, handshake included.
func (t *transport) open(ctx context.Context) (*http.ClientConn, *wireConn, error) {
	slot := new(wireSlot)
	ctx = context.WithValue(ctx, wireSlot{}, slot)
	cc, err := t.base.NewClientConn(ctx, t.target.scheme, t.target.address)
	if err != nil {
		return nil, nil, err
	}
	return cc, slot.wire, nil
}

// mostStale is how many connections in a row may be found dead before a request
// is put on them. When an upstream restarts, all idle ones are.
const mostStale = 8

// RoundTrip sends the request once. Its error is always a [*SendError]. An
// answer's body must be read to its end or closed; a pause in it that is longer
// than the limit ends it with a *SendError too.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body := newTrialBody(req)
	for tries := 1; ; tries++ {
		res, failure := t.try(body.request())
		if failure == nil {
			body.settle()
			res.Request = req
			return res, nil
		}
		// To take another connection is not to send again: nothing was sent.
		if !failure.stale || tries > mostStale || !body.again() || req.Context().Err() != nil {
			body.abort()
			return nil, failure
		}
	}
}

// try sends the request on one connection.
func (t *transport) try(req *http.Request) (*http.Response, *SendError) {
	c, err := t.pool.take(req.Context())
	if err != nil {
		return nil, &SendError{Timeout: isTimeout(err), Err: err}
	}
	if err := stillOwned(req.Context()); err != nil {
		c.http.Release()
		t.pool.giveBack(c)
		return nil, &SendError{Err: err}
	}
	s := newSend(c)
	// The context ends with the answer: its cancellation is what stops a body
	// that has stalled.
	ctx, cancel := context.WithCancelCause(s.watch(req.Context()))
	res, err := c.http.RoundTrip(req.WithContext(ctx))
	if err != nil {
		failure := s.failed(err)
		cancel(err)
		if !failure.Answering && !failure.Timeout && req.Context().Err() == nil && c.http.Err() != nil {
			t.pool.failed(c)
		}
		t.pool.giveBack(c)
		return nil, failure
	}
	t.noteKeepAlive(c, res)
	done := func() {
		cancel(errAnswerEnded)
		t.pool.giveBack(c)
	}
	if rwc, ok := res.Body.(io.ReadWriteCloser); ok && isUpgraded(res) {
		res.Body = newTunnelBody(rwc, t.limits.StreamIdle, done)
		return res, nil
	}
	res.Body = newAnswerBody(res, t.pause(res), cancel, done)
	return res, nil
}

// stillOwned keeps a process that was stopped for longer than its lease from
// sending what others may have settled, or run, meanwhile. It looks when the
// connection is there and nothing is written: making one may take long.
//
// Nothing was sent then, so the attempt is released, and that is right whatever
// became of its key. While the record still is this attempt's, nothing happened
// and nothing will: the next attempt runs. If it was settled as one that cannot
// happen, that was true. If another attempt has it, or it is done, the release is
// refused and the record answers. Only when it was settled as one that happened
// do the two contradict each other, and the audit trail says so.
func stillOwned(ctx context.Context) error {
	err := umavez.Owned(ctx)
	if errors.Is(err, umavez.ErrNoAttempt) {
		return nil // it runs unprotected
	}
	return err
}

var errAnswerEnded = errors.New("umavez: the answer has ended")

// pause is how long an answer's body may be silent.
func (t *transport) pause(res *http.Response) time.Duration {
	if wire.IsStream(res.Header.Get("Content-Type")) {
		return t.limits.StreamIdle
	}
	return t.limits.AnswerBody
}

// noteKeepAlive reads how long the upstream keeps an idle connection, if it says
// so: `Keep-Alive: timeout=5`, in whole seconds (rule P11).
func (t *transport) noteKeepAlive(c *conn, res *http.Response) {
	for _, line := range res.Header["Keep-Alive"] {
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "timeout") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(value, ` "`), 10, 31)
			if err != nil {
				continue
			}
			// Zero means "not said" in the pool; an upstream that says 0 keeps nothing.
			t.pool.announce(c, max(time.Duration(seconds)*time.Second, 1))
		}
	}
}

// close closes the connections that nobody uses; the others end with their use.
func (t *transport) close() { t.pool.close() }

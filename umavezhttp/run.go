package umavezhttp

import (
	"errors"
	"net/http"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// run runs the operation, and ends its attempt whatever happens. Only then does
// its answer go out (rule R1).
func (c *call) run(attempt *umavez.Attempt) ending {
	rec := &c.rec
	rec.call, rec.attempt, rec.under = c, attempt, c.w
	// The handler's header is its own, and what stands in the client's until
	// the answer is complete is what somebody outside has put there.
	if outside := c.w.Header(); len(outside) > 0 {
		rec.header = outside.Clone()
	} else {
		rec.header = make(http.Header)
	}
	// The operation's context does not end when the client leaves (rule R7).
	w := &recorder{ctx: attempt.Context(), header: rec.header, rec: rec}
	r := c.r.WithContext(w.ctx)
	if c.keeps {
		r = c.shownRequest(r)
	}
	returned := false
	defer func() {
		// net/http removes the files of a form it parsed, but looks for them in
		// the request that it made.
		if r.MultipartForm != nil {
			c.r.MultipartForm = r.MultipartForm
		}
		if !returned {
			// A panic, or runtime.Goexit: there is nothing to recover, it goes
			// on to whoever is outside (rule R8).
			c.died(w.seal())
		}
	}()
	c.next.ServeHTTP(w.face(c.w), r)
	returned = true
	return c.finish(w.seal())
}

// died ends the attempt of a handler that did not return.
func (c *call) died(rec *recording) {
	rec.attempt.Seal()
	if !rec.ended {
		// Whether the store has taken it yet does not matter to the panic; the
		// engine goes on trying.
		_ = rec.attempt.Abandon(umavez.ReasonPanic, nil)
	}
}

// finish ends the attempt of a handler that returned, and answers.
func (c *call) finish(rec *recording) (e ending) {
	rec.attempt.Seal()
	if rec.mode == holding && rec.status == 0 {
		if rec.mark() == umavez.MarkNone && rec.attempt.Context().Err() != nil {
			rec.broken = true // it was told to stop, and has said nothing
		} else {
			rec.writeHeader(http.StatusOK)
		}
	}
	e.status = rec.status
	switch rec.mode {
	case hijacked:
		e.out = keepBare
	case cut:
		e.out, e.saved = leaveUnknown, rec.cause
		if !rec.ended {
			// The engine follows the key until its attempt ends.
			_ = rec.attempt.Abandon(umavez.ReasonBroken, nil)
		}
		c.elsewhere()
	case live:
		rec.listTrailers()
		if !rec.ended {
			// What it comes to is in the record; the client has the answer.
			e.out, e.saved = rec.end()
		}
		rec.putTrailers()
	case holding:
		rec.listTrailers()
		e.out, e.saved = rec.end()
		c.send(rec, e.out, e.saved)
	}
	return e
}

// ending is how the attempt of a handler that returned has ended.
type ending struct {
	out    outcome
	status int
	saved  error // what came of ending it, or nil
}

// end ends the attempt by what its answer says.
func (rec *recording) end() (outcome, error) {
	c := rec.call
	if rec.mode == holding && rec.status != 0 {
		rec.sniff(nil, false)
	}
	mark, why := rec.attempt.Mark()
	out, why := c.once.route.decide(rec.status, !rec.complete(), mark, why)
	if rec.mode == holding {
		rec.keep(out == releaseKey)
	}
	if out == keepWhole && !rec.fits() {
		out = keepBare
	}
	switch out {
	case keepWhole:
		return out, rec.attempt.Complete(rec.sheet(KeptWhole).encode())
	case keepBare:
		return out, rec.attempt.Complete(rec.sheet(KeptWithoutBody).encode())
	case releaseKey:
		return out, rec.attempt.Release(rec.shown())
	default:
		return out, rec.attempt.Abandon(why, rec.lastWord(why))
	}
}

// shown is the stored form of an answer that is not kept but shown to others,
// or nil when it is not whole.
func (rec *recording) shown() []byte {
	if !rec.fits() || !rec.complete() {
		return nil
	}
	return rec.sheet(KeptWhole).encode()
}

// lastWord is what a record keeps of an attempt that leaves the outcome unknown:
// its answer, if that is why. Nil leaves what was noted of a live answer.
func (rec *recording) lastWord(why umavez.Reason) []byte {
	switch {
	case why != umavez.ReasonStatus:
		return nil
	case rec.call.once.route.NoBody:
		return rec.sheet(KeptWithoutBody).encode()
	}
	return rec.shown()
}

// takeoverRetryAfter is when a client may come again whose attempt was lost, where
// the next one takes over: that was told to stop, and whatever stopped it gets a
// moment to recover.
const takeoverRetryAfter = time.Second

// send answers the client with what the handler wrote.
func (c *call) send(rec *recording, out outcome, err error) {
	if errors.Is(err, umavez.ErrLeaseLost) || errors.Is(err, umavez.ErrEnded) {
		// The key is somebody else's, or the handler ended its attempt itself.
		c.elsewhere()
		return
	}
	if _, broken := errors.AsType[*umavez.StepError](err); broken {
		// Its steps do not let it go on, whatever the handler made of that.
		p := problemFor(wire.CodeOutcomeUnknown)
		p.Status = http.StatusBadGateway
		c.refuse(p)
		return
	}
	if rec.status == 0 {
		// The operation's own caller did not get an answer out of it.
		p := problemFor(wire.CodeOutcomeUnknown)
		p.Status = http.StatusGatewayTimeout
		if c.policy != umavez.Opaque {
			p.RetryAfter = takeoverRetryAfter
		}
		c.refuse(p)
		return
	}
	rec.unsaved = err != nil && (out == keepWhole || out == keepBare)
	h := c.w.Header()
	rec.putLength()
	rec.putHeader()
	switch {
	case out == leaveUnknown && c.policy == umavez.Opaque:
		h[wire.IdempotencyStatus] = []string{wire.StatusUnknown}
	case (out == keepWhole || out == keepBare) && !rec.unsaved:
		c.putExpires(h, rec.attempt.Retention().Retain)
	}
	c.w.WriteHeader(rec.status)
	// A client that has left cannot be told; the record is complete.
	_ = rec.tape.writeTo(c.w)
	rec.putTrailers()
}

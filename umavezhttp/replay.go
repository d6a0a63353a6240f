package umavezhttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// answer answers from the record.
func (c *call) answer(rec *umavez.Record) {
	switch rec.State {
	case umavez.Done:
		c.replay(rec)
	case umavez.Running:
		c.refuse(inProgress(rec.LeaseLeft))
	case umavez.Expired:
		c.refuse(problemFor(wire.CodeKeyExpired))
	case umavez.Lost:
		c.lastWord(rec)
	case umavez.Vacant:
		c.released(rec)
	}
}

// mostRetryAfter is the longest that a client is sent away for while an attempt
// is running: most operations are over by then, however long their lease is.
const mostRetryAfter = 2 * time.Second

// inProgress is the refusal while another attempt is running (rule R2).
func inProgress(leaseLeft time.Duration) Problem {
	p := problemFor(wire.CodeInProgress)
	p.RetryAfter = min(max(leaseLeft, time.Second), mostRetryAfter)
	return p
}

// replay gives the stored answer again (rule R3). One that is damaged, or was
// not kept, is refused and never run again.
func (c *call) replay(rec *umavez.Record) {
	v, err := openAnswer(rec.Answer)
	if err != nil {
		if rec.Unreadable != nil {
			err = rec.Unreadable // why there is nothing to open: the key is not at hand, say
		}
		c.logf("umavez: record %v: %v", c.key.ID(), err)
		c.refuse(problemFor(wire.CodeReplayUnavailable))
		return
	}
	if v.kept != KeptWhole {
		p := problemFor(wire.CodeReplayUnavailable)
		p.Original = v.original()
		c.refuse(p)
		return
	}
	c.putExpires(c.w.Header(), rec.RetainLeft)
	c.write(&v, true, false)
}

// lastWord answers for an attempt that was lost: with the last answer that was
// seen of it (rule A5), or else by saying that nothing is known (rule R4).
func (c *call) lastWord(rec *umavez.Record) {
	p := problemFor(wire.CodeOutcomeUnknown)
	p.RetryAfter = c.nextTurn(rec)
	if rec.Last != nil {
		v, err := openAnswer(rec.Last)
		switch {
		case err != nil:
			c.logf("umavez: record %v: last word: %v", c.key.ID(), err)
		case v.kept == KeptWhole:
			p.putRetryAfter(c.w.Header())
			c.write(&v, true, true)
			return
		default:
			p.Original = v.original() // it broke off after that much (rule R10)
		}
	}
	c.refuse(p)
}

// released gives the answer of an attempt that was released to those who waited
// for it: it is theirs as well as the first one's, so it is no replay (rule R2).
func (c *call) released(rec *umavez.Record) {
	v, err := openAnswer(rec.Answer)
	if err != nil {
		// The attempt ran here, and its record is gone: it was settled, say. It
		// cannot be said what its outcome is now.
		c.refuse(problemFor(wire.CodeOutcomeUnknown))
		return
	}
	c.write(&v, false, false)
}

// recordTimeout bounds the reading of a record by an attempt that lost its
// lease. Its client has waited for the operation itself.
const recordTimeout = 2 * time.Second

// elsewhere answers for an attempt that lost its key, by what became of the key
// meanwhile (rule R11).
func (c *call) elsewhere() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), recordTimeout)
	defer cancel()
	rec, err := c.once.eng.Get(ctx, c.key)
	// After a settlement the key may have gone to another request (rule F10).
	// The handler may have changed this one, so it cannot be compared anew.
	known := err == nil || errors.Is(err, umavez.ErrUnreadable)
	if !known || rec.Fingerprint != c.fingerprint {
		c.refuse(problemFor(wire.CodeOutcomeUnknown))
		return
	}
	c.answer(&rec)
}

// original is what can be told of an answer that was not kept.
func (v *view) original() *OriginalAnswer {
	o := &OriginalAnswer{Status: v.status}
	for r := v.reader(); r.next(); {
		for range r.count {
			if value := r.value(); r.name == "Location" && o.Location == "" {
				o.Location = value
			}
		}
	}
	return o
}

// write writes a whole stored answer: replayed, or as the first one's fellow;
// unknown: it is the last word of a lost attempt.
func (c *call) write(v *view, replayed, unknown bool) {
	h := c.w.Header()
	// One array for all values: the stored ones, and up to three of our own.
	values := make([]string, 0, v.values+3)
	put := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	foreign, trailers := false, false
	for r := v.reader(); r.next(); {
		from := len(values)
		for range r.count {
			values = append(values, r.value())
		}
		list := values[from:len(values):len(values)]
		switch r.kind {
		case kindOrigin:
			foreign = list[0] != c.origin
		case kindField:
			switch {
			case foreign && strings.HasPrefix(r.name, "Access-Control-"):
			case r.count == 0 && r.name != "Content-Type":
				delete(h, r.name)
			default:
				h[r.name] = list // a Content-Type without values keeps net/http from guessing
			}
		case kindTrailer:
			trailers = true
			if strings.HasPrefix(r.name, http.TrailerPrefix) {
				h[r.name] = list // so that net/http sends the body in chunks
			}
		}
	}
	if len(v.body) > unflushed && !trailers {
		put("Content-Length", strconv.Itoa(len(v.body)))
	}
	c.putOwn(h)
	if replayed {
		put(wire.IdempotentReplayed, wire.ReplayedTrue)
	}
	if unknown {
		put(wire.IdempotencyStatus, wire.StatusUnknown)
	}
	c.w.WriteHeader(v.status)
	if len(v.body) > 0 {
		c.w.Write(v.body) // a client that has left can ask again
	}
	if trailers {
		v.putTrailers(h)
	}
}

// putTrailers hands the stored trailers to net/http.
func (v *view) putTrailers(h http.Header) {
	for r := v.reader(); r.next(); {
		values := make([]string, 0, r.count)
		for range r.count {
			values = append(values, r.value())
		}
		if r.kind == kindTrailer {
			h[r.name] = values
		}
	}
}

package umavezhttp

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/internal/wire"
)

// call is one request with a key on its way through the middleware. Calls are
// used again: nobody may hold one when it is freed.
type call struct {
	asked
	echo []field // what is mirrored of the request
	rec  recording

	// refingerprint is bound to the call once, so that an operation that
	// carries it costs nothing.
	refingerprint func(recipe uint32) (umavez.Fingerprint, bool)
}

// asked is what belongs to one request.
type asked struct {
	once   *Once
	policy umavez.Policy
	next   http.Handler
	keeps  bool // the record keeps the request
	w      http.ResponseWriter
	r      *http.Request

	received    time.Time
	key         umavez.Key
	body        []byte
	kept        []byte // the request, as the claim keeps it
	settings    *shared
	fingerprint umavez.Fingerprint
	preferred   time.Duration // the client's own wait; valid if prefers
	prefers     bool

	// What answers to this request say of it. Like echo it is taken down before
	// the handler runs, which may change the request.
	spelled []string // the key, as the client spelled it
	origin  string   // the Origin that is kept with an answer, if any is (rule A7)
}

var calls = sync.Pool{New: func() any {
	c := new(call)
	c.rec.reset()
	c.refingerprint = func(recipe uint32) (umavez.Fingerprint, bool) {
		return c.once.prints.sumBy(recipe, &c.settings.hashKey, c.r, c.body)
	}
	return c
}}

func newCall(p *protected, w http.ResponseWriter, r *http.Request) *call {
	c := calls.Get().(*call)
	c.once, c.policy, c.next, c.w, c.r = p.once, p.policy, p.next, w, r
	c.keeps = p.keeps
	c.received = p.once.now()
	for _, name := range p.once.names {
		if lines := r.Header[name]; len(lines) > 0 {
			c.spelled = lines[:1:1]
			break
		}
	}
	if p.once.opt.KeepCORS {
		c.origin = r.Header.Get("Origin")
	}
	for _, name := range p.once.route.Echo {
		if lines := r.Header[name]; len(lines) > 0 {
			c.echo = append(c.echo, field{name, lines})
		}
	}
	return c
}

// free ends the use of a call. ran: a handler had the request.
func (c *call) free(ran bool) {
	freeBody(c.r, ran)
	if ran {
		c.rec.reset()
	}
	clear(c.echo)
	c.echo = c.echo[:0]
	c.asked = asked{}
	calls.Put(c)
}

// refuse answers with one of our own documents.
func (c *call) refuse(p Problem) {
	c.putEcho(c.w.Header())
	c.once.opt.refuse(c.w, c.r, p)
}

// putEcho sets the fields that mirror this request, where nobody has set them.
func (c *call) putEcho(h http.Header) {
	for _, f := range c.echo {
		if _, ok := h[f.name]; !ok {
			h[f.name] = f.values
		}
	}
	if c.prefers {
		h[wire.PreferenceApplied] = []string{"wait=" + strconv.Itoa(int(c.preferred/time.Second))}
	}
}

// putOwn sets what every answer to a request with a key says (rule R3).
func (c *call) putOwn(h http.Header) {
	c.putEcho(h)
	spelled := c.spelled
	if spelled == nil {
		spelled = []string{wire.FormatKey(c.key.Name)}
	}
	h[wire.IdempotencyKey] = spelled
}

// putExpires says until when the answer is kept, if it was asked for (rule A10).
func (c *call) putExpires(h http.Header, left time.Duration) {
	if c.once.opt.Expires {
		h[wire.IdempotencyExpires] = []string{c.once.now().Add(left).UTC().Format(http.TimeFormat)}
	}
}

// logf tells the operator, the way the server around us does.
func (c *call) logf(format string, args ...any) { logf(c.r, format, args...) }

func logf(r *http.Request, format string, args ...any) {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server != nil && server.ErrorLog != nil {
		server.ErrorLog.Printf(format, args...)
		return
	}
	slog.WarnContext(r.Context(), fmt.Sprintf(format, args...))
}

package umavezhttp

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// This file takes an answer apart that a handler has written: what of it is
// kept, and what goes to the client that asked first.

// keep works out what is kept of the header. It looks at the client's header as
// somebody outside has left it, so it comes before putHeader.
func (rec *recording) keep(released bool) {
	rec.kept = rec.call.once.keptFields(rec.kept[:0], rec.fields, rec.under.Header(), released)
}

// fits reports whether the answer can be kept whole: its body and its fields
// together, since trailers could be as long as a body.
func (rec *recording) fits() bool {
	if !rec.taping || rec.status < 200 {
		return false
	}
	s := sheet{fields: rec.kept, trailers: rec.trailers}
	return int64(s.fieldsSize()) <= maxFields && rec.tape.length <= rec.call.once.opt.MaxAnswer
}

// maxFields bounds the fields of an answer that is kept whole: net/http's own
// client takes no more of a header, and nobody means to send half of that.
const maxFields = 512 << 10

// sheet is the answer in the parts that are kept.
func (rec *recording) sheet(kept Kept) *sheet {
	s := &sheet{status: rec.status, kept: kept, fields: rec.kept, origin: rec.call.origin}
	if kept == KeptWhole {
		s.trailers = rec.trailers
		s.tape = &rec.tape
	}
	return s
}

// putHeader makes the client's header what the handler made of it.
func (rec *recording) putHeader() {
	h := rec.under.Header()
	for name := range h {
		if !has(rec.fields, name) {
			delete(h, name)
		}
	}
	for _, f := range rec.fields {
		h[f.name] = f.values
	}
	rec.call.putOwn(h)
	if rec.unsaved {
		h[wire.IdempotencyStatus] = []string{wire.StatusUnsaved}
	}
}

// unflushed is up to how much net/http holds back in HTTP/1 before it sends a
// header: an answer that ends within has a length, and no trailers that were not
// announced. HTTP/2 holds back more.
const unflushed = 2048

// putLength declares the length of an answer that is complete, where net/http
// would not find it out by itself. A handler that declared one keeps its own,
// also when it broke its word: then the server closes the connection, and the
// client sees that something is missing.
func (rec *recording) putLength() {
	if rec.tape.length > unflushed && rec.declared < 0 && len(rec.trailers) == 0 {
		rec.fields = append(rec.fields, field{"Content-Length", []string{strconv.FormatInt(rec.tape.length, 10)}})
	}
}

// listTrailers takes down the trailers: those that the header announced, and
// those that net/http knows by their prefix. For the latter it looks through the
// handler's header only when net/http would, too: a goroutine that outlives its
// handler may be writing into it.
func (rec *recording) listTrailers() {
	for _, f := range rec.fields {
		if f.name != "Trailer" {
			continue
		}
		for _, line := range f.values {
			for name := range strings.SplitSeq(line, ",") {
				name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
				if values := rec.header[name]; len(values) > 0 {
					rec.trailers = append(rec.trailers, field{name, values})
				}
			}
		}
	}
	if rec.mode == holding && rec.tape.length <= unflushed && rec.call.r.ProtoMajor < 2 {
		return
	}
	for name, values := range rec.header {
		if len(name) > len(http.TrailerPrefix) && strings.HasPrefix(name, http.TrailerPrefix) && len(values) > 0 {
			rec.trailers = append(rec.trailers, field{name, values})
		}
	}
	sortFields(rec.trailers)
}

// putTrailers hands the trailers to net/http, which sends them when we return.
func (rec *recording) putTrailers() {
	if len(rec.trailers) == 0 {
		return
	}
	h := rec.under.Header()
	for _, f := range rec.trailers {
		h[f.name] = f.values
	}
}

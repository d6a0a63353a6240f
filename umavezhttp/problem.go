package umavezhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

// Problem is a refusal: one of our own answers, as opposed to one of the
// operation's. It is written as application/problem+json (RFC 9457), or by
// [Options.Problem]. It never holds a value from the request or the record, but
// for what Original says.
type Problem struct {
	// Type is Options.ProblemBase, "#" and Code.
	Type string `json:"type"`
	// Title is the same at every occurrence of Code, in English.
	Title string `json:"title"`
	// Status is the answer's status.
	Status int `json:"status"`
	// Detail says in a sentence or two what happened, in the client's language.
	Detail string `json:"detail"`
	// Code is stable: programs go by it, and by nothing else here.
	Code string `json:"code"`
	// Differs names the parts of the request that differ from the first one
	// with this key: method, path, query, type, body, headers, host (rule F10).
	Differs []string `json:"differs,omitempty"`
	// Original is what is known of an answer that was not kept (rule R9).
	Original *OriginalAnswer `json:"original,omitempty"`

	// RetryAfter, rounded up to seconds, becomes the Retry-After header. Zero: none.
	RetryAfter time.Duration `json:"-"`
	// Language is that of Detail: "en" or "pt-BR".
	Language string `json:"-"`

	// What Detail tells beyond its code: which key field is wrong (invalid-key),
	// the cap in bytes and of what (request-too-large), and that the record's
	// fingerprint recipe is not known here (replay-unavailable, rule F3).
	key           *invalidKey
	limit         int64
	whole         bool // the cap is one of the whole request, not of its body
	recipeUnknown bool
}

// OriginalAnswer is what was noted of an answer before its first byte went out.
type OriginalAnswer struct {
	Status   int    `json:"status"`
	Location string `json:"location,omitempty"`
}

// problemFor returns the refusal with one of wire's codes. Type, Detail and
// Language are filled in when it is written.
func problemFor(code string) Problem {
	kind, ok := wire.ProblemTypeOf(code)
	if !ok {
		panic("umavez: no such problem code: " + code)
	}
	return Problem{Title: kind.Title, Status: kind.Status, Code: code}
}

// refuse writes a problem as this service writes them.
func (o *Options) refuse(w http.ResponseWriter, r *http.Request, p Problem) {
	p.Type = o.ProblemBase + "#" + p.Code
	lang := negotiate(r.Header["Accept-Language"])
	p.Language = languageTags[lang]
	if p.Detail == "" {
		p.Detail = p.detail(lang)
	}
	h := w.Header()
	p.setHeaders(h, o.Challenge)
	if o.Problem != nil {
		o.Problem(w, r, p)
		return
	}
	// Marshalling a struct of strings and numbers cannot fail; were it to, an
	// answer without its body would still have the right status.
	document, _ := json.Marshal(p)
	h.Set("Content-Type", wire.ProblemMediaType)
	h.Set("Content-Language", p.Language)
	h.Add("Link", "<"+o.Docs+`>; rel="describedby"`)
	w.WriteHeader(p.Status)
	w.Write(append(document, '\n'))
}

// setHeaders sets what a refusal must say in headers, whoever writes its body.
func (p *Problem) setHeaders(h http.Header, challenge string) {
	// Whatever describes another body, set by somebody outside, is wrong now.
	for _, name := range [...]string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	// A refusal is about this moment: no cache may give it to a later attempt.
	h.Set("Cache-Control", "no-store")
	switch p.retry() {
	case wire.RetryUseful:
		h.Set(wire.ShouldRetry, "true")
	case wire.RetryUseless:
		h.Set(wire.ShouldRetry, "false")
	}
	p.putRetryAfter(h)
	if p.Status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", challenge)
	}
}

// putRetryAfter says when to come again, if that is known.
func (p *Problem) putRetryAfter(h http.Header) {
	if p.RetryAfter > 0 {
		seconds := (p.RetryAfter + time.Second - 1) / time.Second
		h.Set(wire.RetryAfter, strconv.FormatInt(int64(seconds), 10))
	}
}

// retry says whether the same request again can make a difference. Where we say
// when to come back, it can: an unknown outcome, say, that is being looked into.
func (p *Problem) retry() wire.Retry {
	kind, _ := wire.ProblemTypeOf(p.Code)
	if kind.Retry == wire.RetryUseless && p.RetryAfter > 0 {
		return wire.RetryUseful
	}
	return kind.Retry
}

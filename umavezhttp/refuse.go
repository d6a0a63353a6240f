package umavezhttp

import (
	"net/http"
	"time"
)

// Refuse writes a refusal as this Once writes its own: with its type, language
// and headers, and by its Options.Problem if there is one. It is for who stands
// around the middleware and has something to say in the same voice, as the
// sidecar does. code is one of the codes of problem documents ("outcome-unknown"),
// and anything else is a mistake in the program: Refuse panics. A status of 0
// means the one that belongs to the code.
func (o *Once) Refuse(w http.ResponseWriter, r *http.Request, code string, status int) {
	o.RefuseUntil(w, r, code, status, 0)
}

// RefuseUntil is Refuse, and says when the same request may know more: see
// [Problem].RetryAfter.
func (o *Once) RefuseUntil(w http.ResponseWriter, r *http.Request, code string, status int, retryAfter time.Duration) {
	p := problemFor(code)
	p.RetryAfter = retryAfter
	if status != 0 {
		p.Status = status
	}
	o.opt.refuse(w, r, p)
}

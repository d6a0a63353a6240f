package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/umavez/umavez/internal/wire"
	"github.com/umavez/umavez/umavezhttp"
)

// answerForm is a checked Answer.
type answerForm struct {
	status  int
	header  []headerForm
	body    form
	media   string
	own     bool // the body is the foreign system's
	without bool // the route keeps no bodies
}

// notAnswered are fields that an answer cannot be given: those of a message, and
// those that the sidecar says.
var notAnswered = slices.Concat(notAsked, ownAnswerHeaders,
	[]string{wire.IdempotencyKey, "Date", "Set-Cookie", wire.RetryAfter, "Www-Authenticate"})

// noBody are statuses whose answers have none.
var noBody = []int{http.StatusNoContent, http.StatusResetContent}

func (c *checker) answer(a Answer) (*answerForm, error) {
	checked := &answerForm{status: a.Status, own: a.ResponseBody, without: c.bare}
	switch {
	case a.Status < 200 || a.Status > 499 || a.Status == http.StatusPartialContent || a.Status == http.StatusNotModified ||
		slices.Contains(saysNothing, a.Status):
		return nil, placed("status", fmt.Errorf("%d is not the answer of an operation that has happened", a.Status))
	case a.ResponseBody && a.Body != "":
		return nil, placed("body", errors.New("it is either written out or the response's own"))
	case (a.ResponseBody || a.Body != "") && slices.Contains(noBody, a.Status):
		return nil, placed("body", fmt.Errorf("an answer with status %d has none", a.Status))
	}
	var err error
	if checked.header, err = parseHeaderForms(a.Header, notAnswered); err == nil {
		err = c.headersAllowed(checked.header, false, true)
	}
	if err != nil {
		return nil, placed("headers", err)
	}
	if a.Body == "" {
		return checked, nil
	}
	if checked.media, err = mediaOf(checked.header, "application/json"); err != nil {
		return nil, placed("headers", err)
	}
	if checked.body, err = parseBodyForm(checked.media, a.Body); err == nil {
		err = c.allowed(checked.body, false, true)
	}
	if err != nil {
		return nil, placed("body", err)
	}
	return checked, nil
}

// fill makes the answer. response is the header of the foreign system's.
func (a *answerForm) fill(from *facts, response http.Header) (umavezhttp.Answer, error) {
	made := umavezhttp.Answer{Status: a.status}
	var err error
	if made.Header, err = fillHeaders(a.header, from); err != nil {
		return made, err
	}
	media := made.Header.Get("Content-Type")
	switch {
	case a.without:
		made.Kept = umavezhttp.KeptWithoutBody
		return made, nil
	case a.own:
		if coding := response.Get("Content-Encoding"); coding != "" && coding != "identity" {
			return made, fmt.Errorf("umavez: the answer is encoded (%.20q), and was not asked to be", coding)
		}
		made.Body = from.response
		if media == "" {
			media = response.Get("Content-Type")
		}
	case a.body != nil:
		text, err := a.body.fill(from)
		if err != nil {
			return made, err
		}
		made.Body, media = []byte(text), a.media
	}
	if len(made.Body) > 0 && media != "" {
		made.Header.Set("Content-Type", media)
	}
	return made, nil
}

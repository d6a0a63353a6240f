package keys

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Code says what kind of refusal a [Fault] is. It crosses the admin API.
type Code string

// The codes.
const (
	// CodeUsage: the question itself is wrong, and will be wrong next time.
	CodeUsage Code = "usage"
	// CodeNotFound: there is no such record.
	CodeNotFound Code = "not-found"
	// CodeMoved: the record is not as it was when it was listed.
	CodeMoved Code = "moved"
	// CodeLive: an attempt holds the record under a live lease.
	CodeLive Code = "live"
	// CodeNotQuiet: too early to say that it cannot happen.
	CodeNotQuiet Code = "not-quiet"
	// CodeNotOffered: this store cannot do it.
	CodeNotOffered Code = "not-offered"
	// CodeSealed: what the store holds is sealed, and the key ring is not there;
	// or the other way round.
	CodeSealed Code = "sealed"
	// CodeClosed: the admin address does not show keys, or not to this caller.
	CodeClosed Code = "closed"
	// CodeFailed: it was right to ask, and did not work.
	CodeFailed Code = "failed"
)

// statuses are those of HTTP. A code that is not here is a failure.
var statuses = map[Code]int{
	CodeUsage:      http.StatusBadRequest,
	CodeNotFound:   http.StatusNotFound,
	CodeMoved:      http.StatusConflict,
	CodeLive:       http.StatusConflict,
	CodeNotQuiet:   http.StatusConflict,
	CodeNotOffered: http.StatusNotImplemented,
	CodeSealed:     http.StatusConflict,
	CodeClosed:     http.StatusForbidden,
	CodeFailed:     http.StatusBadGateway,
}

// Fault is why something was not done, in words for the operator. Text says it
// without the "umavez: " in front.
type Fault struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
	// cause is for the log of the process that has it; it does not cross the
	// admin API, since a store's error may tell of its inside.
	cause error
}

// Error begins with "umavez: ".
func (f *Fault) Error() string {
	if f.cause != nil {
		return fmt.Sprintf("umavez: %s: %s", f.Text, said(f.cause))
	}
	return "umavez: " + f.Text
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.cause }

func faultf(code Code, format string, args ...any) error {
	return &Fault{Code: code, Text: fmt.Sprintf(format, args...)}
}

// failed is a fault of the store.
func failed(doing string, err error) error {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return &Fault{Code: CodeFailed, Text: doing, cause: err}
}

// said is an error's text without the name of the program, which stands in front
// already.
func said(err error) string { return strings.TrimPrefix(err.Error(), "umavez: ") }

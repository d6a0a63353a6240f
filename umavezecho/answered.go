package umavezecho

import (
	"errors"
	"net/http"
)

// errAnswered is what somebody gets who writes to an answer that is complete.
var errAnswered = errors.New("umavez: the error was answered where it was returned, and that answer is stored")

// answered is the response of a handler that has returned an error, for whoever
// stands outside: it is complete. echo asks each HTTPErrorHandler to look whether
// a response is committed; one that does not would write a second document behind
// the first, and the client would see what no retry gets.
type answered struct{ http.ResponseWriter }

// Unwrap leads to the *echo.Response, with the status and size of the answer.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader does nothing.
func (a *answered) WriteHeader(int) {}

// Write writes nothing.
func (a *answered) Write([]byte) (int, error) { return 0, errAnswered }

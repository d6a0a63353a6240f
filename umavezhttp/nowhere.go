package umavezhttp

import (
	"errors"
	"net/http"
	"time"
)

// nowhere is the connection of a client that is not there: what a completed
// operation answers goes into its record alone. It can be flushed, so that
// handlers which do so without asking get along; it cannot be hijacked, since
// there is nothing to take.
type nowhere struct{ header http.Header }

// errNobodyListens is what writing to nobody gives: what a client gives that has
// left. The answer is recorded all the same (rule R7).
var errNobodyListens = errors.New("umavez: the operation is finished without its client; nobody listens")

func (w *nowhere) Header() http.Header            { return w.header }
func (*nowhere) WriteHeader(int)                  {}
func (*nowhere) Write([]byte) (int, error)        { return 0, errNobodyListens }
func (*nowhere) WriteString(string) (int, error)  { return 0, errNobodyListens }
func (*nowhere) Flush()                           {}
func (*nowhere) SetReadDeadline(time.Time) error  { return nil }
func (*nowhere) SetWriteDeadline(time.Time) error { return nil }
func (*nowhere) EnableFullDuplex() error          { return nil }

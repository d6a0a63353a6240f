package killtest

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// phase is a place where the process dies.
type phase struct {
	name string
	// moment at which the process kills itself. Where it has none, the answer's
	// middle (answering) or the upstream (before-effect, after-effect) is the place.
	moment  umavez.Moment
	itself  bool
	release bool // every key's first attempt is refused without an effect
}

// phases are all of them, in the order of an operation's course.
var phases = []phase{
	{name: "claimed-not-started", moment: umavez.MomentClaimed, itself: true},
	{name: "started", moment: umavez.MomentStarted, itself: true},
	{name: beforeEffect},
	{name: afterEffect},
	{name: "effect-not-saved", moment: umavez.MomentCompleting, itself: true},
	{name: "saved-not-answered", moment: umavez.MomentCompleted, itself: true},
	{name: answering},
	{name: "releasing", moment: umavez.MomentReleasing, itself: true, release: true},
	{name: "released", moment: umavez.MomentReleased, itself: true, release: true},
}

// The places that are no moment.
const (
	beforeEffect = "started-before-effect"
	afterEffect  = "started-after-effect"
	answering    = "answering"
)

// The variables that tell a process how it dies.
const (
	envPhase   = "KILLTEST_PHASE"
	envNth     = "KILLTEST_NTH"
	envJournal = "KILLTEST_JOURNAL"
)

// death kills the process that it is in.
type death struct {
	phase   phase
	nth     int64 // the how manieth time that the phase is reached
	reached atomic.Int64
	journal *os.File
}

func newDeath(getenv func(string) string) (*death, error) {
	d := new(death)
	var err error
	if d.journal, err = os.OpenFile(getenv(envJournal), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if getenv(envPhase) == "" {
		return d, nil // this process lives
	}
	for _, p := range phases {
		if p.name == getenv(envPhase) {
			d.phase = p
		}
	}
	if d.nth, err = strconv.ParseInt(getenv(envNth), 10, 64); err != nil || d.phase.name == "" {
		return nil, fmt.Errorf("killtest: phase %q, nth %q: %w", getenv(envPhase), getenv(envNth), err)
	}
	return d, nil
}

func (d *death) hooks() serve.Hooks {
	h := serve.Hooks{Observe: d.observe}
	if d.phase.name == answering {
		h.Wrap = d.wrap
	}
	return h
}

// observe writes the moment down before anything else happens. A write to a
// file outlives SIGKILL, so the journal says where each attempt stood.
func (d *death) observe(o umavez.Observation) {
	d.write(o.Moment.String(), o)
	if d.phase.itself && o.Moment == d.phase.moment && d.reach() {
		d.write(diedHere, o)
		die()
	}
}

// diedHere is what the journal says, besides the moment, of the attempt at
// whose moment the process died.
const diedHere = "died-here"

func (d *death) write(what string, o umavez.Observation) {
	line := fmt.Sprintf("%s %s %s\n", what, o.ID, o.Attempt)
	if _, err := d.journal.WriteString(line); err != nil {
		panic(err)
	}
}

// reach reports whether it is time to die.
func (d *death) reach() bool { return d.reached.Add(1) == d.nth }

// die never returns: not an instruction of this goroutine runs after it.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// wrap lets the process die in the middle of an answer to a client.
func (d *death) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&halfWriter{ResponseWriter: w, death: d}, r)
	})
}

// halfWriter writes half of a body to the socket, dies if it is time, and
// writes the rest.
type halfWriter struct {
	http.ResponseWriter
	death *death
	code  int
}

func (w *halfWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *halfWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

func (w *halfWriter) Write(b []byte) (int, error) {
	if w.code != http.StatusCreated || len(b) < 2 {
		return w.ResponseWriter.Write(b)
	}
	half := len(b) / 2
	n, err := w.ResponseWriter.Write(b[:half])
	if err != nil {
		return n, err
	}
	if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
		return n, err
	}
	if w.death.reach() {
		die()
	}
	m, err := w.ResponseWriter.Write(b[half:])
	return n + m, err
}

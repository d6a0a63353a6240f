package killtable

import (
	"errors"
	"fmt"
	"slices"

	"github.com/umavez/umavez"
)

// Row is one line at which a process dies, and what must follow.
type Row struct {
	Course
	DiesAt string
	// Effects is how often the effect has happened when the process is dead: of
	// a stepped course, the effects of all its steps together.
	Effects int
	// Next is what the next attempt comes to, in another process, and Total how
	// often the effect has happened after that. A foreign system that honours
	// keys does once what it is asked twice.
	Next  Outcome
	Total int
	// Claimed: the process had claimed and not started. Over a store that can
	// tell, the key is vacant then: the next attempt runs, and Total is Vacant.
	Claimed bool
	Vacant  int
}

// Outcome is what an attempt comes to.
type Outcome string

// The outcomes.
const (
	Runs      Outcome = "runs"    // it runs the operation to its end
	Replays   Outcome = "replays" // it gets the kept answer
	IsUnknown Outcome = "unknown" // it is refused: nobody knows what happened
)

// The courses.
var (
	opaque      = Course{Name: "opaque", Policy: umavez.Opaque}
	opaqueFails = Course{Name: "opaque, fails", Policy: umavez.Opaque, Ends: Fails}
	opaqueNot   = Course{Name: "opaque, not done", Policy: umavez.Opaque, Ends: IsNotDone}
	rerun       = Course{Name: "rerunnable", Policy: umavez.Rerunnable}
	rerunFails  = Course{Name: "rerunnable, fails", Policy: umavez.Rerunnable, Ends: Fails}
	stepped     = Course{Name: "stepped", Policy: umavez.Stepped}
	steppedNot  = Course{Name: "stepped, not done", Policy: umavez.Stepped, Ends: IsNotDone}
	noKeys      = Course{Name: "stepped, without keys", Policy: umavez.Stepped, NoKeys: true}
)

// sent is the line of the note that a step without a foreign key is about to be sent.
func sent(step string) string { return fmt.Sprintf("checkpoint %q", "\x00sent "+step) }

// Rows is the table. It holds every line of every course, in the order in which
// a living process comes to them; the lines that a course shares with another
// one stand there once.
var Rows = []Row{
	{Course: opaque, DiesAt: "before claim", Next: Runs, Total: 1},
	{Course: opaque, DiesAt: "after claim", Next: IsUnknown, Claimed: true, Vacant: 1},
	{Course: opaque, DiesAt: "before start", Next: IsUnknown, Claimed: true, Vacant: 1},
	{Course: opaque, DiesAt: "after start", Next: IsUnknown},
	{Course: opaque, DiesAt: "before effect", Next: IsUnknown},
	{Course: opaque, DiesAt: "after effect", Effects: 1, Next: IsUnknown, Total: 1},
	{Course: opaque, DiesAt: "before complete", Effects: 1, Next: IsUnknown, Total: 1},
	{Course: opaque, DiesAt: "after complete", Effects: 1, Next: Replays, Total: 1},

	{Course: opaqueFails, DiesAt: "before abandon", Effects: 1, Next: IsUnknown, Total: 1},
	{Course: opaqueFails, DiesAt: "after abandon", Effects: 1, Next: IsUnknown, Total: 1},
	{Course: opaqueNot, DiesAt: "before release", Next: IsUnknown},
	{Course: opaqueNot, DiesAt: "after release", Next: Runs, Total: 1},

	{Course: rerun, DiesAt: "before claim", Next: Runs, Total: 1},
	{Course: rerun, DiesAt: "after claim", Next: Runs, Total: 1},
	{Course: rerun, DiesAt: "before start", Next: Runs, Total: 1},
	{Course: rerun, DiesAt: "after start", Next: Runs, Total: 1},
	{Course: rerun, DiesAt: "before effect", Next: Runs, Total: 1},
	{Course: rerun, DiesAt: "after effect", Effects: 1, Next: Runs, Total: 2},
	{Course: rerun, DiesAt: "before complete", Effects: 1, Next: Runs, Total: 2},
	{Course: rerun, DiesAt: "after complete", Effects: 1, Next: Replays, Total: 1},
	{Course: rerunFails, DiesAt: "before abandon", Effects: 1, Next: Runs, Total: 2},
	{Course: rerunFails, DiesAt: "after abandon", Effects: 1, Next: Runs, Total: 2},

	{Course: stepped, DiesAt: "before claim", Next: Runs, Total: 2},
	{Course: stepped, DiesAt: "after claim", Next: Runs, Total: 2},
	{Course: stepped, DiesAt: "before start", Next: Runs, Total: 2},
	{Course: stepped, DiesAt: "after start", Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `before effect "reservar"`, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `after effect "reservar"`, Effects: 1, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `before checkpoint "reservar"`, Effects: 1, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `after checkpoint "reservar"`, Effects: 1, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `before effect "cobrar"`, Effects: 1, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `after effect "cobrar"`, Effects: 2, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `before checkpoint "cobrar"`, Effects: 2, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: `after checkpoint "cobrar"`, Effects: 2, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: "before complete", Effects: 2, Next: Runs, Total: 2},
	{Course: stepped, DiesAt: "after complete", Effects: 2, Next: Replays, Total: 2},
	{Course: steppedNot, DiesAt: "before release", Next: Runs, Total: 2},
	{Course: steppedNot, DiesAt: "after release", Next: Runs, Total: 2},

	{Course: noKeys, DiesAt: "before claim", Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "after claim", Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "before start", Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "after start", Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "before " + sent("reservar"), Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "after " + sent("reservar"), Next: IsUnknown},
	{Course: noKeys, DiesAt: `before effect "reservar"`, Next: IsUnknown},
	{Course: noKeys, DiesAt: `after effect "reservar"`, Effects: 1, Next: IsUnknown, Total: 1},
	{Course: noKeys, DiesAt: `before checkpoint "reservar"`, Effects: 1, Next: IsUnknown, Total: 1},
	{Course: noKeys, DiesAt: `after checkpoint "reservar"`, Effects: 1, Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "before " + sent("cobrar"), Effects: 1, Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "after " + sent("cobrar"), Effects: 1, Next: IsUnknown, Total: 1},
	{Course: noKeys, DiesAt: `before effect "cobrar"`, Effects: 1, Next: IsUnknown, Total: 1},
	{Course: noKeys, DiesAt: `after effect "cobrar"`, Effects: 2, Next: IsUnknown, Total: 2},
	{Course: noKeys, DiesAt: `before checkpoint "cobrar"`, Effects: 2, Next: IsUnknown, Total: 2},
	{Course: noKeys, DiesAt: `after checkpoint "cobrar"`, Effects: 2, Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "before complete", Effects: 2, Next: Runs, Total: 2},
	{Course: noKeys, DiesAt: "after complete", Effects: 2, Next: Replays, Total: 2},
}

// Courses returns each course of the table once.
func Courses() []Course {
	var all []Course
	for _, row := range Rows {
		if !slices.Contains(all, row.Course) {
			all = append(all, row.Course)
		}
	}
	return all
}

// Lacks names a line that a living process came to on the course and that the
// table does not have: a store call that somebody has added. A course that ends
// otherwise has the lines before its end in the course of its policy.
func (c Course) Lacks(lines []string) string {
	for _, line := range lines {
		known := slices.ContainsFunc(Rows, func(row Row) bool {
			return row.DiesAt == line && row.Policy == c.Policy && row.NoKeys == c.NoKeys &&
				(row.Ends == c.Ends || row.Ends == Completes)
		})
		if !known {
			return line
		}
	}
	return ""
}

// CourseOf returns the course of that name.
func CourseOf(name string) Course {
	for _, row := range Rows {
		if row.Name == name {
			return row.Course
		}
	}
	panic("umavez: killtable: no such course: " + name)
}

// Want is what must follow over a store that can tell claimed from started, or
// that cannot.
func (row Row) Want(tells bool) (next Outcome, total int) {
	if tells && row.Claimed {
		return Runs, row.Vacant
	}
	return row.Next, row.Total
}

// OutcomeOf names what an attempt came to; anything else is its error's text.
func OutcomeOf(res umavez.Result[string], err error) Outcome {
	unknown, isUnknown := errors.AsType[*umavez.OutcomeUnknownError](err)
	broken, isBroken := errors.AsType[*umavez.StepError](err)
	switch {
	case isUnknown && unknown.Record.State == umavez.Lost, isBroken && broken.Reason == umavez.ReasonStepInDoubt:
		return IsUnknown
	case err != nil:
		return Outcome(err.Error())
	case res.Value != answer:
		return Outcome(fmt.Sprintf("the answer %q", res.Value))
	case res.Replayed:
		return Replays
	}
	return Runs
}

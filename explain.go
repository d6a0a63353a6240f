package umavez

import (
	"fmt"
	"strings"
	"time"
)

// Explain says in English why the record stands where it does, and what there is
// to do about it, for operators: a few sentences each, without secrets.
func (r *Record) Explain() (why, whatToDo string) {
	switch r.State {
	case Vacant:
		why, whatToDo = "Nobody holds the key: it was never used, was given back, or its record is over.",
			"Nothing. The next request with the key runs."
	case Running:
		why = fmt.Sprintf("An attempt holds the key; its lease is good for another %v.", rough(r.LeaseLeft))
		whatToDo = "Wait: it ends, or its lease does. A running record cannot be settled."
	case Lost:
		why, whatToDo = r.explainLost()
	case Done:
		why, whatToDo = "The operation is done, and its answer is kept.", "Nothing. To drop the answer before its time, forget the key."
		if r.Settled {
			why = "The operation was settled as one that happened, and the answer that it was settled with is kept."
		}
	case Expired:
		why = "The operation is done, and its answer is over or was forgotten. A tombstone stands in its place."
		whatToDo = "Nothing. A late retry is refused; its client needs a new key for a new operation."
	default:
		why, whatToDo = "The record is in a state that this release does not know.", "Use the release that wrote it."
	}
	if r.Unreadable != nil {
		why += " Some of what the record holds cannot be opened with the keys at hand, and so is not used: neither given again nor gone on from."
		whatToDo += " Give this process the key that sealed it: the error names it."
	}
	if r.Contradicted {
		why += " An attempt that was settled by others came back and says otherwise: see the audit trail."
		whatToDo += " Find out which of the two is true: the operation may have happened twice, or its answer be wrong."
	}
	return why, whatToDo
}

// explainLost: how it was lost, and what that means under its policy.
func (r *Record) explainLost() (why, whatToDo string) {
	why = r.Reason.explain()
	if r.Reason == ReasonStepInDoubt {
		if sent := r.inDoubt(); len(sent) > 0 {
			why += fmt.Sprintf(" It was about to send %s.", strings.Join(sent, ", "))
		}
	}
	if r.Last != nil {
		why += " The last answer that was seen of it is kept."
	}
	const settle = "Find out from the system that it calls. If it happened, settle the key as happened, with its answer. " +
		"If it did not, and nothing of it can be on its way any more, settle it as one that cannot happen."
	switch {
	case r.Reason == ReasonParked:
		why += " Nobody takes it over."
		whatToDo = settle
	case r.Reason == ReasonCodeChanged:
		why += " Nobody takes it over: what would run now might have happened under another name."
		whatToDo = settle + " Bring the code back that ran before, too, or later attempts end the same way."
	case r.Reason.Parks():
		why += " Nobody takes it over: the next attempt would do what this one must not."
		whatToDo = settle
	case !r.Policy.TakesOver():
		why += fmt.Sprintf(" The operation is %v, so it is not run again while nobody knows whether it happened.", r.Policy)
		whatToDo = settle
	default:
		why += fmt.Sprintf(" The operation is %v.", r.Policy)
		whatToDo = "Nothing. The next request with the key " + r.Policy.goesOn() +
			" If none comes, settle it as happened, or as one that cannot happen."
	}
	if r.HeldLeft > 0 {
		whatToDo = fmt.Sprintf("A reconciler is asking about it, or asks again when its pause is over, in %v at the latest; wait for that if you can. Otherwise: ",
			rough(r.HeldLeft)) + whatToDo
	}
	return why, whatToDo
}

// reasonTexts say what happened to the attempt.
var reasonTexts = map[Reason]string{
	ReasonKilled:      "The attempt's lease ran out and nothing was heard of it: its process died, was cut off from the store, or ran for too long.",
	ReasonPanic:       "The operation panicked.",
	ReasonBroken:      "The operation's answer broke off, or never came.",
	ReasonReset:       "The connection to the operation failed after bytes of the request were written.",
	ReasonTimeout:     "The operation did not answer in time.",
	ReasonStatus:      "The operation answered with a status that does not say whether it happened.",
	ReasonError:       "The operation returned an error that does not say whether it happened.",
	ReasonStepInDoubt: "A step may have been sent, and must not be sent again.",
	ReasonCodeChanged: "The steps that are kept are not those of the code that was to go on with them.",
	ReasonParked:      "It was set aside: by a person, or since a reconciler or completer gave up on it.",
	ReasonUnreadable:  "The process that took it over could not open what is kept of its steps, and gave it up again.",
	ReasonSettled:     "The attempt before was settled as one that cannot happen any more; the steps that are kept did happen.",
}

func (r Reason) explain() string {
	if text, ok := reasonTexts[r]; ok {
		return text
	}
	return fmt.Sprintf("The attempt ended, and gave %q as the reason.", string(r))
}

// goesOn says what the next attempt does with a lost record.
func (p Policy) goesOn() string {
	switch p {
	case Stepped:
		return "resumes after the last kept step."
	case Atomic:
		return "runs it again: what was lost was rolled back."
	default:
		return "runs it again: its author declared that this is safe."
	}
}

// inDoubt are the steps that were noted before they were sent, and not kept.
func (r *Record) inDoubt() (names []string) {
	row := Row{Steps: r.Steps}
	for _, s := range r.Steps {
		if name, noted := strings.CutPrefix(s.Name, sentMark); noted && row.step(name) == nil {
			names = append(names, fmt.Sprintf("%q", name))
		}
	}
	return names
}

// rough rounds a duration to what a reader wants to know.
func rough(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(time.Second / 10)
	}
	return d.Round(time.Second)
}

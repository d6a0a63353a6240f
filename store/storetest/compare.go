package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/umavez/umavez"
)

// differ says in which fields two records differ, or "". Durations go on by
// themselves and are left out. Nil and empty bytes are the same here: the
// contract tells them apart in what is given to Abandon only.
func differ(got, want umavez.Record) string {
	var found []string
	field := func(name string, got, want any) {
		if got != want {
			found = append(found, fmt.Sprintf("%s is %v, want %v", name, got, want))
		}
	}
	data := func(name string, got, want []byte) {
		if !bytes.Equal(got, want) {
			found = append(found, fmt.Sprintf("%s is %s, want %s", name, cut(got), cut(want)))
		}
	}
	field("State", got.State, want.State)
	if got.State == umavez.Vacant || want.State == umavez.Vacant {
		// What else there was of a vacant key is the store's own affair.
		return strings.Join(found, "")
	}
	field("Policy", got.Policy, want.Policy)
	field("Route", got.Route, want.Route)
	field("Fingerprint", got.Fingerprint, want.Fingerprint)
	field("Attempt", got.Attempt, want.Attempt)
	field("Fence", got.Fence, want.Fence)
	field("Tries", got.Tries, want.Tries)
	field("Reason", got.Reason, want.Reason)
	field("Settled", got.Settled, want.Settled)
	if !slices.EqualFunc(got.Steps, want.Steps, sameStep) {
		field("Steps", fmt.Sprintf("%q", got.Steps), fmt.Sprintf("%q", want.Steps))
	}
	data("Answer", got.Answer, want.Answer)
	data("Last", got.Last, want.Last)
	data("Request", got.Request, want.Request)
	return strings.Join(found, "; ")
}

func sameStep(a, b umavez.KeptStep) bool { return a.Name == b.Name && bytes.Equal(a.Result, b.Result) }

// brief is a record in a line.
func brief(rec umavez.Record) string {
	return fmt.Sprintf("{%v %v attempt %.8s fence %d tries %d reason %q steps %d answer %s last %s lease left %v}",
		rec.State, rec.Policy, rec.Attempt, rec.Fence, rec.Tries, rec.Reason,
		len(rec.Steps), cut(rec.Answer), cut(rec.Last), rec.LeaseLeft)
}

// cut shows bytes, and of many only the first.
func cut(b []byte) string {
	const most = 40
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
}

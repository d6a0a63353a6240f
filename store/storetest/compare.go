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
	field("Namespace", got.Namespace, want.Namespace)
	field("Scope", got.Scope, want.Scope)
	field("Route", got.Route, want.Route)
	field("Label", got.Label, want.Label)
	field("Fingerprint", got.Fingerprint, want.Fingerprint)
	field("Attempt", got.Attempt, want.Attempt)
	field("Fence", got.Fence, want.Fence)
	field("Tries", got.Tries, want.Tries)
	field("Reason", got.Reason, want.Reason)
	field("Settled", got.Settled, want.Settled)
	field("Contradicted", got.Contradicted, want.Contradicted)
	field("being held", got.HeldLeft > 0, want.HeldLeft > 0)
	if !slices.EqualFunc(got.Steps, want.Steps, sameStep) {
		field("Steps", fmt.Sprintf("%q", got.Steps), fmt.Sprintf("%q", want.Steps))
	}
	data("Answer", got.Answer, want.Answer)
	data("Last", got.Last, want.Last)
	data("Request", got.Request, want.Request)
	return strings.Join(found, "; ")
}

func sameStep(a, b umavez.KeptStep) bool { return a.Name == b.Name && bytes.Equal(a.Result, b.Result) }

// differTrails says how two audit trails differ, or "". How long ago an entry was
// made goes on by itself. What a contradiction says is the store's own wording,
// and must name the attempt.
func differTrails(got, want []umavez.AuditEntry) string {
	if len(got) != len(want) {
		return fmt.Sprintf("the audit trail has %d entries, want %d: %+v", len(got), len(want), got)
	}
	for i, g := range got {
		w := want[i]
		g.Ago, w.Ago = 0, 0
		if w.Action == umavez.ActionContradicted {
			if _, attempt, _ := strings.Cut(w.Who, " "); !strings.Contains(g.Who, attempt) || g.Why == "" {
				return fmt.Sprintf("entry %d of the audit trail is by %q and says %q; it must name %q, and say what", i, g.Who, g.Why, w.Who)
			}
			g.Who, g.Why, w.Who, w.Why = "", "", "", ""
		}
		if g != w {
			return fmt.Sprintf("entry %d of the audit trail is %+v, want %+v", i, g, w)
		}
	}
	return ""
}

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

package keys

import (
	"math"
	"time"

	"github.com/umavez/umavez"
)

// The documents of this file are a contract with scripts: fields may be added,
// and none changes its meaning or goes. Durations are seconds, with fractions.
// Nothing in them is a secret of a caller, unless the service keeps names: then
// the label is one.

// Key is a record as list shows it: a JSON object a line.
type Key struct {
	// ID names the record and, behind the dot, the attempt that was looked at.
	ID string `json:"id"`
	// State is unknown, lost, running, done or expired. Lost is what the next
	// attempt takes over; what nobody takes over is unknown.
	State string `json:"state"`
	// Reason is why it is unknown or lost; else empty.
	Reason    string `json:"reason"`
	Namespace string `json:"namespace"`
	Scope     string `json:"scope"`
	// Label is the key in words, where the service keeps names.
	Label  string `json:"label"`
	Route  string `json:"route"`
	Policy string `json:"policy"`
	Tries  int    `json:"tries"`
	// Settled: a reconciler or a person gave the answer.
	Settled bool `json:"settled"`
	// Contradicted: an attempt whose outcome was settled says otherwise.
	Contradicted bool `json:"contradicted"`
	// Age is since the first claim, Since since the present state began.
	Age   float64 `json:"age_seconds"`
	Since float64 `json:"since_seconds"`
	// Held is for how long a reconciler has it to itself, asking or pausing before
	// it asks again; Lease is what is left of a running one's, Retain of a done
	// one's answer.
	Held   float64 `json:"held_seconds"`
	Lease  float64 `json:"lease_seconds"`
	Retain float64 `json:"retain_seconds"`
}

// Page is a part of a list.
type Page struct {
	Keys []Key `json:"keys"`
	// Next is what to set Filter.After to; empty: there are no more.
	Next string `json:"next"`
}

// Shown is all that can be told of a key.
type Shown struct {
	Key
	// Why says why it stands where it stands, and WhatToDo what an operator can
	// do about it.
	Why      string `json:"why"`
	WhatToDo string `json:"what_to_do"`
	// Steps are the steps that it holds, by name.
	Steps []string `json:"steps"`
	// LastStatus is the status of the last HTTP answer that was seen of a lost
	// attempt, AnswerStatus that of the answer that everybody gets. 0: none.
	LastStatus   int `json:"last_status"`
	AnswerStatus int `json:"answer_status"`
	// LastBytes and AnswerBytes are how long they are in the store. Without a
	// status they are no HTTP answers, or Sealed.
	LastBytes   int `json:"last_bytes"`
	AnswerBytes int `json:"answer_bytes"`
	// Sealed: what it holds is sealed, and whoever answers has no key ring.
	Sealed bool `json:"sealed"`
	// Request: the record holds the request, for a completer.
	Request bool `json:"request"`
	// Unreadable says what of it could not be opened with this key ring; else
	// empty.
	Unreadable string `json:"unreadable"`
	// Trail is the audit trail, the oldest entry first.
	Trail []Entry `json:"trail"`
}

// Entry is one change in the audit trail.
type Entry struct {
	Action string `json:"action"`
	Who    string `json:"who"`
	Why    string `json:"why"`
	Fence  int64  `json:"fence"`
	// Before and After are states as the store has them: what Key calls unknown
	// is lost here.
	Before       string `json:"before"`
	BeforeReason string `json:"before_reason"`
	After        string `json:"after"`
	AfterReason  string `json:"after_reason"`
	// Ago is by the store's clock; At is the same by the clock of the process
	// that answers, in RFC 3339.
	Ago float64 `json:"ago_seconds"`
	At  string  `json:"at"`
}

// DefaultNamespace is that of services which name none.
const DefaultNamespace = "default"

// Names are what a client sent, and who it is. Principal is in the parts that
// the namespace's recipe has: none, one for header and auth, and two for jwt
// (issuer and caller) and mtls (subject and issuer).
type Names struct {
	// Namespace may be empty: DefaultNamespace.
	Namespace string   `json:"namespace"`
	Principal []string `json:"principal"`
	// Key may be empty: then only the scope is wanted.
	Key string `json:"key"`
}

// Found is what they name in the store.
type Found struct {
	ID    string `json:"id"`
	Scope string `json:"scope"`
}

// Change is what an operator does to a key.
type Change struct {
	// ID is with the fence.
	ID string `json:"id"`
	// Action is happened, cannot-happen, park or forget.
	Action string `json:"action"`
	// Settlement names this change, so that it can be sent again after a lost
	// reply: 32 hexadecimal digits. Empty: drawn here, and not to be repeated.
	Settlement string `json:"settlement,omitempty"`
	Who        string `json:"who"`
	Reason     string `json:"reason"`
	// Force says that it cannot happen before the time to be quiet is over.
	Force bool `json:"force,omitempty"`
	// Status, Header and Body are the answer of what happened. Header has a
	// "Name: value" each.
	Status int      `json:"status,omitempty"`
	Header []string `json:"header,omitempty"`
	Body   []byte   `json:"body,omitempty"`
}

// Changed is where a change has led. The reasons are those of unknown and lost.
type Changed struct {
	ID           string `json:"id"`
	Before       string `json:"before"`
	BeforeReason string `json:"before_reason"`
	After        string `json:"after"`
	AfterReason  string `json:"after_reason"`
	// Quiet is how long after the loss this change had to wait. 0: not at all.
	Quiet float64 `json:"quiet_seconds"`
}

// Purged is what a purge has dropped or shortened.
type Purged struct {
	Rows int `json:"rows"`
	// More: the purge has paused, and there is more to do.
	More bool `json:"more"`
}

// stateOf is the state in the words of this package.
func stateOf(rec *umavez.Record) string {
	if rec.Unknown() {
		return StateUnknown
	}
	return rec.State.String()
}

// keyOf is the document of a record.
func keyOf(id umavez.ID, rec *umavez.Record) Key {
	k := Key{
		ID: umavez.Ref{ID: id, Fence: rec.Fence}.String(), State: stateOf(rec), Reason: string(rec.Reason),
		Namespace: rec.Namespace, Label: rec.Label,
		Route: rec.Route, Policy: rec.Policy.String(), Tries: rec.Tries,
		Settled: rec.Settled, Contradicted: rec.Contradicted,
		Age: seconds(rec.Age), Since: seconds(rec.Since), Held: seconds(rec.HeldLeft),
		Lease: seconds(rec.LeaseLeft), Retain: seconds(rec.RetainLeft),
	}
	if rec.Scope != (umavez.ScopeID{}) {
		k.Scope = rec.Scope.String()
	}
	return k
}

// entryOf is the document of an entry of the trail.
func entryOf(e *umavez.AuditEntry, now time.Time) Entry {
	return Entry{
		Action: string(e.Action), Who: e.Who, Why: e.Why, Fence: int64(e.Fence),
		Before: e.Before.String(), BeforeReason: string(e.BeforeReason),
		After: e.After.String(), AfterReason: string(e.AfterReason),
		Ago: seconds(e.Ago), At: now.Add(-e.Ago).UTC().Format(time.RFC3339),
	}
}

// seconds keeps the milliseconds.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// duration is the way back.
func duration(s float64) time.Duration {
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}

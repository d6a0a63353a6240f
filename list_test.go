package umavez

import (
	"testing"
	"time"
)

// TestQueryFits: a record must fit all that is asked for.
func TestQueryFits(t *testing.T) {
	rec := Record{
		State: Lost, Policy: Stepped, Reason: ReasonReset, Namespace: "loja", Scope: ScopeID{1}, Route: "POST /a", Age: time.Hour,
	}
	for name, c := range map[string]struct {
		q    Query
		want bool
	}{
		"nothing in particular": {Query{}, true},
		"all of it": {Query{
			States: []State{Done, Lost}, Reason: ReasonReset, Namespace: "loja", Scope: ScopeID{1}, Route: "POST /a", MinAge: time.Hour,
		}, true},
		"another state":          {Query{States: []State{Done, Running}}, false},
		"another reason":         {Query{Reason: ReasonKilled}, false},
		"another namespace":      {Query{Namespace: "Loja"}, false},
		"another scope":          {Query{Scope: ScopeID{2}}, false},
		"another route":          {Query{Route: "POST /"}, false},
		"older ones":             {Query{MinAge: time.Hour + 1}, false},
		"unknown, and it is not": {Query{Unknown: true}, false},
		"its ID and a limit":     {Query{After: ID{1}, Limit: 1}, true}, // are the store's to look at
	} {
		if got := c.q.Fits(&rec); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	vacant := Record{State: Vacant}
	if q := (Query{States: []State{Vacant}}); q.Fits(&vacant) {
		t.Error("a vacant key is listed when it is asked for")
	}
	if q := (Query{}); q.Fits(&vacant) {
		t.Error("a vacant key is listed")
	}
}

// TestUnknown: lost, and taken over by nobody: of an opaque operation, or for a
// reason that parks.
func TestUnknown(t *testing.T) {
	for state := Vacant; state <= Expired; state++ {
		for policy := Opaque; policy <= Atomic; policy++ {
			for _, reason := range declaredReasons(t) {
				rec := Record{State: state, Policy: policy, Reason: reason}
				parks := reason == ReasonParked || reason == ReasonStepInDoubt || reason == ReasonCodeChanged
				want := state == Lost && (policy == Opaque || parks)
				if q := (Query{Unknown: true}); rec.Unknown() != want || q.Fits(&rec) != want {
					t.Errorf("%v, %v, %q: unknown %v, want %v", state, policy, reason, rec.Unknown(), want)
				}
			}
		}
	}
}

// TestQueryUnsettled: a store may answer from an index of running and lost
// records exactly when no other can fit.
func TestQueryUnsettled(t *testing.T) {
	for _, q := range []Query{
		{},
		{States: []State{Lost}},
		{States: []State{Running, Lost}},
		{States: []State{Lost, Done}},
		{States: []State{Expired}},
		{Unknown: true},
		{Reason: ReasonKilled},
		{Namespace: "n"},
		{States: []State{Done}, Reason: ReasonKilled},
	} {
		others := false
		for _, state := range []State{Done, Expired} {
			rec := Record{State: state, Namespace: "n"} // a record has a reason when it is lost
			others = others || q.Fits(&rec)
		}
		if q.Unsettled() && others {
			t.Errorf("%+v wants a finished record, and says that it does not", q)
		}
		if !q.Unsettled() && !others {
			t.Errorf("%+v wants no finished record, and does not say so", q)
		}
	}
}

// TestBrief: what may be large is left out, also of the steps, and the record
// itself stays as it was.
func TestBrief(t *testing.T) {
	whole := func() Record {
		return Record{
			State: Lost, Fence: 7, Label: "l", Steps: []KeptStep{{"a", []byte("1")}, {"b", []byte("2")}},
			Answer: []byte("a"), Last: []byte("l"), Request: []byte("r"), Unreadable: ErrUnreadable,
		}
	}
	rec := whole()
	want := Record{State: Lost, Fence: 7, Label: "l", Steps: []KeptStep{{Name: "a"}, {Name: "b"}}, Unreadable: ErrUnreadable}
	if got := rec.Brief(); !sameRecord(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !sameRecord(rec, whole()) {
		t.Errorf("the record itself became %+v", rec)
	}
	if got := (Record{State: Done}).Brief(); !sameRecord(got, Record{State: Done}) {
		t.Errorf("of a record with nothing in it: %+v", got)
	}
}

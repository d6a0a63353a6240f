package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/umavez/umavez"
)

// recordRules say how truly a record tells of what was given to the store.
var recordRules = []rule{
	{
		name:  "record/bytes come back as they went in",
		why:   "answers, results, words and requests are bytes: a store that trims, folds or decodes them replays another answer than the first one",
		check: recordBytes,
	},
	{
		name:  "record/route and fingerprint come back whole",
		why:   "operators find a key by its route, and a fingerprint that lost a bit turns every retry into a reused key",
		check: recordFields,
	},
	{
		name:  "record/durations are true",
		why:   "readers go by durations alone, since only the store knows its clock: how long a key is lost decides whether it may be settled",
		check: recordDurations,
	},
	{
		name:  "record/the store's clock decides",
		why:   "leases end by the store's clock; by a process's clock, the one that goes fast would take keys from the others",
		check: recordStoreClock,
	},
	{
		name:  "record/microseconds",
		why:   "durations are kept with microsecond precision: a lease that is rounded up outlives what its owner was promised, one rounded down ends early",
		check: recordMicroseconds,
	},
	{
		name:  "record/vacant keys are vacant",
		why:   "of a key that nobody holds, Get returns a record whose state is Vacant, and no error, and keeps nothing",
		check: recordVacant,
	},
}

// awkward are bytes that a text column, a C string or a codec would change.
func awkward() [][]byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return [][]byte{
		nil,
		{},
		{0},
		[]byte(" "), []byte("a\x00b"), []byte("trailing \r\n\t "), []byte("\xff\xfe\xfd"),
		[]byte("\ufeffbom"), []byte(`'";--\`), []byte("{json}"), []byte("null"), every,
		bytes.Repeat(every, 4096), // 1 MiB
	}
}

func recordBytes(f *fixture) {
	for _, b := range awkward() {
		req := f.request(umavez.Stepped)
		req.Request = b
		h := f.claim(f.key(), req)
		f.answers("checkpoint", f.store.Checkpoint(f.Context(), h.Lease, "s", b), nil)
		f.answers("last word", f.store.Checkpoint(f.Context(), h.Lease, umavez.LastWord, b), nil)
		rec := f.get(h.ID)
		if !bytes.Equal(rec.Request, b) || !bytes.Equal(rec.Steps[0].Result, b) || !bytes.Equal(rec.Last, b) {
			f.Fatalf("%s came back as request %s, step %s, last word %s", cut(b), cut(rec.Request), cut(rec.Steps[0].Result), cut(rec.Last))
		}
		f.answers("complete", f.store.Complete(f.Context(), h.Lease, b, kept()), nil)
		if got := f.get(h.ID).Answer; !bytes.Equal(got, b) {
			f.Fatalf("the answer %s came back as %s", cut(b), cut(got))
		}
		if got := f.refused(h.ID, h.over(0)).Answer; !bytes.Equal(got, b) {
			f.Fatalf("the answer %s was replayed as %s", cut(b), cut(got))
		}
	}
}

func recordFields(f *fixture) {
	routes := []string{"", " ", "POST /a ", "post /A", "PÓST /ção\x00\xff", strings.Repeat("r", umavez.MaxRoute)}
	for i, route := range routes {
		req := f.request(umavez.Opaque)
		req.Route = route
		req.Fingerprint = umavez.Fingerprint{Recipe: 1<<32 - 1 - uint32(i)}
		for j := range req.Fingerprint.Sum {
			req.Fingerprint.Sum[j] = byte(255 - i - j)
		}
		for j := range req.Fingerprint.Parts {
			req.Fingerprint.Parts[j] = 1<<32 - 1 - uint32(j)
		}
		h := f.claim(f.key(), req)
		if rec := f.get(h.ID); rec.Route != route || rec.Fingerprint != req.Fingerprint {
			f.Fatalf("the route %q and fingerprint %v came back as %q and %v", route, req.Fingerprint, rec.Route, rec.Fingerprint)
		}
	}
	var none umavez.ClaimRequest // what is told apart by its key alone has the zero fingerprint
	none.Attempt, none.Lease = umavez.NewAttemptID(), long
	h := f.claim(f.key(), none)
	if rec := f.get(h.ID); rec.Fingerprint != none.Fingerprint || len(rec.Request) != 0 {
		f.Fatalf("a claim that says nothing came back as %v", brief(rec))
	}
}

func recordDurations(f *fixture) {
	d := f.short()
	h := f.running(umavez.Opaque)
	f.pass(2 * d)
	rec := f.is(h.ID, umavez.Running)
	f.atLeast("the age of a running record", rec.Age, 2*d)
	f.atLeast("the time that it runs", rec.Since, 2*d)
	if rec.LeaseLeft > long-2*d {
		f.Fatalf("%v of the lease is left, want at most %v", rec.LeaseLeft, long-2*d)
	}

	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonError, nil), nil)
	f.pass(d)
	rec = f.is(h.ID, umavez.Lost)
	f.atLeast("the age of an abandoned record", rec.Age, 3*d)
	f.atLeast("the time since the abandon", rec.Since, d)
	if rec.LeaseLeft != 0 {
		f.Fatalf("%v of the lease of a lost record is left", rec.LeaseLeft)
	}

	f.answers("complete", f.store.Complete(f.Context(), h.Lease, nil, kept()), nil)
	if rec = f.is(h.ID, umavez.Done); rec.Since > rec.Age-3*d {
		f.Fatalf("the record is done for %v at the age of %v, want the completion to be %v younger", rec.Since, rec.Age, 3*d)
	}
	f.pass(d)
	rec = f.is(h.ID, umavez.Done)
	f.atLeast("the age of a done record", rec.Age, 4*d)
	f.atLeast("the time since the completion", rec.Since, d)
	if rec.RetainLeft > long-d {
		f.Fatalf("%v of the retention is left, want at most %v", rec.RetainLeft, long-d)
	}
	f.lossCountsFromLease(d)
}

// lossCountsFromLease: a record is lost from the end of its lease on, not from
// the moment when somebody noticed; but when its owner abandons it after that, from
// then on: the owner was at work until that moment, and may have sent something.
func (f *fixture) lossCountsFromLease(d time.Duration) {
	f.Helper()
	h := f.lost(umavez.Opaque) // its lease was d
	f.pass(2 * d)
	rec := f.get(h.ID)
	f.atLeast("the time since the lease ran out", rec.Since, 2*d)
	if rec.Since > rec.Age-d {
		f.Fatalf("the record is lost for %v at the age of %v, want the loss to be %v younger", rec.Since, rec.Age, d)
	}
	f.answers("abandon", f.store.Abandon(f.Context(), h.Lease, umavez.ReasonError, nil), nil)
	if rec = f.get(h.ID); rec.Since > slack {
		f.Fatalf("the record is lost for %v after a late abandon, want the loss to count from the abandon", rec.Since)
	}
}

func (f *fixture) atLeast(what string, got, want time.Duration) {
	f.Helper()
	if got < want || got > want+slack {
		f.Fatalf("%s is %v, want %v or a little more", what, got, want)
	}
}

func recordStoreClock(f *fixture) {
	if f.opened.Advance == nil {
		f.Skipf("the store's clock cannot be moved apart from this process's")
	}
	h := f.running(umavez.Rerunnable)
	f.opened.Advance(long - time.Minute)
	f.refused(h.ID, h.over(h.Fence))
	f.is(h.ID, umavez.Running)
	f.opened.Advance(2 * time.Minute)
	f.is(h.ID, umavez.Lost)
	f.claim(h.ID, h.over(h.Fence))
}

// recordMicroseconds looks at a clock that stands still between two calls. It is
// skipped where the clock runs: there a microsecond is over before the next call.
func recordMicroseconds(f *fixture) {
	if f.opened.Advance == nil {
		f.Skipf("the store's clock runs by itself")
	}
	const d = time.Hour + time.Microsecond
	req := f.request(umavez.Opaque)
	req.Lease = d
	h := f.claim(f.key(), req)
	left := f.get(h.ID).LeaseLeft
	if f.get(h.ID).LeaseLeft != left {
		f.Skipf("the store's clock runs by itself between two moves")
	}
	f.answers("complete", f.store.Complete(f.Context(), h.Lease, nil, umavez.Retention{Retain: d}), nil)
	if retain := f.get(h.ID).RetainLeft; left != d || retain != d {
		f.Fatalf("a lease and a retention of %v came back as %v and %v", d, left, retain)
	}
}

func recordVacant(f *fixture) {
	id := f.key()
	for range 2 {
		f.is(id, umavez.Vacant)
	}
	// Get has kept nothing: the first claim is a first one.
	if rec := f.get(f.claim(id, f.request(umavez.Opaque)).ID); rec.Tries != 1 {
		f.Fatalf("the first claim after a Get is try %d", rec.Tries)
	}
}

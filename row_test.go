package umavez

import (
	"fmt"
	"testing"
	"time"
)

// TestLossCountsFromTheEndOfTheLease, or from the end that its owner told: until
// then it was at work, lease or no lease.
func TestLossCountsFromTheEndOfTheLease(t *testing.T) {
	row, end := running(mine, Opaque, lifeNow), lifeNow.Add(time.Minute)
	if rec := row.Record(end); rec.Since != time.Minute || rec.Reason != ReasonKilled {
		t.Errorf("a minute after its lease the record is lost for %v, reason %q", rec.Since, rec.Reason)
	}
	late, _ := Next(row, lifeNow.Add(time.Second), Event{Kind: EventAbandon, Attempt: mine})
	if rec := late.Record(end); rec.Since != time.Minute-time.Second || rec.Reason != ReasonError {
		t.Errorf("abandoned late, the record is lost for %v, reason %q", rec.Since, rec.Reason)
	}
	early, _ := Next(running(mine, Opaque, end), lifeNow, Event{Kind: EventAbandon, Attempt: mine, Reason: ReasonPanic})
	if rec := early.Record(end); rec.Since != time.Minute || rec.Reason != ReasonPanic {
		t.Errorf("abandoned early, the record is lost for %v, reason %q", rec.Since, rec.Reason)
	}
}

// TestRecord: which durations and payloads are told in which state.
func TestRecord(t *testing.T) {
	now := lifeNow
	for _, c := range []struct {
		row  Row
		want Record
	}{
		{Row{}, Record{}},
		{lifeRows["released by me"], Record{Fence: lifeFence}},
		{lifeRows["gone, by me"], Record{Fence: lifeFence}},
		{
			running(mine, Stepped, now+5),
			Record{State: Running, Policy: Stepped, Request: []byte("q"), Since: now.Sub(2), LeaseLeft: 5 * time.Microsecond},
		},
		{finished(mine, now+5, now+9), Record{State: Done, Answer: []byte("a"), Since: now.Sub(2), RetainLeft: 5 * time.Microsecond}},
		{finished(mine, now-5, now+9), Record{State: Expired, Since: 5 * time.Microsecond}},
		{
			contradicted(held(abandoned(running(mine, Opaque, now-5)))),
			Record{State: Lost, Reason: ReasonReset, Last: []byte("502"), Request: []byte("q"), Since: 5 * time.Microsecond, HeldLeft: time.Microsecond, Contradicted: true},
		},
		{
			settled(finished(mine, now+5, now+9), mine, other),
			Record{State: Done, Answer: []byte("a"), Settled: true, Since: now.Sub(2), RetainLeft: 5 * time.Microsecond},
		},
	} {
		if c.want.State != Vacant {
			c.want.Route, c.want.Attempt, c.want.Fence, c.want.Tries, c.want.Age = "r", mine, lifeFence, 1, now.Sub(1)
		}
		if got := c.row.Record(now); !sameRecord(got, c.want) {
			t.Errorf("got  %+v\nwant %+v", got, c.want)
		}
	}
}

// TestPurge: what may go, and when.
func TestPurge(t *testing.T) {
	for _, c := range []struct {
		name         string
		row          Row
		at           Instant
		keep, answer bool
	}{
		{"never seen", Row{}, lifeNow, false, false},
		{"released, in its time", Row{Until: lifeNow + 1, Attempt: mine}, lifeNow, true, false},
		{"released, over", Row{Until: lifeNow, Attempt: mine}, lifeNow, false, false},
		{"lost for long", running(mine, Opaque, 0), lifeNow + 1<<50, true, false},
		{"abandoned for long", abandoned(running(mine, Rerunnable, 0)), lifeNow + 1<<50, true, false},
		{"done", finished(mine, lifeNow+1, lifeNow+1), lifeNow, true, true},
		{"expired", finished(mine, lifeNow, lifeNow+1), lifeNow, true, false},
		{"gone", finished(mine, lifeNow, lifeNow), lifeNow, false, false},
		{"settled as one that cannot happen", overruled(Row{Until: lifeNow + 1, Attempt: mine}, mine, other), lifeNow, true, false},
		{"the same, over", overruled(Row{Until: lifeNow, Attempt: mine}, mine, other), lifeNow, false, false},
		{"cleared", cleared(mine, other, lifeFence), lifeNow + 1<<50, true, false},
		{"parked", parked(running(mine, Opaque, 0), other), lifeNow + 1<<50, true, false},
		{"forgotten", forgotten(finished(mine, lifeNow, lifeNow+1), other), lifeNow, true, false},
		{"no tombstone, in retention", finished(mine, lifeNow+1, lifeNow-1), lifeNow, true, true},
	} {
		next, keep := c.row.Purge(c.at)
		if keep != c.keep || keep && (next.Answer != nil) != c.answer {
			t.Errorf("%s: keep %v with answer %q, want %v with one %v", c.name, keep, next.Answer, c.keep, c.answer)
		}
	}
}

// sameRecord compares all that records hold, and errors by identity.
func sameRecord(a, b Record) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

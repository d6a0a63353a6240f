package memstore

import (
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// TestTrailsLeaveNothing: what is over takes no room, also where entries of
// several records were made in turns.
func TestTrailsLeaveNothing(t *testing.T) {
	var tr trails
	now := umavez.InstantOf(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	for i := range 6 {
		tr.add(umavez.ID{byte(i % 2)}, now.Add(time.Duration(i)*time.Hour), umavez.AuditEntry{Who: string(rune('a' + i))})
	}
	for dropped := range 6 {
		over := now.Add(umavez.AuditKept + time.Duration(dropped)*time.Hour)
		if tr.purge(over - 1) {
			t.Fatalf("entry %d has gone before its time", dropped)
		}
		if !tr.purge(over) {
			t.Fatalf("entry %d stays", dropped)
		}
		if trail := tr.of[umavez.ID{byte(dropped % 2)}]; len(trail) != 2-dropped/2 || len(trail) > 0 && trail[0].entry.Who != string(rune('a'+dropped+2)) {
			t.Fatalf("after %d entries have gone the trail is %+v", dropped+1, trail)
		}
	}
	if len(tr.of) != 0 || len(tr.line) != 0 {
		t.Errorf("%d trails and %d places in line are left", len(tr.of), len(tr.line))
	}
}

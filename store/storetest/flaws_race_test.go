package storetest

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/umavez/umavez"
)

// partnerWait is how long a call waits for another one on its key: long enough
// for a machine that is busy with other things, since a call that goes on alone
// shows no flaw.
const partnerWait = 400 * time.Millisecond

// meeting lets a call on a key wait, between reading and writing, until another
// one has read the same; alone, for a moment only.
func meeting() func(umavez.ID, umavez.EventKind) {
	return meetingOf(func(_, _ umavez.EventKind) bool { return true })
}

// meetingOf does so for calls of kinds that meet.
func meetingOf(meet func(a, b umavez.EventKind) bool) func(umavez.ID, umavez.EventKind) {
	type call struct {
		kind umavez.EventKind
		met  chan struct{}
	}
	var mu sync.Mutex
	waiting := map[umavez.ID]call{}
	return func(id umavez.ID, kind umavez.EventKind) {
		mu.Lock()
		if other, ok := waiting[id]; ok && meet(kind, other.kind) {
			delete(waiting, id)
			mu.Unlock()
			close(other.met)
			return
		}
		mine := call{kind, make(chan struct{})}
		waiting[id] = mine
		mu.Unlock()
		moment := time.NewTimer(partnerWait)
		defer moment.Stop()
		select {
		case <-mine.met:
		case <-moment.C:
			mu.Lock()
			if waiting[id] == mine {
				delete(waiting, id)
			}
			mu.Unlock()
		}
	}
}

// meet is a bend whose calls of two kinds read and then write, and else do both
// at once.
func meet(one, two umavez.EventKind) func() bend {
	return func() bend {
		wait := meetingOf(func(a, b umavez.EventKind) bool { return a == one && b == two || a == two && b == one })
		return bend{between: func(id umavez.ID, kind umavez.EventKind) {
			if kind == one || kind == two {
				wait(id, kind)
			}
		}}
	}
}

// deleteLater empties a released key a second time, when somebody else has
// claimed it, or after a moment.
func deleteLater(s *bent, id umavez.ID, ev umavez.Event) {
	if ev.Kind != umavez.EventRelease {
		return
	}
	moment, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
	defer cancel()
	for claimed := false; !claimed && moment.Err() == nil; runtime.Gosched() {
		s.mu.Lock()
		claimed = s.rows[id].Phase == umavez.PhaseRunning
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, id)
}

// raceFlaws are of stores that are right as long as one call comes at a time.
var raceFlaws = []flaw{
	{
		"a call reads and then writes", func() bend { return bend{between: meeting()} },
		[]string{
			"race/vacant key", "race/lost record", "race/released key", "race/many keys", "race/two answers",
			"race/complete against takeover", "race/heartbeat against takeover", "settings/concurrent callers agree",
			"race/two settlers", "race/settle against late complete", "race/settle against takeover", "race/hold by many",
		},
	},
	{
		"a settlement reads and then writes", meet(umavez.EventSettle, umavez.EventSettle),
		[]string{"race/two settlers"},
	},
	{
		"a settlement does not see the completion", meet(umavez.EventSettle, umavez.EventComplete),
		[]string{"race/settle against late complete"},
	},
	{
		"a settlement does not see the takeover", meet(umavez.EventSettle, umavez.EventClaim),
		[]string{"race/settle against takeover"},
	},
	{
		"a hold reads and then writes", meet(umavez.EventHold, umavez.EventHold),
		[]string{"race/hold by many"},
	},
	{
		"a release deletes the row it has emptied, whoever has it by then", func() bend { return bend{then: deleteLater} },
		[]string{"race/release against claim"},
	},
}

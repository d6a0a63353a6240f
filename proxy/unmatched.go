package proxy

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// unmatched counts requests with a key that match no route, and logs them once
// a minute with their paths: a mistyped route would otherwise show only when
// something happens twice. The key itself is never logged.
type unmatched struct {
	log   *slog.Logger
	total atomic.Int64

	mu     sync.Mutex
	paths  map[string]int64 // of the minute that runs
	others int64            // under further paths
	timer  *time.Timer      // not nil: a minute runs
	closed bool
}

const (
	unmatchedEvery = time.Minute
	// unmatchedPaths bounds what is remembered of a minute: a client that tries
	// out paths must not fill the memory or the log.
	unmatchedPaths = 32
	// unmatchedLength is how much of a path is logged.
	unmatchedLength = 128
)

// note counts a request. The first one is logged at once, the others of its
// minute together at the minute's end.
func (u *unmatched) note(method, path string) {
	u.total.Add(1)
	if len(path) > unmatchedLength {
		path = path[:unmatchedLength] + "…"
	}
	target := method + " " + path
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	if u.timer == nil {
		u.timer = time.AfterFunc(unmatchedEvery, u.minute)
		u.paths = make(map[string]int64)
		u.report(target, 1)
		return
	}
	if _, known := u.paths[target]; known || len(u.paths) < unmatchedPaths {
		u.paths[target]++
		return
	}
	u.others++
}

// minute ends a minute, and begins another one if anything was logged.
func (u *unmatched) minute() {
	u.mu.Lock()
	defer u.mu.Unlock()
	paths, others := u.paths, u.others
	u.paths, u.others = make(map[string]int64), 0
	if u.closed || len(paths) == 0 {
		u.timer = nil
		return
	}
	for target, count := range paths {
		u.report(target, count)
	}
	if others > 0 {
		u.report("other paths", others)
	}
	u.timer.Reset(unmatchedEvery)
}

func (u *unmatched) report(target string, count int64) {
	u.log.Warn("requests with an idempotency key match no route and are not protected",
		"request", target, "count", count)
}

func (u *unmatched) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.timer != nil {
		u.timer.Stop()
	}
}

//go:build linux

package sqlitestore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// BenchmarkListing lists 200,000 records, of which 1,000 are lost, while 8
// callers claim and complete keys. It prints how long a page of 1,000 takes, of
// all records and of the lost ones, and the callers' speed beside the list as a
// share of their speed without it, in turns.
func BenchmarkListing(b *testing.B) {
	const others, unsettled, callers = 200_000, 1000, 8
	onDisk(b)
	s := open(b, file(b), Options{})
	for i := 0; i < others; i += 4000 {
		fillWith(b, s, i, 4000)
	}
	keepRows(b, s, unsettled, func(_ int, now umavez.Instant) umavez.Row {
		return umavez.Row{Phase: umavez.PhaseRunning, Attempt: umavez.NewAttemptID(), Route: "POST /pagamentos", Until: now}
	})
	var alone, beside, pages, lostPages []time.Duration
	var next atomic.Uint64
	pairs := func() time.Duration {
		began := time.Now()
		claimAndComplete(b, s, &next, callers, callers*turn)
		return time.Since(began)
	}
	for b.Loop() {
		alone = append(alone, pairs())
		ctx, enough := context.WithCancel(context.Background())
		var lister sync.WaitGroup
		lister.Go(func() {
			all := umavez.Query{Limit: umavez.MaxPage}
			lost := umavez.Query{States: []umavez.State{umavez.Lost}, Limit: umavez.MaxPage}
			for ctx.Err() == nil {
				pages = append(pages, listPage(b, s, &all))
				lostPages = append(lostPages, listPage(b, s, &lost))
			}
		})
		beside = append(beside, pairs())
		enough()
		lister.Wait()
	}
	b.ReportMetric(float64(median(pages).Microseconds())/1000, "ms/page")
	b.ReportMetric(float64(median(lostPages).Microseconds())/1000, "ms/lost-page")
	b.ReportMetric(median(alone).Seconds()/median(beside).Seconds(), "claims-ratio")
}

// listPage reads the next page, or the first one after the last.
func listPage(b *testing.B, s *Store, q *umavez.Query) time.Duration {
	began := time.Now()
	page, err := s.List(context.Background(), *q)
	took := time.Since(began)
	if err != nil {
		b.Error(err)
	}
	q.After = umavez.ID{}
	if len(page) == q.Limit {
		q.After = page[len(page)-1].ID
	}
	return took
}

// BenchmarkRareRoute looks in 200,000 records for a route that none has.
func BenchmarkRareRoute(b *testing.B) {
	s := open(b, file(b), Options{})
	for i := 0; i < 200_000; i += 4000 {
		fillWith(b, s, i, 4000)
	}
	for b.Loop() {
		page, err := s.List(b.Context(), umavez.Query{Route: "rare", Limit: umavez.MaxPage})
		if err != nil || len(page) != 0 {
			b.Fatal(len(page), err)
		}
	}
}

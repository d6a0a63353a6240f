package sqlitestore

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// keepRows writes rows as they are, in one transaction, and returns them by ID.
func keepRows(t testing.TB, s *Store, n int, row func(i int, now umavez.Instant) umavez.Row) map[umavez.ID]umavez.Row {
	t.Helper()
	rows := map[umavez.ID]umavez.Row{}
	err := s.batches.Do(t.Context(), newTask("fill", func(tx *tx) error {
		tx.wrote = true
		for i := range n {
			id := idOf(fmt.Sprint("row ", i))
			rows[id] = row(i, tx.now)
			if _, err := tx.insert(&group{ops: []*op{{id: id}}, found: found{row: rows[id]}}); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// anyRow draws a row as settling, running and purging leave them.
func anyRow(rnd *rand.Rand, now umavez.Instant) umavez.Row {
	at := func() umavez.Instant { return now.Add(time.Duration(rnd.IntN(5)-2) * time.Hour) }
	row := umavez.Row{
		Phase: umavez.Phase(rnd.IntN(3)), Policy: umavez.Policy(rnd.IntN(4)), Fence: 7,
		Namespace: []string{"", "loja", "LOJA"}[rnd.IntN(3)], Scope: umavez.ScopeID{byte(rnd.IntN(3))},
		Route: []string{"", "POST /a", "POST /b"}[rnd.IntN(3)], Label: "label",
		Claimed: now.Add(-time.Duration(rnd.IntN(100)) * time.Minute), Since: now, Until: at(), Gone: at(),
		Attempt: umavez.NewAttemptID(),
	}
	switch row.Phase {
	case umavez.PhaseRunning:
		row.Ended = []umavez.Reason{"", "", umavez.ReasonKilled, umavez.ReasonPanic, umavez.ReasonParked, umavez.ReasonStepInDoubt}[rnd.IntN(6)]
		row.Last, row.Request = []byte("last"), []byte("request")
		row.Steps = []umavez.KeptStep{{Name: "cobrar", Result: []byte("1")}}
		if rnd.IntN(2) == 0 {
			row.Holder, row.HeldUntil = umavez.NewAttemptID(), at()
		}
	case umavez.PhaseDone:
		row.Answer = []byte("answer")
	}
	return row
}

func anyQuery(rnd *rand.Rand) umavez.Query {
	var q umavez.Query
	for st := umavez.Vacant; st <= umavez.Expired; st++ {
		if rnd.IntN(3) == 0 {
			q.States = append(q.States, st)
		}
	}
	one := func(f func()) {
		if rnd.IntN(4) == 0 {
			f()
		}
	}
	one(func() { q.Unknown = true })
	one(func() {
		q.Reason = []umavez.Reason{umavez.ReasonKilled, umavez.ReasonParked, umavez.ReasonPanic, "none"}[rnd.IntN(4)]
	})
	one(func() { q.Namespace = "loja" })
	one(func() { q.Scope = umavez.ScopeID{byte(rnd.IntN(3))} })
	one(func() { q.Route = "POST /a" })
	one(func() { q.MinAge = time.Duration(rnd.IntN(100))*time.Minute + time.Nanosecond })
	return q
}

// Whatever is asked, a list is what Query.Fits says of every record, in order.
func TestListIsWhatFits(t *testing.T) {
	s, c := fresh(t)
	rnd := rand.New(rand.NewPCG(3, 5))
	rows := keepRows(t, s, 1500, func(_ int, now umavez.Instant) umavez.Row { return anyRow(rnd, now) })
	now := umavez.InstantOf(c.Now())
	found := 0
	for range 300 {
		q := anyQuery(rnd)
		var want []umavez.Listed
		for id, row := range rows {
			if rec := row.Record(now); q.Fits(&rec) {
				want = append(want, umavez.Listed{ID: id, Record: rec.Brief()})
			}
		}
		slices.SortFunc(want, func(a, b umavez.Listed) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		var got []umavez.Listed
		for q.Limit = 1 + rnd.IntN(200); ; {
			page, err := s.List(t.Context(), q)
			if err != nil || len(page) > q.Limit {
				t.Fatalf("%+v: a page of %d records, %v", q, len(page), err)
			}
			got = append(got, page...)
			if len(page) < q.Limit {
				break
			}
			q.After = page[len(page)-1].ID
		}
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Fatalf("%+v\nlists %d records, want %d", q, len(got), len(want))
		}
		found += len(got)
	}
	if found < 5000 {
		t.Errorf("the queries found %d records in all: they prove little", found)
	}
}

// A walk through all keys is cut into statements that end soon, and ends itself
// when its caller leaves.
func TestListInChunks(t *testing.T) {
	f := new(faults)
	s := open(t, file(t), Options{wrap: f.wrap})
	const n = 2*listChunk + 100
	rows := keepRows(t, s, n, func(i int, now umavez.Instant) umavez.Row {
		row := umavez.Row{Phase: umavez.PhaseDone, Until: now.Add(time.Hour), Gone: now.Add(time.Hour)}
		if i%1000 == 0 {
			row.Route = "rare"
		}
		return row
	})
	statements := 0
	ctx, leave := context.WithCancel(t.Context())
	left := false
	f.set(func(_ driver.Conn, sql string, _ []driver.NamedValue) error {
		if strings.HasPrefix(sql, "SELECT rowid") {
			if statements++; left {
				leave()
			}
		}
		return nil
	}, nil)
	page, err := s.List(ctx, umavez.Query{Route: "rare", Limit: 100})
	if err != nil || len(page) != n/1000+1 || statements != 3 {
		t.Errorf("%d records of a rare route, by %d statements, %v; want %d by 3", len(page), statements, err, n/1000+1)
	}
	statements, left = 0, true
	_, err = s.List(ctx, umavez.Query{Route: "rare", Limit: 100})
	if !errors.Is(err, context.Canceled) || statements != 1 {
		t.Errorf("after its caller had left the list made %d statements, and said %v", statements, err)
	}
	wantApplied(t, err, umavez.No)
	seen := 0
	for q := (umavez.Query{Limit: umavez.MaxPage}); ; {
		page, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			if _, ok := rows[l.ID]; !ok || bytes.Compare(l.ID[:], q.After[:]) <= 0 {
				t.Fatalf("record %v is out of order, or none", l.ID)
			}
			q.After = l.ID
		}
		if seen += len(page); len(page) < q.Limit {
			break
		}
	}
	if seen != n {
		t.Errorf("%d of %d records were listed", seen, n)
	}
}

// A list does not read what it leaves out: large answers cost it nothing.
func TestListReadsNoPayload(t *testing.T) {
	for _, st := range []statement{stListAll, stListUnsettled, stListScope} {
		for _, column := range []string{"answer", "last", "request"} {
			selected, _, _ := strings.Cut(texts[st], " FROM ")
			if strings.Contains(selected, column) {
				t.Errorf("%s reads %s", texts[st], column)
			}
		}
	}
}

// A record that cannot be read is named, and hides no other one.
func TestDamagedRecordInAList(t *testing.T) {
	s, c := fresh(t)
	for i := range 5 {
		lost(t, s, c, fmt.Sprint(i))
	}
	c2, err := dial(t.Context(), s.writer.path, s.opt, writing)
	if err != nil {
		t.Fatal(err)
	}
	defer c2.close()
	bad := idOf("3")
	if err := c2.script("UPDATE umavez_record SET steps = x'FF' WHERE id = ?", bad[:]); err != nil {
		t.Fatal(err)
	}
	for _, q := range []umavez.Query{{Limit: 10}, {Limit: 10, Unknown: true}} {
		page, err := s.List(t.Context(), q)
		if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), bad.String()) || len(page) != 4 {
			t.Errorf("%d records, and %v; want the four that can be read, and the name of the other one", len(page), err)
		}
	}
	// In pages, too, it is passed by.
	q, seen := umavez.Query{Limit: 2}, 0
	for range 10 {
		page, err := s.List(t.Context(), q)
		if err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		if seen += len(page); len(page) < q.Limit {
			break
		}
		q.After = page[len(page)-1].ID
	}
	if seen != 4 {
		t.Errorf("in pages, %d of 4 records were listed", seen)
	}
	// Nor does it keep the others from being rewritten.
	calls := 0
	last, err := s.Rewrite(t.Context(), umavez.ID{}, 10, func(_ umavez.ID, rec *umavez.Record) error {
		calls++
		rec.Last = []byte("anew")
		return nil
	})
	if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), bad.String()) || last != (umavez.ID{}) || calls != 4 {
		t.Errorf("rewriting: %d calls, last %v, %v", calls, last, err)
	}
	if rec := get(t, s, "4"); string(rec.Last) != "anew" {
		t.Errorf("its neighbour holds %q", rec.Last)
	}
}

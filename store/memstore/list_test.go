package memstore_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// pages reads a list page by page, and checks that each has what it should.
func pages(t *testing.T, s *memstore.Store, q umavez.Query) (ids []umavez.ID) {
	t.Helper()
	for {
		page, err := s.List(t.Context(), q)
		if err != nil || len(page) > q.Limit {
			t.Fatalf("list: %d records of at most %d, error %v", len(page), q.Limit, err)
		}
		for _, l := range page {
			if ids = append(ids, l.ID); l.Answer != nil || l.Request != nil {
				t.Errorf("the list has the answer %q and the request %q", l.Answer, l.Request)
			}
		}
		if len(page) < q.Limit {
			return ids
		}
		q.After = ids[len(ids)-1]
	}
}

// TestListPages: pages of any size come to the same, in the order of IDs.
func TestListPages(t *testing.T) {
	s := memstore.New(memstore.Options{})
	var all, open []umavez.ID
	for n := uint64(1); n <= 3000; n++ { // no hash is all zeros
		all = append(all, numbered(n))
		if n%7 == 0 {
			open = append(open, numbered(n))
			mustClaim(t, s, n)
		} else {
			finish(t, s, n, benchAnswer)
		}
	}
	for _, ids := range [][]umavez.ID{all, open} {
		slices.SortFunc(ids, func(a, b umavez.ID) int { return bytes.Compare(a[:], b[:]) })
	}
	for _, limit := range []int{1, 7, 429, 430, 1000} {
		if limit > 1 { // every page looks at all records
			if got := pages(t, s, umavez.Query{Limit: limit}); !slices.Equal(got, all) {
				t.Errorf("in pages of %d the list has %d records, want the %d there are in order", limit, len(got), len(all))
			}
		}
		if got := pages(t, s, umavez.Query{Limit: limit, States: []umavez.State{umavez.Running}}); !slices.Equal(got, open) {
			t.Errorf("in pages of %d the list has %d running records, want the %d there are in order", limit, len(got), len(open))
		}
	}
}

package storetest

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/umavez/umavez"
)

// settlingBend is a bend of what bentSettling has.
func settlingBend(make func() bentSettling) func() bend {
	return func() bend { return bend{bentSettling: make()} }
}

// fitting is a bend that lists other records than it should.
func fitting(fits func(q *umavez.Query, rec *umavez.Record) bool) func() bend {
	return settlingBend(func() bentSettling { return bentSettling{fits: fits} })
}

// paging is a bend that makes other pages than it should.
func paging(make func() func(fitting []umavez.Listed, q umavez.Query) []umavez.Listed) func() bend {
	return settlingBend(func() bentSettling { return bentSettling{page: make()} })
}

// listFlaws leave out what fits, or have what does not.
var listFlaws = []flaw{
	{
		"a route is the beginning of one", fitting(func(q *umavez.Query, rec *umavez.Record) bool {
			any := *q
			any.Route = ""
			return any.Fits(rec) && strings.HasPrefix(rec.Route, q.Route)
		}),
		[]string{"list/has what fits, and nothing else"},
	},
	{
		"tombstones are not listed", fitting(func(q *umavez.Query, rec *umavez.Record) bool {
			return q.Fits(rec) && rec.State != umavez.Expired
		}),
		[]string{"list/has what fits, and nothing else"},
	},
	{
		"vacant keys are listed", fitting(func(q *umavez.Query, rec *umavez.Record) bool {
			return q.Fits(rec) || rec.State == umavez.Vacant && len(q.States) == 0
		}),
		[]string{"list/has what fits, and nothing else"},
	},
	{
		"only opaque records are unknown", fitting(func(q *umavez.Query, rec *umavez.Record) bool {
			return q.Fits(rec) && (!q.Unknown || rec.Policy == umavez.Opaque)
		}),
		[]string{"list/has what fits, and nothing else"},
	},
	{
		"age is not looked at", fitting(func(q *umavez.Query, rec *umavez.Record) bool {
			any := *q
			any.MinAge = 0
			return any.Fits(rec)
		}),
		[]string{"list/has what fits, and nothing else"},
	},
	{
		"IDs are signed bytes", paging(func() func([]umavez.Listed, umavez.Query) []umavez.Listed {
			compare := func(a, b umavez.ID) int {
				return slices.CompareFunc(a[:], b[:], func(a, b byte) int { return int(int8(a)) - int(int8(b)) })
			}
			return func(fitting []umavez.Listed, q umavez.Query) []umavez.Listed {
				slices.SortFunc(fitting, func(a, b umavez.Listed) int { return compare(a.ID, b.ID) })
				fitting = slices.DeleteFunc(fitting, func(l umavez.Listed) bool { return compare(l.ID, q.After) <= 0 })
				return fitting[:min(q.Limit, len(fitting))]
			}
		}),
		[]string{"list/pages in the order of IDs"},
	},
	{
		"a page begins with the last record of the one before", paging(func() func([]umavez.Listed, umavez.Query) []umavez.Listed {
			return func(fitting []umavez.Listed, q umavez.Query) []umavez.Listed {
				fitting = slices.DeleteFunc(fitting, func(l umavez.Listed) bool { return bytes.Compare(l.ID[:], q.After[:]) < 0 })
				return fitting[:min(q.Limit, len(fitting))]
			}
		}),
		[]string{"list/pages in the order of IDs", "list/goes on over changes"},
	},
	{
		"a page is not full", paging(func() func([]umavez.Listed, umavez.Query) []umavez.Listed {
			return func(fitting []umavez.Listed, q umavez.Query) []umavez.Listed {
				page := rightPage(fitting, q)
				return page[:min(len(page), 6)]
			}
		}),
		[]string{"list/pages in the order of IDs"},
	},
	{
		"a page has at most 39 records", paging(func() func([]umavez.Listed, umavez.Query) []umavez.Listed {
			return func(fitting []umavez.Listed, q umavez.Query) []umavez.Listed {
				page := rightPage(fitting, q)
				return page[:min(len(page), 39)]
			}
		}),
		[]string{"list/pages in the order of IDs"},
	},
	{
		"pages are counted, not found", paging(countedPages),
		[]string{"list/goes on over changes"},
	},
	{
		"a list has everything", settlingBend(func() bentSettling {
			return bentSettling{brief: func(rec umavez.Record) umavez.Record { return rec }}
		}),
		[]string{"list/is brief"},
	},
	{
		"a list does not say who looks", settlingBend(func() bentSettling {
			return bentSettling{brief: func(rec umavez.Record) umavez.Record {
				rec.HeldLeft = 0
				return rec.Brief()
			}}
		}),
		[]string{"list/is brief"},
	},
	{
		"a list that was cut off is short", settlingBend(func() bentSettling {
			return bentSettling{listOver: func() ([]umavez.Listed, error) { return nil, nil }}
		}),
		[]string{"list/says how it failed"},
	},
}

// countedPages goes on where it stopped by how many records it has given.
func countedPages() func([]umavez.Listed, umavez.Query) []umavez.Listed {
	var given int
	var last umavez.ID
	return func(fitting []umavez.Listed, q umavez.Query) []umavez.Listed {
		if q.After != last || q.After == (umavez.ID{}) {
			given = len(fitting) - len(slices.DeleteFunc(slices.Clone(fitting), func(l umavez.Listed) bool {
				return bytes.Compare(l.ID[:], q.After[:]) <= 0
			}))
		}
		from := min(given, len(fitting))
		page := fitting[from:min(from+q.Limit, len(fitting))]
		given += len(page)
		if len(page) > 0 {
			last = page[len(page)-1].ID
		}
		return page
	}
}

// rewriting is a bend of how a rewritten record is kept.
func rewriting(rewrote func(row umavez.Row, rec *umavez.Record, err error) (umavez.Row, error)) func() bend {
	return settlingBend(func() bentSettling { return bentSettling{rewrote: rewrote} })
}

// rewritten is what a rewriting should keep.
func rewritten(row umavez.Row, rec *umavez.Record) umavez.Row {
	if row.Phase == umavez.PhaseDone {
		row.Answer = rec.Answer
	}
	row.Last, row.Request, row.Steps = rec.Last, rec.Request, rec.Steps
	return row
}

// rewriteFlaws lose or change what they seal anew.
var rewriteFlaws = []flaw{
	{
		"requests are not sealed anew", rewriting(func(row umavez.Row, rec *umavez.Record, err error) (umavez.Row, error) {
			if err != nil {
				return row, err
			}
			rec.Request = row.Request
			return rewritten(row, rec), nil
		}),
		[]string{"rewrite/hands out every record, and keeps what comes back"},
	},
	{
		"a record in three is left out", settlingBend(func() bentSettling {
			return bentSettling{rewrites: func(ids []umavez.ID) []umavez.ID { return ids[:len(ids)-len(ids)/3] }}
		}),
		[]string{"rewrite/hands out every record, and keeps what comes back", "rewrite/pages in the order of IDs"},
	},
	{
		"a full page is the end", settlingBend(func() bentSettling {
			return bentSettling{last: func(last umavez.ID, handed, limit int) umavez.ID {
				if handed == limit {
					return umavez.ID{}
				}
				return last
			}}
		}),
		[]string{"rewrite/pages in the order of IDs"},
	},
	{
		"there is no end", settlingBend(func() bentSettling {
			return bentSettling{last: func(last umavez.ID, _, _ int) umavez.ID {
				if last == (umavez.ID{}) {
					return umavez.ID{0: 0xff, 1: 0xff, 2: 0xff}
				}
				return last
			}}
		}),
		[]string{"rewrite/pages in the order of IDs"},
	},
	{
		"a rewriting is a try", rewriting(func(row umavez.Row, rec *umavez.Record, err error) (umavez.Row, error) {
			if err != nil {
				return row, err
			}
			row.Tries, row.Route = int32(rec.Tries), rec.Route
			return rewritten(row, rec), nil
		}),
		[]string{"rewrite/changes nothing else"},
	},
	{
		"a rewriting ends the retention", rewriting(func(row umavez.Row, rec *umavez.Record, err error) (umavez.Row, error) {
			if err != nil {
				return row, err
			}
			row.Until -= umavez.Instant(time.Hour.Microseconds())
			return rewritten(row, rec), nil
		}),
		[]string{"rewrite/changes nothing else"},
	},
	{
		"what could not be sealed is kept half", rewriting(func(row umavez.Row, rec *umavez.Record, err error) (umavez.Row, error) {
			return rewritten(row, rec), err
		}),
		[]string{"rewrite/an error leaves the record"},
	},
	{
		"nobody learns that it could not be sealed", rewriting(func(row umavez.Row, rec *umavez.Record, err error) (umavez.Row, error) {
			if err != nil {
				return row, nil
			}
			return rewritten(row, rec), nil
		}),
		[]string{"rewrite/an error leaves the record"},
	},
	{
		"settings are replaced whole", settlingBend(func() bentSettling {
			return bentSettling{resettled: func(_, anew umavez.Settings) umavez.Settings { return anew }}
		}),
		[]string{"rewrite/settings keep all but the hash key"},
	},
	{
		"settings are not sealed anew", settlingBend(func() bentSettling {
			return bentSettling{resettled: func(was, _ umavez.Settings) umavez.Settings { return was }}
		}),
		[]string{"rewrite/settings keep all but the hash key"},
	},
	{
		"a rewriting reads and then writes", settlingBend(func() bentSettling { return bentSettling{apart: untilSteps} }),
		[]string{"race/rewrite against checkpoints"},
	},
}

// untilSteps waits until a record has got another step, or for a moment.
func untilSteps(s *bent, id umavez.ID) {
	steps := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.rows[id].Steps)
	}
	moment := time.NewTimer(partnerWait)
	defer moment.Stop()
	for before := steps(); steps() == before; runtime.Gosched() {
		select {
		case <-moment.C:
			return
		default:
		}
	}
}

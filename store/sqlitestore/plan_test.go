package sqlitestore

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/umavez/umavez"
)

// plan returns how SQLite runs a statement.
func plan(t *testing.T, c *conn, st statement) string {
	t.Helper()
	var steps []string
	args := make([]driver.Value, strings.Count(texts[st], "?"))
	err := c.ask("EXPLAIN QUERY PLAN "+texts[st], func(v []driver.Value) error {
		steps = append(steps, fmt.Sprint(v[3]))
		return nil
	}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

// What is asked often, or holds others up, goes over an index, however many keys
// there are.
func TestStatementsUseTheirIndex(t *testing.T) {
	s, _ := fresh(t)
	for name, want := range map[statement]string{
		stCount:         "SEARCH umavez_record USING COVERING INDEX umavez_record_running (scope=?)",
		stListUnsettled: "SCAN umavez_record USING INDEX umavez_record_running\nUSE TEMP B-TREE FOR ORDER BY",
		stListScope:     "SEARCH umavez_record USING INDEX umavez_record_running (scope=?)\nUSE TEMP B-TREE FOR ORDER BY",
		stListAll:       "SEARCH umavez_record USING INDEX sqlite_autoindex_umavez_record_1 (id>? AND id<?)",
		stListEnd:       "SEARCH umavez_record USING COVERING INDEX sqlite_autoindex_umavez_record_1 (id>?)",
		stFrom:          "SEARCH umavez_record USING INDEX sqlite_autoindex_umavez_record_1 (id>?)",
		stRewrite:       "SEARCH umavez_record USING INDEX sqlite_autoindex_umavez_record_1 (id=?)",
		stOwner:         "SEARCH umavez_record USING INDEX sqlite_autoindex_umavez_record_1 (id=?)",
		stOwned:         "SCAN umavez_record USING INDEX umavez_record_running",
		stDisown:        "SCAN umavez_record USING INDEX umavez_record_running",
		stDue:           "SEARCH umavez_record USING INDEX umavez_record_due (due<?)",
		stTrail:         "SEARCH umavez_audit USING INDEX umavez_audit_record (id=?)",
		stDropAudit: "SEARCH umavez_audit USING INTEGER PRIMARY KEY (rowid=?)\nLIST SUBQUERY 1\n" +
			"SEARCH umavez_audit USING COVERING INDEX umavez_audit_at (at<?)",
	} {
		if got := plan(t, s.writer.c, name); !strings.Contains(got, want) {
			t.Errorf("%s\nis run by\n%s\nwant\n%s", texts[name], got, want)
		}
	}
}

// A claim and its completion write the table's last page, the key's page in the
// index of all keys, and one page in the index of running rows; the completion
// also one in the index of what is due, and none in that of the keys. Whatever
// else is asked of a record, no index of its own is written for it.
func TestPagesOfAClaimAndACompletion(t *testing.T) {
	s, _ := fresh(t)
	for i := range 300 {
		done(t, s, fmt.Sprint("other ", i), make([]byte, 160))
	}
	var claims, completions []int
	for i := range 50 {
		var l umavez.Lease
		claims = append(claims, pagesOf(t, s, func() { l = claim(t, s, fmt.Sprint(i), bounded(byte(i%5), 1000)) }))
		completions = append(completions, pagesOf(t, s, func() {
			if err := s.Complete(t.Context(), l, make([]byte, 160), keep); err != nil {
				t.Fatal(err)
			}
		}))
	}
	// Now and then a page is full, and splits.
	if c, d := mostOften(claims), mostOften(completions); c != 3 || d != 3 {
		t.Errorf("a claim writes %d pages and a completion %d, want 3 each", c, d)
	}
}

// pagesOf counts the pages that a call writes into the log.
func pagesOf(t *testing.T, s *Store, call func()) (pages int) {
	t.Helper()
	for _, mode := range []string{"TRUNCATE", "PASSIVE"} {
		if mode == "PASSIVE" {
			call()
		}
		err := s.writer.c.ask("PRAGMA wal_checkpoint("+mode+")", func(v []driver.Value) error {
			pages = int(v[1].(int64))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

func mostOften(n []int) int {
	counts := map[int]int{}
	most := 0
	for _, v := range n {
		if counts[v]++; counts[v] > counts[most] {
			most = v
		}
	}
	return most
}

package sqlitestore

import (
	"modernc.org/sqlite"

	"github.com/umavez/umavez"
)

// recall remembers the running rows that the writer wrote last. Completing what
// was claimed a moment ago, and every heartbeat, would else begin by reading
// back what this process itself has written.
//
// It holds for as long as nobody else has written. SQLite knows that, inside
// the transaction: it is how it decides whether to keep its cache of pages. Its
// data version counts this connection's commits, and the times when the cache
// had to be dropped because of someone else's. So the version after our own
// commit, found again after the next BEGIN, says that what we remember is what
// the file holds. Another connection has another count: it begins anew.
type recall struct {
	rows    map[umavez.ID]found
	version uint32
}

// recalled bounds the rows; with more the memory starts over. A row takes half a
// kilobyte, and recalledRequest bounds what its request and label add to that.
const (
	recalled        = 4096
	recalledRequest = 512
)

// begin is called after BEGIN: it forgets everything if somebody else wrote.
func (r *recall) begin(c *conn) {
	if len(r.rows) == 0 {
		return
	}
	if v, ok := c.dataVersion(); !ok || v != r.version {
		clear(r.rows)
	}
}

// committed is called after a COMMIT that succeeded. What was put before it
// counts from here on.
func (r *recall) committed(c *conn) {
	if len(r.rows) == 0 {
		return
	}
	v, ok := c.dataVersion()
	if r.version = v; !ok {
		clear(r.rows)
	}
}

// forget is called when a transaction was not committed, and when rows were
// written past recall.
func (r *recall) forget() { clear(r.rows) }

// put is called when a row was written. Only a running one is asked for again
// soon.
func (r *recall) put(id umavez.ID, f found) {
	row := &f.row
	if row.Phase != umavez.PhaseRunning || len(row.Steps) > 0 || len(row.Last) > 0 ||
		len(row.Request)+len(row.Label) > recalledRequest {
		delete(r.rows, id)
		return
	}
	if r.rows == nil || len(r.rows) >= recalled {
		r.rows = make(map[umavez.ID]found)
	}
	f.id = nil // it is the key
	r.rows[id] = f
}

// dataVersion asks SQLite for the version of the content that the connection
// sees. It needs an open transaction, or a commit just done, to say anything.
func (c *conn) dataVersion() (uint32, bool) {
	fc, ok := c.dc.(sqlite.FileControl)
	if !ok {
		return 0, false
	}
	v, err := fc.FileControlDataVersion("main")
	return v, err == nil
}

package sqlitestore

import (
	"fmt"
	"strings"

	"github.com/umavez/umavez"
)

// statement names an SQL text that connections prepare once and keep.
type statement int

const (
	stBegin statement = iota
	stCommit
	stRollback
	stInsert
	stUpdate
	stExtend
	stPhase
	stSelect1
	stSelect8
	stSelect64
	stSelect256
	stDue
	stDelete
	stForget
	stOwned
	stDisown
	stCount
	stOwner
	stListUnsettled
	stListScope
	stListAll
	stListEnd
	stAudit
	stTrail
	stDropAudit
	stSave
	stKeepSaved
	stUndoSaved
	stFrom
	stRewrite
	stNamespaces
	stRewriteSettings
	stNamespace
	stPropose
	stAccept
	stBury
	statements
)

// columns are those of a record that make up an [umavez.Row], in the order in
// which row.go writes and reads them.
const columns = listed + ", answer, last, request"

// listed are those that a list reads. A list has the names of steps, so it reads
// their results, too; only records that are not done have any.
const listed = "phase, policy, settled, tries, attempt, fingerprint, fence, namespace, scope, route, label, " +
	"ended, claimed, since, until, gone, held_until, holder, overruled, contradicted, steps"

// columnCount is how many columns there are, and answerColumn the first one that
// a list does not read.
const (
	columnCount  = 24
	answerColumn = 21
)

var texts = [statements]string{
	// IMMEDIATE takes the write lock at once. A transaction that reads first
	// and then wants to write fails when another process wrote in between,
	// however long it is willing to wait.
	stBegin:    "BEGIN IMMEDIATE",
	stCommit:   "COMMIT",
	stRollback: "ROLLBACK",

	// The columns, due, owner, id. Nothing is inserted when the id is there already.
	stInsert: "INSERT INTO umavez_record (" + columns + ", due, owner, id) VALUES (" +
		placeholders(columnCount+3) + ") ON CONFLICT (id) DO NOTHING",
	// The columns, due, owner, rowid.
	stUpdate: "UPDATE umavez_record SET (" + columns + ", due, owner) = (" +
		placeholders(columnCount+2) + ") WHERE rowid = ?",
	// until, rowid. A heartbeat does not write the row's answers and steps anew.
	stExtend: "UPDATE umavez_record SET until = ? WHERE rowid = ?",

	// id. Whether there is a row at all: what most claims ask, and cheaper
	// than reading one.
	stPhase: "SELECT phase FROM umavez_record WHERE id = ?",
	// Ids, filled up with NULLs, which equal nothing. Each returned row is its
	// rowid, its id, its owner and the columns.
	stSelect1:   selectRows(1),
	stSelect8:   selectRows(8),
	stSelect64:  selectRows(64),
	stSelect256: selectRows(256),

	// An instant, a number of rows. What purging looks at of each row that is due.
	stDue: "SELECT rowid, phase, until, gone FROM umavez_record " +
		"WHERE due <= ? ORDER BY due LIMIT ?",
	// rowid.
	stDelete: "DELETE FROM umavez_record WHERE rowid = ?",
	// due, rowid.
	stForget: "UPDATE umavez_record SET answer = NULL, due = ? WHERE rowid = ?",

	// owner. Running rows, each as selectRows returns it. The index holds few
	// rows, and owners die seldom.
	stOwned: "SELECT rowid, id, owner, " + columns + " FROM " + running + " WHERE phase = 1 AND owner = ?",
	// owner.
	stDisown: "UPDATE " + running + " SET owner = NULL WHERE phase = 1 AND owner = ?",
	// id. The owner of a running row.
	stOwner: "SELECT owner FROM umavez_record WHERE id = ? AND phase = 1",

	// scope, the most that is of interest. How many rows of a scope run.
	stCount: "SELECT count(*) FROM (SELECT 1 FROM " + running + " WHERE phase = 1 AND scope IS ? LIMIT ?)",

	// Of all three: see listFilter. Each returned row is its rowid, its id, its
	// owner and the listed columns. For the last one also: ?9, the last id.
	stListUnsettled: listRows(running, "phase = 1"),
	stListScope:     listRows(running, "phase = 1 AND scope = ?5"),
	stListAll:       listRows("umavez_record", "id <= ?9"),
	// An id, a number. The id that is so many after the next one.
	stListEnd: "SELECT id FROM umavez_record WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?",

	// id, at, action, who, why, fence, before_state, before_reason, after_state, after_reason.
	stAudit: "INSERT INTO umavez_audit (id, " + auditColumns + ") VALUES (" + placeholders(10) + ")",
	// id.
	stTrail: "SELECT " + auditColumns + " FROM umavez_audit WHERE id = ? ORDER BY entry",
	// An instant, a number of rows.
	stDropAudit: "DELETE FROM umavez_audit WHERE entry IN " +
		"(SELECT entry FROM umavez_audit WHERE at <= ? ORDER BY at LIMIT ?)",

	// A row and its entries in the audit trail: all of them or none, whatever
	// becomes of the rest of the batch.
	stSave:      "SAVEPOINT audited",
	stKeepSaved: "RELEASE audited",
	stUndoSaved: "ROLLBACK TO audited",

	// id, a number. Each returned row is as selectRows returns it.
	stFrom: "SELECT rowid, id, owner, " + columns + " FROM umavez_record WHERE id > ? ORDER BY id LIMIT ?",
	// steps, answer, last, request, id, and the four as they were.
	stRewrite: "UPDATE umavez_record SET (steps, answer, last, request) = (?, ?, ?, ?) " +
		"WHERE id = ? AND steps IS ? AND answer IS ? AND last IS ? AND request IS ?",
	stNamespaces: "SELECT name, epoch, format, recipe, hash_key FROM umavez_namespace ORDER BY name",
	// hash_key, name, hash_key as it was.
	stRewriteSettings: "UPDATE umavez_namespace SET hash_key = ? WHERE name = ? AND hash_key = ?",

	// name.
	stNamespace: "SELECT epoch, format, recipe, hash_key FROM umavez_namespace WHERE name = ?",
	// name, epoch, format, recipe, hash_key, created_at.
	stPropose: "INSERT INTO umavez_namespace (name, epoch, format, recipe, hash_key, created_at) " +
		"VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
	// recipe, accepted_reason, accepted_at, name.
	stAccept: "UPDATE umavez_namespace SET recipe = ?, accepted_reason = ?, accepted_at = ? WHERE name = ?",

	// last_at.
	stBury: "UPDATE umavez_failed_commit SET count = count + 1, last_at = ? WHERE one = 1",
}

// running names the table together with the index of its running rows: SQLite
// knows nothing of how few they are, and might walk through all keys instead.
const running = "umavez_record INDEXED BY umavez_record_running"

const auditColumns = "at, action, who, why, fence, before_state, before_reason, after_state, after_reason"

// listFilter is what a list asks of each row, as far as that is cheap to say
// here; Query.Fits has the last word. Its parameters: ?1 the id to begin after,
// ?2 now, ?3 the wanted states as bits, ?4 namespace or empty, ?5 scope or NULL,
// ?6 route or empty, ?7 the latest claim, ?8 a number of rows.
var listFilter = fmt.Sprintf("id > ?1 AND claimed <= ?7 AND (?4 = '' OR namespace = ?4) "+
	"AND (?5 IS NULL OR scope = ?5) AND (?6 = '' OR route = ?6) AND (?3 >> CASE phase "+
	"WHEN %d THEN iif(ended <> '' OR until <= ?2, %d, %d) "+
	"WHEN %d THEN iif(until > ?2, %d, iif(gone > ?2, %d, %d)) ELSE %d END) & 1",
	umavez.PhaseRunning, umavez.Lost, umavez.Running,
	umavez.PhaseDone, umavez.Done, umavez.Expired, umavez.Vacant, umavez.Vacant)

func listRows(from, where string) string {
	return "SELECT rowid, id, owner, " + listed + " FROM " + from + " WHERE " + where + " AND " + listFilter +
		" ORDER BY id LIMIT ?8"
}

func placeholders(n int) string { return strings.Repeat("?, ", n-1) + "?" }

func selectRows(n int) string {
	where := "id = ?"
	if n > 1 {
		where = "id IN (" + placeholders(n) + ")"
	}
	return "SELECT rowid, id, owner, " + columns + " FROM umavez_record WHERE " + where
}

// selectFor returns the smallest statement that selects n rows, and how many
// ids it takes. Few different sizes: preparing a statement is dear.
func selectFor(n int) (statement, int) {
	switch {
	case n <= 1:
		return stSelect1, 1
	case n <= 8:
		return stSelect8, 8
	case n <= 64:
		return stSelect64, 64
	default:
		return stSelect256, 256
	}
}

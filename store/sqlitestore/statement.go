package sqlitestore

import "strings"

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
	stNamespace
	stPropose
	stAccept
	stBury
	statements
)

// columns are those of a record that make up an [umavez.Row], in the order in
// which row.go writes and reads them.
const columns = "phase, policy, settled, tries, attempt, fingerprint, fence, route, ended, " +
	"claimed, since, until, gone, held_until, holder, steps, answer, last, request"

// columnCount is how many they are.
const columnCount = 19

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

	// owner. Running rows, each as selectRows returns it.
	stOwned: "SELECT rowid, id, owner, " + columns + " FROM umavez_record WHERE phase = 1 AND owner = ?",
	// owner.
	stDisown: "UPDATE umavez_record SET owner = NULL WHERE phase = 1 AND owner = ?",

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

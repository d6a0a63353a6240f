-- What a key is worth knowing for, one row each. Instants are microseconds of
-- the process's clock since 1970. A rowid table, though its key is a hash: a
-- key's claim and completion then rewrite a page that is at the table's end,
-- and only the small index is touched at random (half the time of WITHOUT
-- ROWID, at 200,000 rows).
CREATE TABLE IF NOT EXISTS umavez_record (
	id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 32),
	phase       INTEGER NOT NULL, -- 0 vacant (released), 1 running, 2 done
	policy      INTEGER NOT NULL,
	settled     INTEGER NOT NULL, -- 1: the answer was given by settling
	tries       INTEGER NOT NULL,
	attempt     BLOB    NOT NULL CHECK (length(attempt) = 16),
	fingerprint BLOB,             -- NULL: the zero fingerprint
	fence       INTEGER NOT NULL,
	namespace   TEXT    NOT NULL,
	scope       BLOB,             -- NULL: the zero scope
	route       TEXT    NOT NULL,
	label       TEXT    NOT NULL,
	ended       TEXT    NOT NULL, -- why its owner abandoned it; '' if it did not
	claimed     INTEGER NOT NULL,
	since       INTEGER NOT NULL,
	until       INTEGER NOT NULL, -- end of the lease, the retention, or the row
	gone        INTEGER NOT NULL, -- end of the tombstone
	due         INTEGER,          -- when purging has something to do; NULL: never
	held_until  INTEGER NOT NULL,
	owner       BLOB,             -- the start log of the process that runs it; NULL: nothing to learn there
	holder      BLOB,             -- who looks into it, or the settlement that it stands by
	overruled   BLOB,             -- the attempt whose outcome was settled last
	contradicted INTEGER NOT NULL, -- 1: it said otherwise
	steps       BLOB,
	answer      BLOB,             -- from here on, what lists do not read
	last        BLOB,
	request     BLOB
) STRICT;

-- Running and lost rows have no due, and so no entry: purging cannot meet them.
CREATE INDEX IF NOT EXISTS umavez_record_due ON umavez_record (due) WHERE due IS NOT NULL;

-- The running and lost rows, by whose they are: few, and the ones that somebody
-- may have to look into. It serves the counts of a scope, the lists of what is
-- unsettled, and the search for what a dead process owned; an index for each
-- would be a page more in every commit.
CREATE INDEX IF NOT EXISTS umavez_record_running ON umavez_record (scope) WHERE phase = 1;

-- The audit trail: what was done to records from outside. Entries outlive their
-- record, and are never changed.
CREATE TABLE IF NOT EXISTS umavez_audit (
	entry         INTEGER NOT NULL PRIMARY KEY, -- in the order of their writing, whatever the clock does
	id            BLOB    NOT NULL CHECK (length(id) = 32), -- the record's
	at            INTEGER NOT NULL,
	action        TEXT    NOT NULL,
	who           TEXT    NOT NULL,
	why           TEXT    NOT NULL,
	fence         INTEGER NOT NULL,
	before_state  INTEGER NOT NULL, -- 0 vacant, 1 running, 2 lost, 3 done, 4 expired
	before_reason TEXT    NOT NULL,
	after_state   INTEGER NOT NULL,
	after_reason  TEXT    NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS umavez_audit_record ON umavez_audit (id);
CREATE INDEX IF NOT EXISTS umavez_audit_at ON umavez_audit (at);

-- What all processes that share a namespace must agree on.
CREATE TABLE IF NOT EXISTS umavez_namespace (
	name            BLOB    NOT NULL PRIMARY KEY, -- bytes: never folded
	epoch           BLOB    NOT NULL CHECK (length(epoch) = 16),
	format          INTEGER NOT NULL,
	recipe          TEXT    NOT NULL,
	hash_key        BLOB    NOT NULL CHECK (length(hash_key) BETWEEN 32 AND 256), -- sealed, if a key ring is in use
	created_at      INTEGER NOT NULL,
	accepted_reason TEXT,   -- why the recipe was changed, the last time
	accepted_at     INTEGER
) STRICT;

-- One row, written after a commit that failed: see bury in writer.go.
CREATE TABLE IF NOT EXISTS umavez_failed_commit (
	one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	count   INTEGER NOT NULL,
	last_at INTEGER NOT NULL
) STRICT;

INSERT OR IGNORE INTO umavez_failed_commit (one, count, last_at) VALUES (1, 0, 0);

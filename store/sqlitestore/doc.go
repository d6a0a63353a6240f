// Package sqlitestore keeps records in one SQLite file: the embedded default,
// for one machine.
//
// It runs [umavez.Next] inside transactions of one writer connection, which
// internal/groupcommit feeds: what waits is gathered into one transaction and
// one fsync. Readers stand beside it. Two or more processes on one machine may
// share the file; they share the machine's wall clock, too.
//
// # What it promises
//
// An acknowledged claim or answer is in the file's write-ahead log, and synced:
// it survives kill -9 and a power cut. What this rests on is set on every
// connection and read back: WAL, synchronous=FULL. [Open] refuses what would
// break it: SQLite releases with the WAL-reset fault, network file systems,
// another schema, a schema from a newer release. Some of these can be accepted
// by name, see [Options].
//
// What loses an acknowledged claim all the same: a disk or a virtual machine
// that lies about fsync; a file system in memory (tmpfs), at the next boot;
// copying a backup over the file; deleting the -wal file; another program that
// opens the file itself with other settings; a container that is given the file
// alone and not its folder, so that the -wal file beside it is the container's.
// And a trap of POSIX locks: a process that opens and closes the database file by
// itself (to copy or hash it, say) drops SQLite's own locks on it. Back it up with
// VACUUM INTO, or from another process with the sqlite3 shell.
//
// # Errors
//
// What fails before COMMIT is rolled back: Applied is No. What fails at COMMIT
// may be found again by whoever opens the file next, so it is Maybe; the
// writer's connection is then closed and opened again, and a new commit is
// written over what is left of the failed one. A full disk is an error, and
// keys that are done go on being answered, since that only reads.
//
// # What a dead process leaves
//
// A record that was claimed and not started when its process died is released,
// not unknown: beside the file lies a start log of each process ("-start-" and a
// number in its name, Linux only). Whoever opens the file next, or meets the
// record once its lease is over, sees to it; so does whoever lists, holds or
// settles what is lost. Deleting such a log is harmless: its
// process's records then count as started. Do delete them before an older copy of
// the file is put in its place: what they say is of the newer one.
//
// # Settling, lists and the audit trail
//
// What somebody does to a record from outside, and its entry in the table
// umavez_audit, are one write. Entries outlive their record, are in the order of
// their writing, and are purged after [umavez.AuditKept].
//
// Running and lost records have an index of their own, by scope. Over it go the
// lists of what is unsettled, and the counts of a scope: a claim that bounds them
// counts when the last count is a second old, or the bound is reached; so two
// processes may together exceed it by what they were granted in a second. A list
// of anything else reads the whole table, in the order of IDs, 4,096 keys at a
// time.
//
// # Sealing anew
//
// Rewriting replaces what is in the records. What was there before may lie in the
// file's free pages, and in the log, until they are used again: VACUUM, and then
// PRAGMA wal_checkpoint(TRUNCATE), remove it.
//
// # The write-ahead log
//
// SQLite copies the log into the database every 1,000 pages (4 MiB) and starts
// it over, unless somebody still reads an old state: a sqlite3 shell in a
// transaction, a backup. Then the log grows until the reader ends. When it is
// over 16 MiB, the writer tries from time to time to empty it, without waiting,
// and it shrinks soon after the reader has gone. Space of purged rows is used
// again; the database file itself never shrinks (VACUUM does that).
//
// Start reading at store.go and settle.go for the calls, writer.go for the
// transaction, and apply.go for what is done in it; list.go for lists; open.go for
// the checks at start-up.
package sqlitestore

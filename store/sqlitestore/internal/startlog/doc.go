// Package startlog remembers, past the death of a process, which of its
// attempts had started.
//
// A claim is on disk before its operation starts, so a process that dies
// between the two leaves a running record whose operation never ran. Telling it
// from one that did run takes a mark that is written before the start and
// survives the process. The mark need not survive the machine: after a power
// cut nothing is concluded. So it costs one write into the page cache, and no
// commit.
//
// Each process has a log of its own, a file beside the database, locked for as
// long as the process lives. Who gets that lock knows that the owner is dead:
// what its log does not name as started did not start, and cannot start any
// more. A stopped process keeps its lock, and so its claims.
//
// Outside Linux there is no log, and every lost record counts as started.
package startlog

// Package memstore keeps records in the memory of one process.
//
// It is the reference among the stores: it runs [umavez.Next] as it stands, over
// maps with a mutex each. It is also a store to use where there is one process
// and where a restart may forget: when the process ends, every key is vacant
// again, so an operation that ran before a crash can run once more after it.
// Whoever needs more than that takes a store that writes to disk.
//
// The store never drops a running or lost record, or an answer within its
// retention, to make room. When it is full it refuses new keys with [ErrFull],
// and when its audit trails are full, settlements with [ErrAuditFull].
//
// Start at store.go and settle.go, which have the calls; shard.go applies them to
// the maps. list.go and rewrite.go walk through all of them.
// The package imports nothing of this module but its root.
package memstore

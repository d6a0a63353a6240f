// Package storetest holds every store to the contract of [umavez.Store].
//
// A store's test opens it and hands it over:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, storetest.Config{
//			Open: func(t *testing.T) storetest.Opened {
//				s := openOnEmptyData(t)
//				return storetest.Opened{Store: s}
//			},
//		})
//	}
//
// The contract's sentences are rules in a table, each with a name and with the
// reason that is printed when it breaks: claim.go, takeover.go, complete.go and
// so on. Beside them stand races, keys that must never meet, faults on the way
// to and from the store, restarts, and random sequences that are compared with
// [umavez.Next]. [Faulty] is the faults by themselves, for tests of what stands
// above a store.
//
// What only some stores can do ([umavez.Settler], [umavez.Lister] and so on) has
// rules in files of its own: hold.go, settle.go, contradict.go, trail.go, list.go,
// rewrite.go, purge.go, settings.go. A store without the interface skips them,
// and the skip says which interface it is.
//
// Rules run in parallel, each with keys of its own, and never sleep: they move
// the store's clock where they can ([Opened.Advance]), and else wait for a
// record of a few milliseconds to be over by the store's own clock.
//
// The package imports nothing of this module but its root. Begin with suite.go.
package storetest
